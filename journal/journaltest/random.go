package journaltest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/parley-hub/parley/journal"
)

// Random runs random operations on an engine and on a simple model, and
// requires the same results: appends with expectations, claims and values,
// drops, rebuilds, reopenings, crashes with and without batches in flight.
func Random(t *testing.T, open Open) {
	t.Helper()
	rapid.Check(t, func(rt *rapid.T) {
		clock := newClock()
		r := &randomRun{clock: clock, model: newModel(clock.now)}
		r.rig = start(t, open, Options{Now: clock.now})
		r.t = rt
		defer func() { _ = r.Engine.Close() }()
		rt.Repeat(map[string]func(*rapid.T){
			"append":         r.appendSome,
			"append again":   r.appendSome, // twice as often
			"lazy":           r.putLazy,
			"drop":           r.dropLog,
			"drop partition": r.dropPartition,
			"reopen":         func(*rapid.T) { r.reopen() },
			"crash":          func(*rapid.T) { r.settleLazy(); r.crash() },
			"lose":           r.lose,
			"rebuild":        func(*rapid.T) { need(r.t, r.RebuildIndex(r.ctx)) },
			"time":           func(rt *rapid.T) { clock.advance(time.Duration(rapid.IntRange(1, 90).Draw(rt, "s")) * time.Second) },
			"":               r.compare,
		})
	})
}

type randomRun struct {
	*rig
	clock *clock
	model *model
}

var (
	randomPartitions = []journal.PartitionName{home, other}
	randomFamilies   = []string{"log", "audit"}
	randomKeys       = []string{"a", "a\x00", "a\x00\xff", "b", "c"}
)

func drawLog(rt *rapid.T, p journal.PartitionName) journal.LogName {
	return p.In(rapid.SampledFrom(randomFamilies).Draw(rt, "family"), rapid.SampledFrom([]string{"1", "2"}).Draw(rt, "id"))
}

func (r *randomRun) drawBatch(rt *rapid.T) journal.Batch {
	p := rapid.SampledFrom(randomPartitions).Draw(rt, "partition")
	b := journal.Batch{}
	logs := map[journal.LogName]bool{}
	state := r.model.replay()
	for range rapid.IntRange(0, 2).Draw(rt, "appends") {
		log := drawLog(rt, p)
		if logs[log] {
			continue
		}
		logs[log] = true
		a := journal.Append{Log: log}
		if rapid.Bool().Draw(rt, "expects") {
			seq := uint64(0)
			if l := state.logs[log]; l != nil {
				seq = uint64(len(l.records))
			}
			a.Expect = journal.Exactly(seq + uint64(rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(rt, "off by")))
		}
		for range rapid.IntRange(1, 3).Draw(rt, "records") {
			a.Records = append(a.Records, r.drawRecord(rt))
		}
		b.Appends = append(b.Appends, a)
	}
	names := map[string]bool{}
	for range rapid.IntRange(0, 2).Draw(rt, "values") {
		w := drawValue(rt, p, state.values)
		if !names[w.Key.Name] {
			names[w.Key.Name] = true
			b.Values = append(b.Values, w)
		}
	}
	return b
}

func drawValue(rt *rapid.T, p journal.PartitionName, values map[journal.ValueKey]journal.Value) journal.ValueWrite {
	w := journal.ValueWrite{
		Key:    journal.ValueKey{Partition: p, Name: rapid.SampledFrom([]string{"v", "w"}).Draw(rt, "name")},
		Data:   []byte(rapid.StringMatching(`[a-z]{0,4}`).Draw(rt, "data")),
		Delete: rapid.IntRange(0, 4).Draw(rt, "delete") == 0,
	}
	if w.Delete {
		w.Data = nil
	}
	if rapid.Bool().Draw(rt, "compares") {
		w.Expect = journal.Exactly(values[w.Key].Version + uint64(rapid.SampledFrom([]int{0, 0, 1}).Draw(rt, "off by")))
	}
	return w
}

func (r *randomRun) drawRecord(rt *rapid.T) journal.Record {
	rec := journal.Record{Data: []byte(rapid.StringMatching(`[a-z]{0,6}`).Draw(rt, "data"))}
	some := func(what string) []string {
		return rapid.SliceOfNDistinct(rapid.SampledFrom(randomKeys), 0, 2, rapid.ID[string]).Draw(rt, what)
	}
	for _, key := range some("puts") {
		rec.Put = append(rec.Put, put(key, rapid.StringMatching(`[0-9]{0,2}`).Draw(rt, "value")))
	}
	for _, key := range some("removes") {
		rec.Remove = append(rec.Remove, []byte(key))
	}
	for _, name := range some("takes") {
		take := journal.Take{Name: name}
		if rapid.Bool().Draw(rt, "expires") {
			take.Expires = r.clock.now().Add(time.Duration(rapid.IntRange(0, 60).Draw(rt, "in")) * time.Second)
		}
		rec.Take = append(rec.Take, take)
	}
	rec.Release = some("releases")
	return rec
}

// doomed reports whether a batch takes a claim twice, or is empty: such a batch is
// refused in every state.
func doomed(b journal.Batch) bool {
	if len(b.Appends) == 0 && len(b.Values) == 0 {
		return true
	}
	held := map[string]bool{}
	for i, a := range b.Appends {
		for _, rec := range a.Records {
			for _, name := range rec.Release {
				if held[fmt.Sprint(i, name)] {
					delete(held, name)
					delete(held, fmt.Sprint(i, name))
				}
			}
			for _, take := range rec.Take {
				if held[take.Name] {
					return true
				}
				held[take.Name], held[fmt.Sprint(i, take.Name)] = true, true
			}
		}
	}
	return false
}

func (r *randomRun) appendSome(rt *rapid.T) {
	b := r.drawBatch(rt)
	if doomed(b) {
		return
	}
	want := r.model.append(b)
	ticket, err := r.Append(r.ctx, b)
	if want == 0 {
		need(r.t, err)
		need(r.t, ticket.Wait(r.ctx))
		equal(r.t, ticket.Offset(), uint64(len(r.model.commits)))
		return
	}
	var conflict *journal.ConflictError
	if !errors.As(err, &conflict) || conflict.Kind != want {
		r.t.Fatalf("the model refuses with %v, the engine answers %v", want, err)
	}
}

func (r *randomRun) putLazy(rt *rapid.T) {
	values := map[journal.ValueKey]journal.Value{}
	for key, v := range r.model.lazy {
		values[key] = journal.Value{Version: v.version}
	}
	w := drawValue(rt, rapid.SampledFrom(randomPartitions).Draw(rt, "partition"), values)
	err := r.PutLazy(r.ctx, w)
	at := r.model.lazy[w.Key]
	if !w.Expect.Accepts(at.version) {
		var conflict *journal.ConflictError
		if !errors.As(err, &conflict) || conflict.Kind != journal.ValueConflict {
			r.t.Fatalf("the model refuses a lazy write, the engine answers %v", err)
		}
		return
	}
	need(r.t, err)
	if w.Delete {
		delete(r.model.lazy, w.Key)
	} else {
		r.model.lazy[w.Key] = modelLazy{string(w.Data), at.version + 1}
	}
}

// settleLazy makes lazy values durable: they are written with the next batch.
func (r *randomRun) settleLazy() {
	b := journal.Batch{Values: []journal.ValueWrite{{Key: journal.ValueKey{Partition: home, Name: "settle"}}}}
	r.model.append(b)
	r.commit(b)
}

func (r *randomRun) dropLog(rt *rapid.T) {
	log := drawLog(rt, rapid.SampledFrom(randomPartitions).Draw(rt, "partition"))
	ticket, err := r.Drop(r.ctx, log)
	need(r.t, err)
	need(r.t, ticket.Wait(r.ctx))
	r.model.dropLog(log)
}

func (r *randomRun) dropPartition(rt *rapid.T) {
	p := rapid.SampledFrom(randomPartitions).Draw(rt, "partition")
	keep := rapid.SampledFrom([][]string{nil, {"audit"}}).Draw(rt, "keep")
	ticket, err := r.DropPartition(r.ctx, p, keep...)
	need(r.t, err)
	need(r.t, ticket.Wait(r.ctx))
	r.model.dropPartition(p, keep)
}

// lose orders batches and drops while the sync is held, and crashes. The model does
// not get them: none is durable.
func (r *randomRun) lose(rt *rapid.T) {
	r.settleLazy()
	reached, release := r.HoldSync()
	defer release()
	ordered := 0
	for range rapid.IntRange(1, 3).Draw(rt, "batches") {
		if b := r.drawBatch(rt); !doomed(b) {
			if _, err := r.Append(r.ctx, b); err == nil {
				ordered++
			}
		}
	}
	if rapid.Bool().Draw(rt, "and drops") {
		if ticket, err := r.Drop(r.ctx, drawLog(rt, home)); err == nil && ticket.Outcome() == journal.Pending {
			ordered++
		}
	}
	if ordered > 0 {
		r.await(reached, "a sync")
	}
	r.crash()
}

// compare requires that everything that can be read agrees with the model.
func (r *randomRun) compare(*rapid.T) {
	s := r.model.replay()
	place := r.place()
	equal(r.t, place.Durable, uint64(len(r.model.commits)))
	equal(r.t, place.Ordered, place.Durable)
	for _, p := range randomPartitions {
		listed := map[journal.LogName]journal.Head{}
		page, err := r.Logs(r.ctx, p, journal.LogsOptions{})
		need(r.t, err)
		for _, info := range page.Logs {
			listed[info.Log] = info.Head
		}
		wanted := map[journal.LogName]journal.Head{}
		for log, l := range s.logs {
			if log.Of() == p {
				last := len(l.records)
				wanted[log] = journal.Head{
					Epoch: place.Epoch, Incarnation: l.incarnation, Seq: uint64(last), Offset: l.records[last-1].offset,
				}
				r.compareLog(log, l, wanted[log])
			}
		}
		equal(r.t, listed, wanted)
		for _, name := range []string{"v", "w"} {
			key := journal.ValueKey{Partition: p, Name: name}
			want := s.values[key]
			equal(r.t, r.value(key), journal.ValueState{Durable: want, Ordered: want})
			v, err := r.LazyValue(r.ctx, key)
			need(r.t, err)
			equal(r.t, modelLazy{string(v.Data), v.Version}.data, r.model.lazy[key].data)
			equal(r.t, v.Version, r.model.lazy[key].version)
		}
	}
	equal(r.t, r.index(), s.index())
	for _, name := range randomKeys {
		var want *journal.Claimed
		if c, held := s.claims[name]; held && (c.Expires.IsZero() || r.clock.now().Before(c.Expires)) {
			want = &c
		}
		equal(r.t, r.claim(name), journal.ClaimState{Durable: want, Ordered: want})
	}
}

func (r *randomRun) compareLog(log journal.LogName, l *modelLog, head journal.Head) {
	var got []string
	for entry, err := range journal.Records(r.ctx, r.Engine, log, journal.ReadOptions{Limits: journal.Limits{Entries: 2}}) {
		need(r.t, err)
		got = append(got, fmt.Sprintf("%d@%d %s", entry.Seq, entry.Offset, entry.Data))
	}
	equal(r.t, got, l.texts())
	equal(r.t, r.head(log), journal.Heads{Durable: head, Ordered: head})
}
