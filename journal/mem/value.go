package mem

import (
	"context"
	"maps"

	"github.com/parley-hub/parley/journal"
)

// Value implements journal.Engine.
func (e *Engine) Value(ctx context.Context, key journal.ValueKey) (journal.ValueState, error) {
	if err := e.enter(ctx, 0); err != nil {
		return journal.ValueState{}, err
	}
	defer e.store.mu.Unlock()
	sh, book := e.of(key.Partition)
	ordered, ticket, err := book.Value(key)
	return journal.ValueState{
		Durable: sh.values[key].Clone(), Ordered: ordered.Clone(), Pending: ticket,
	}, err
}

// LazyValue implements journal.Engine.
func (e *Engine) LazyValue(ctx context.Context, key journal.ValueKey) (journal.Value, error) {
	if err := e.enter(ctx, 0); err != nil {
		return journal.Value{}, err
	}
	defer e.store.mu.Unlock()
	return e.lazyValue(key).Clone(), nil
}

func (e *Engine) lazyValue(key journal.ValueKey) journal.Value {
	if v, ok := e.lazy[key]; ok {
		return v
	}
	return e.store.of(key.Partition).lazy[key]
}

// visibleLazy returns the lazy values of a partition's shard.
func (e *Engine) visibleLazy(p journal.PartitionName) map[journal.ValueKey]journal.Value {
	all := maps.Clone(e.store.of(p).lazy)
	maps.Copy(all, e.lazy)
	maps.DeleteFunc(all, func(_ journal.ValueKey, v journal.Value) bool { return v.Version == 0 })
	return all
}

// PutLazy implements journal.Engine.
func (e *Engine) PutLazy(ctx context.Context, writes ...journal.ValueWrite) error {
	if len(writes) == 0 {
		return nil
	}
	if err := journal.ValidateValues(writes[0].Key.Partition, writes); err != nil {
		return err
	}
	if err := e.enterWrite(ctx, 0); err != nil {
		return err
	}
	defer e.store.mu.Unlock()
	_, book := e.of(writes[0].Key.Partition)
	for i := range writes {
		w := &writes[i]
		if at := e.lazyValue(w.Key).Version; !w.Expect.Accepts(at) {
			want, _ := w.Expect.Number()
			return &journal.ConflictError{
				Kind: journal.ValueConflict, Value: w.Key, Expected: want, Actual: at,
				LostTo: journal.Settled(e.Shard(w.Key.Partition), book.Position(), book.Place().Term),
			}
		}
	}
	for i := range writes {
		w := &writes[i]
		e.wrote[w.Key] = book.Place().Ordered
		if w.Delete {
			e.lazy[w.Key] = journal.Value{}
		} else {
			e.lazy[w.Key] = journal.Value{Data: copyBytes(w.Data), Version: e.lazyValue(w.Key).Version + 1}
		}
	}
	return nil
}
