package journaltest

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/parley-hub/parley/journal"
)

var batchCases = []testCase{
	{"records are numbered from 1 without holes", numbering},
	{"offsets count batches in commit order", offsets},
	{"concurrent writers get sequences without holes or repeats", concurrentNumbering},
	{"a batch is atomic", atomicBatch},
	{"a batch within its bounds is taken, beyond them refused", bounds},
	{"a batch touches one partition", onePartition},
	{"an expected sequence is compared with what is ordered", expectedSequence},
	{"of writers who expect the same sequence one wins", expectedRace},
	{"the caller may use its bytes again", ownBytes},
}

func numbering(t *testing.T, open Open) {
	r := start(t, open, Options{})
	first := r.commit(batch(to(alpha, "a1", "a2")))
	equal(t, first.Appended(), []journal.Appended{{Incarnation: first.Offset(), First: 1, Last: 2}})
	second := r.commit(batch(to(beta, "b1"), to(alpha, "a3")))
	equal(t, second.Appended(), []journal.Appended{
		{Incarnation: second.Offset(), First: 1, Last: 1},
		{Incarnation: first.Offset(), First: 3, Last: 3},
	})
	equal(t, second.Position(1), journal.Position{Epoch: r.place().Epoch, Incarnation: first.Offset(), Seq: 3})
	page, err := r.Read(r.ctx, alpha, journal.ReadOptions{})
	need(t, err)
	equal(t, page.Entries, []journal.Entry{
		{Seq: 1, Offset: first.Offset(), Data: []byte("a1")},
		{Seq: 2, Offset: first.Offset(), Data: []byte("a2")},
		{Seq: 3, Offset: second.Offset(), Data: []byte("a3")},
	})
	want := journal.Head{Epoch: first.Epoch(), Incarnation: first.Offset(), Seq: 3, Offset: second.Offset()}
	equal(t, page.Head, want)
	equal(t, r.head(alpha), journal.Heads{Durable: want, Ordered: want})
	equal(t, r.head(home.In("log", "none")), journal.Heads{
		Durable: journal.Head{Epoch: first.Epoch()}, Ordered: journal.Head{Epoch: first.Epoch()},
	})
}

func offsets(t *testing.T, open Open) {
	r := start(t, open, Options{})
	before := r.place()
	for i := range uint64(5) {
		ticket := r.order(batch(to(other.In("log", fmt.Sprint(i)), "x")))
		equal(t, ticket.Offset(), before.Durable+i+1)
		equal(t, ticket.Shard(), r.shard())
		equal(t, ticket.Epoch(), before.Epoch)
		equal(t, ticket.Term(), before.Term)
	}
	last := r.commit(batch(to(alpha, "x")))
	place := r.place()
	equal(t, place.Ordered, before.Durable+6)
	equal(t, place.Durable, last.Offset())
}

func concurrentNumbering(t *testing.T, open Open) {
	r := start(t, open, Options{})
	const writers, each = 16, 25
	var wg sync.WaitGroup
	var mu sync.Mutex
	given := map[uint64]string{} // sequence to text
	byOffset := map[uint64]uint64{}
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				text := fmt.Sprintf("%d/%d", w, i)
				ticket, err := r.Append(r.ctx, batch(to(alpha, text, text+"'")))
				if err == nil {
					err = ticket.Wait(r.ctx)
				}
				if err != nil {
					t.Error(err)
					return
				}
				a := ticket.Appended()[0]
				mu.Lock()
				given[a.First], given[a.Last] = text, text+"'"
				byOffset[ticket.Offset()] = a.First
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	var want []string
	for seq := uint64(1); seq <= writers*each*2; seq++ {
		want = append(want, given[seq])
	}
	equal(t, r.texts(alpha), want)
	if len(byOffset) != writers*each {
		t.Fatalf("%d batches got %d different offsets", writers*each, len(byOffset))
	}
	var order []uint64
	for offset := range byOffset {
		order = append(order, offset)
	}
	slices.Sort(order)
	for i, offset := range order {
		equal(t, byOffset[offset], uint64(2*i+1))
	}
}

func atomicBatch(t *testing.T, open Open) {
	r := start(t, open, Options{})
	key := journal.ValueKey{Partition: home, Name: "floor"}
	r.commit(batch(records(beta, journal.Record{Data: []byte("b1"), Take: []journal.Take{{Name: "held"}}})))
	before := r.place()
	b := journal.Batch{
		Appends: []journal.Append{
			records(alpha, journal.Record{
				Data: []byte("a1"), Put: []journal.IndexPut{put("k", "v")}, Take: []journal.Take{{Name: "free"}},
			}),
			expecting(7, to(beta, "b2")),
		},
		Values: []journal.ValueWrite{{Key: key, Data: []byte("1")}},
	}
	_ = r.refused(b, journal.SequenceConflict)
	b.Appends[1] = records(beta, journal.Record{Data: []byte("b2"), Take: []journal.Take{{Name: "held"}}})
	_ = r.refused(b, journal.ClaimConflict)
	b.Appends[1] = to(beta, "b2")
	b.Values[0].Expect = journal.Exactly(3)
	_ = r.refused(b, journal.ValueConflict)

	r.unmoved(before)
	equal(t, r.texts(alpha), nil)
	equal(t, r.texts(beta), []string{"b1"})
	equal(t, r.index(), nil)
	equal(t, r.claim("free"), journal.ClaimState{})
	equal(t, r.value(key), journal.ValueState{})

	b.Values[0].Expect = journal.Exactly(0)
	ticket := r.commit(b)
	equal(t, ticket.Offset(), before.Ordered+1)
	equal(t, r.texts(alpha), []string{"a1"})
	equal(t, r.texts(beta), []string{"b1", "b2"})
	equal(t, r.index(), []string{"k=v"})
	equal(t, r.claim("free").Durable.Log, alpha)
	equal(t, string(r.value(key).Durable.Data), "1")
}

func bounds(t *testing.T, open Open) {
	r := start(t, open, Options{})
	before := r.place()
	many := make([]journal.Record, journal.MaxBatchRecords+1)
	for i := range many {
		many[i].Data = []byte{byte(i)}
	}
	long := make([]byte, journal.MaxKey+1)
	big := make([]byte, journal.MaxBatchBytes)
	name := make([]byte, journal.MaxNamePart+1)
	for i := range name {
		name[i] = 'n'
	}
	refused := map[string]journal.Batch{
		"nothing":        {},
		"no records":     batch(journal.Append{Log: alpha}),
		"too many":       batch(records(alpha, many...)),
		"many in two":    batch(records(alpha, many[:600]...), records(beta, many[:600]...)),
		"too big":        batch(records(alpha, journal.Record{Data: big})),
		"big value":      {Values: []journal.ValueWrite{{Key: journal.ValueKey{Partition: home, Name: "v"}, Data: big}}},
		"same log twice": batch(to(alpha, "1"), to(alpha, "2")),
		"empty id":       batch(to(home.In("log", ""), "x")),
		"long id":        batch(to(home.In("log", string(name)), "x")),
		"empty key":      batch(records(alpha, journal.Record{Put: []journal.IndexPut{{}}})),
		"long key":       batch(records(alpha, journal.Record{Put: []journal.IndexPut{{Key: long}}})),
		"long remove":    batch(records(alpha, journal.Record{Remove: [][]byte{long}})),
		"empty claim":    batch(records(alpha, journal.Record{Take: []journal.Take{{}}})),
		"long release":   batch(records(alpha, journal.Record{Release: []string{string(long)}})),
		"same value twice": {Values: []journal.ValueWrite{
			{Key: journal.ValueKey{Partition: home, Name: "v"}}, {Key: journal.ValueKey{Partition: home, Name: "v"}},
		}},
		"claim taken twice": batch(records(alpha,
			journal.Record{Take: []journal.Take{{Name: "c"}}}, journal.Record{Take: []journal.Take{{Name: "c"}}})),
	}
	for what, b := range refused {
		_, err := r.Append(r.ctx, b)
		if err == nil {
			t.Errorf("%s: accepted", what)
			continue
		}
		invalid(t, err)
	}
	r.unmoved(before)

	ticket := r.commit(batch(records(alpha, many[:journal.MaxBatchRecords]...)))
	equal(t, ticket.Appended()[0].Last, uint64(journal.MaxBatchRecords))
	fits := big[:journal.MaxBatchBytes-1024]
	fits[0], fits[len(fits)-1] = 1, 2
	r.commit(batch(records(beta, journal.Record{Data: fits})))
	page, err := r.Read(r.ctx, beta, journal.ReadOptions{Limits: journal.Limits{Bytes: 10}})
	need(t, err)
	equal(t, len(page.Entries), 1)
	if !slices.Equal(page.Entries[0].Data, fits) {
		t.Fatal("a large record came back changed")
	}
	equal(t, len(r.texts(alpha)), journal.MaxBatchRecords)
}

func onePartition(t *testing.T, open Open) {
	r := start(t, open, Options{})
	before := r.place()
	_, err := r.Append(r.ctx, batch(to(alpha, "1"), to(other.In("log", "alpha"), "2")))
	invalid(t, err)
	_, err = r.Append(r.ctx, journal.Batch{
		Appends: []journal.Append{to(alpha, "1")},
		Values:  []journal.ValueWrite{{Key: journal.ValueKey{Partition: other, Name: "v"}, Data: []byte("x")}},
	})
	invalid(t, err)
	elsewhere := journal.LogName{Tenant: "umbrella", Partition: "home", Family: "log", ID: "alpha"}
	_, err = r.Append(r.ctx, batch(to(alpha, "1"), to(elsewhere, "2")))
	invalid(t, err)
	err = r.PutLazy(r.ctx,
		journal.ValueWrite{Key: journal.ValueKey{Partition: home, Name: "v"}},
		journal.ValueWrite{Key: journal.ValueKey{Partition: other, Name: "v"}})
	invalid(t, err)
	r.unmoved(before)
	// Names that differ only in where a part ends name different logs.
	one := journal.LogName{Tenant: "a", Partition: "bc", Family: "d", ID: "e"}
	two := journal.LogName{Tenant: "ab", Partition: "c", Family: "d", ID: "e"}
	r.commit(batch(to(one, "one")))
	r.commit(batch(to(two, "two")))
	equal(t, r.texts(one), []string{"one"})
	equal(t, r.texts(two), []string{"two"})
}

func expectedSequence(t *testing.T, open Open) {
	r := start(t, open, Options{})
	conflict := r.refused(batch(expecting(1, to(alpha, "x"))), journal.SequenceConflict)
	equal(t, conflict.Log, alpha)
	equal(t, conflict.Expected, uint64(1))
	equal(t, conflict.Actual, uint64(0))
	equal(t, conflict.LostTo.Outcome(), journal.Durable)

	first := r.commit(batch(expecting(0, to(alpha, "1"))))
	reached, release := r.HoldSync()
	defer release()
	second := r.order(batch(expecting(1, to(alpha, "2"))))
	r.await(reached, "a sync")
	third := r.order(batch(expecting(2, to(alpha, "3", "4"))))
	conflict = r.refused(batch(expecting(1, to(alpha, "x"))), journal.SequenceConflict)
	equal(t, conflict.Actual, uint64(4))
	equal(t, conflict.LostTo, third)
	conflict = r.refused(batch(expecting(0, to(alpha, "x"))), journal.SequenceConflict)
	equal(t, conflict.LostTo, third)
	pending(t, second, third)
	release()
	need(t, third.Wait(r.ctx))
	conflict = r.refused(batch(expecting(2, to(alpha, "x"))), journal.SequenceConflict)
	equal(t, conflict.LostTo.Outcome(), journal.Durable)
	equal(t, conflict.LostTo.Offset(), third.Offset())
	equal(t, r.texts(alpha), []string{"1", "2", "3", "4"})
	equal(t, third.Appended()[0].Incarnation, first.Offset())
}

func expectedRace(t *testing.T, open Open) {
	r := start(t, open, Options{})
	const writers, rounds = 8, 20
	won := make([]string, rounds)
	var wg sync.WaitGroup
	var mu sync.Mutex
	for w := range writers {
		wg.Go(func() {
			for i := 0; i < rounds; {
				text := fmt.Sprintf("%d wins %d", w, i)
				ticket, err := r.Append(r.ctx, batch(expecting(uint64(i), to(alpha, text))))
				if err != nil {
					i++ // another writer was first
					continue
				}
				mu.Lock()
				if won[i] != "" {
					t.Errorf("both %q and %q", won[i], text)
				}
				won[i] = text
				mu.Unlock()
				if err := ticket.Wait(r.ctx); err != nil {
					t.Error(err)
				}
				i++
			}
		})
	}
	wg.Wait()
	equal(t, r.texts(alpha), won)
}

func ownBytes(t *testing.T, open Open) {
	r := start(t, open, Options{})
	_, release := r.HoldSync()
	defer release()
	data, key, value, v := []byte("data"), []byte("key"), []byte("value"), []byte("val")
	at := journal.ValueKey{Partition: home, Name: "v"}
	ticket := r.order(journal.Batch{
		Appends: []journal.Append{records(alpha, journal.Record{
			Data: data, Put: []journal.IndexPut{{Key: key, Value: value}},
		})},
		Values: []journal.ValueWrite{{Key: at, Data: v}},
	})
	lazy := []byte("lazy")
	need(t, r.PutLazy(r.ctx, journal.ValueWrite{Key: at, Data: lazy}))
	for _, b := range [][]byte{data, key, value, v, lazy} {
		clear(b)
	}
	release()
	need(t, ticket.Wait(r.ctx))
	for range 2 {
		page, err := r.Read(r.ctx, alpha, journal.ReadOptions{})
		need(t, err)
		equal(t, string(page.Entries[0].Data), "data")
		clear(page.Entries[0].Data) // a page is the caller's to change
		equal(t, r.index(), []string{"key=value"})
		state := r.value(at)
		equal(t, string(state.Durable.Data), "val")
		clear(state.Durable.Data)
		equal(t, r.lazy(at), "lazy")
	}
}
