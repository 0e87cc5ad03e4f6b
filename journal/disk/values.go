package disk

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk/internal/layout"
)

// maxDirtyLazy is the number of unsaved lazy values at which they are saved at
// once. Their bytes are bounded by Options.MaxUnsynced.
const maxDirtyLazy = 4096

// Value implements journal.Engine.
func (e *Engine) Value(ctx context.Context, key journal.ValueKey) (journal.ValueState, error) {
	if err := key.Partition.Validate(); err != nil {
		return journal.ValueState{}, err
	}
	if ctx.Err() != nil {
		return journal.ValueState{}, context.Cause(ctx)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	v, err := e.enterSeen(ctx)
	if err != nil {
		return journal.ValueState{}, err
	}
	defer v.leave()
	ordered, ticket, err := e.book.Value(key)
	if err != nil {
		return journal.ValueState{}, err
	}
	durable, err := v.value(layout.KindValue, key)
	return journal.ValueState{Durable: durable, Ordered: ordered.Clone(), Pending: ticket}, err
}

// LazyValue implements journal.Engine.
func (e *Engine) LazyValue(ctx context.Context, key journal.ValueKey) (journal.Value, error) {
	if err := key.Partition.Validate(); err != nil {
		return journal.Value{}, err
	}
	if ctx.Err() != nil {
		return journal.Value{}, context.Cause(ctx)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	v, err := e.enterSeen(ctx)
	if err != nil {
		return journal.Value{}, err
	}
	defer v.leave()
	return e.lazyValue(key)
}

// lazyValue returns the newest version of a lazy value; the lock is held.
func (e *Engine) lazyValue(key journal.ValueKey) (journal.Value, error) {
	if v, ok := e.lazy[key]; ok {
		return v.Clone(), nil
	}
	if v, ok := e.saving[key]; ok {
		return v.Clone(), nil
	}
	return e.view.value(layout.KindLazy, key)
}

// PutLazy implements journal.Engine.
func (e *Engine) PutLazy(ctx context.Context, writes ...journal.ValueWrite) error {
	if len(writes) == 0 {
		return nil
	}
	if err := journal.ValidateValues(writes[0].Key.Partition, writes); err != nil {
		return err
	}
	size := int64(0)
	for i := range writes {
		size += int64(len(writes[i].Key.Name) + len(writes[i].Data))
	}
	if err := e.enterWhen(ctx, e.refusal, func() bool { return e.fitsLazy(size) }); err != nil {
		return err
	}
	defer e.mu.Unlock()
	versions := make([]uint64, len(writes))
	for i := range writes {
		w := &writes[i]
		at, err := e.lazyValue(w.Key)
		if err != nil {
			return err
		}
		if !w.Expect.Accepts(at.Version) {
			want, _ := w.Expect.Number()
			return &journal.ConflictError{
				Kind: journal.ValueConflict, Value: w.Key, Expected: want, Actual: at.Version,
				LostTo: journal.Settled(e.shard, e.book.Position(), e.book.Place().Term),
			}
		}
		versions[i] = at.Version
	}
	for i := range writes {
		w := &writes[i]
		delete(e.group.dropped, w.Key)
		if old, ok := e.lazy[w.Key]; ok {
			e.dirty -= int64(len(w.Key.Name) + len(old.Data))
		}
		e.dirty += int64(len(w.Key.Name) + len(w.Data))
		if w.Delete {
			e.lazy[w.Key] = journal.Value{}
		} else {
			e.lazy[w.Key] = journal.Value{Data: append([]byte{}, w.Data...), Version: versions[i] + 1}
		}
	}
	if len(e.lazy) >= maxDirtyLazy {
		e.lazyDue = true
		signal(e.wake)
	}
	return nil
}

// fitsLazy reports whether lazy values of the given size may be kept until they are
// saved; otherwise it requests that the kept values are saved now. The lock is held.
func (e *Engine) fitsLazy(size int64) bool {
	if len(e.lazy)+len(e.saving) == 0 || e.dirty+e.leaving+size <= e.opts.MaxUnsynced {
		return true
	}
	e.lazyDue = true
	signal(e.wake)
	return false
}

// Values implements journal.Engine.
func (e *Engine) Values(ctx context.Context, p journal.PartitionName, opts journal.ValuesOptions) (journal.ValuesPage, error) {
	if err := p.Validate(); err != nil {
		return journal.ValuesPage{}, err
	}
	if ctx.Err() != nil {
		return journal.ValuesPage{}, context.Cause(ctx)
	}
	e.mu.Lock()
	v, err := e.enterSeen(ctx)
	if err != nil {
		e.mu.Unlock()
		return journal.ValuesPage{}, err
	}
	defer v.leave()
	fresh := map[string]journal.Value{} // lazy values that the view does not have
	if opts.Lazy {
		e.collectLazy(fresh, e.saving, p, opts)
		e.collectLazy(fresh, e.lazy, p, opts)
	}
	e.mu.Unlock()
	return v.values(p, opts, fresh)
}

func (e *Engine) collectLazy(
	into map[string]journal.Value, from map[journal.ValueKey]journal.Value, p journal.PartitionName, opts journal.ValuesOptions,
) {
	for key, v := range from {
		if key.Partition == p && strings.HasPrefix(key.Name, opts.Prefix) && key.Name > opts.After {
			into[key.Name] = v.Clone()
		}
	}
}

// values merges stored and fresh values, in the order of names.
func (v *view) values(p journal.PartitionName, opts journal.ValuesOptions, fresh map[string]journal.Value) (journal.ValuesPage, error) {
	kind := byte(layout.KindValue)
	if opts.Lazy {
		kind = layout.KindLazy
	}
	prefix := layout.ValueKey(nil, kind, journal.ValueKey{Partition: p, Name: opts.Prefix})
	start := len(layout.PartitionKey(nil, kind, p))
	lower := prefix
	if opts.After >= opts.Prefix && opts.After != "" {
		lower = append(layout.ValueKey(nil, kind, journal.ValueKey{Partition: p, Name: opts.After}), 0)
	}
	names := slices.Sorted(maps.Keys(fresh))
	var page journal.ValuesPage
	limits := opts.Limits.WithDefaults()
	size := 0
	add := func(name string, value journal.Value) bool {
		weight := len(name) + len(value.Data)
		if len(page.Values) > 0 && (len(page.Values) == limits.Entries || size+weight > limits.Bytes) {
			page.More = true
			return false
		}
		size += weight
		page.Values = append(page.Values, journal.NamedValue{Name: name, Value: value})
		return true
	}
	addFresh := func(before string, all bool) bool {
		for len(names) > 0 && (all || names[0] < before) {
			name := names[0]
			names = names[1:]
			if fresh[name].Version != 0 && !add(name, fresh[name]) {
				return false
			}
		}
		return true
	}
	it, err := v.iter(lower, layout.After(prefix))
	if err != nil {
		return page, err
	}
	defer it.Close() //nolint:errcheck // read errors are looked at below
	for ok := it.First(); ok; ok = it.Next() {
		name := string(it.Key()[start:])
		if !addFresh(name, false) {
			return page, nil
		}
		if _, newer := fresh[name]; newer {
			continue
		}
		raw, err := it.ValueAndErr()
		if err != nil {
			return page, layout.StoreError(err)
		}
		value, err := layout.DecodeValue(it.Key(), raw)
		if err != nil {
			return page, layout.Damaged(err, "value %q of %v", name, p)
		}
		if !add(name, value) {
			return page, nil
		}
	}
	if err := it.Error(); err != nil {
		return page, layout.StoreError(err)
	}
	addFresh("", true)
	return page, nil
}
