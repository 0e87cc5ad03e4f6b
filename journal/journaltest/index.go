package journaltest

import (
	"fmt"
	"testing"

	"github.com/parley-hub/parley/journal"
)

var indexCases = []testCase{
	{"index entries are put, replaced and removed", indexWrites},
	{"an index entry belongs to its log", indexOwner},
	{"the index is scanned by prefix and range, both ways, in pages", indexScan},
	{"index and claims rebuilt from the records are the same", indexRebuild},
	{"the index of what is not durable is not seen", indexPending},
}

func indexWrites(t *testing.T, open Open) {
	r := start(t, open, Options{})
	r.commit(batch(records(alpha,
		journal.Record{Put: []journal.IndexPut{put("a", "1"), put("b", "1"), put("c", "1")}},
		journal.Record{Put: []journal.IndexPut{put("b", "2")}, Remove: [][]byte{[]byte("c"), []byte("never")}},
	)))
	equal(t, r.index(), []string{"a=1", "b=2"})
	// In a record, removals come before puts.
	r.commit(batch(records(alpha, journal.Record{
		Put: []journal.IndexPut{put("a", "3")}, Remove: [][]byte{[]byte("a"), []byte("b")},
	})))
	equal(t, r.index(), []string{"a=3"})
	r.reopen()
	equal(t, r.index(), []string{"a=3"})
}

func indexOwner(t *testing.T, open Open) {
	r := start(t, open, Options{})
	r.commit(batch(
		records(alpha, journal.Record{Put: []journal.IndexPut{put("k", "alpha")}}),
		records(beta, journal.Record{Put: []journal.IndexPut{put("k", "beta")}}),
	))
	far := other.In("log", "far")
	r.commit(batch(records(far, journal.Record{Put: []journal.IndexPut{put("k", "far")}})))
	equal(t, r.index(), []string{"k=alpha", "k=beta", "k=far"})
	r.commit(batch(records(beta, journal.Record{Remove: [][]byte{[]byte("k")}})))
	equal(t, r.index(), []string{"k=alpha", "k=far"})
	// Paging does not lose or repeat entries under one key.
	equal(t, r.scan(journal.ScanOptions{Limits: journal.Limits{Entries: 1}}), []string{"k=alpha", "k=far"})
	equal(t, r.scan(journal.ScanOptions{Limits: journal.Limits{Entries: 1}, Backward: true}), []string{"k=far", "k=alpha"})
}

func indexScan(t *testing.T, open Open) {
	r := start(t, open, Options{})
	keys := []string{"a", "a\x00", "a\x00\x01", "a\x00\xff", "a\x01", "aa", "ab", "b", "b\xff", "b\xff\xff", "c", "\xff", "\xff\xff"}
	for i := range keys {
		k := keys[(i*5)%len(keys)]
		log := home.In("log", fmt.Sprint(i%3))
		r.commit(batch(records(log, journal.Record{Put: []journal.IndexPut{put(k, "")}})))
	}
	for _, opts := range []journal.ScanOptions{
		{},
		{Prefix: []byte("a")},
		{Prefix: []byte("a\x00")},
		{Prefix: []byte("b\xff")},
		{Prefix: []byte("\xff")},
		{Prefix: []byte("zzz")},
		{From: []byte("a\x01"), To: []byte("b")},
		{Prefix: []byte("a"), From: []byte("aa")},
		{Prefix: []byte("a"), To: []byte("aa")},
		{Prefix: []byte("b"), From: []byte("a"), To: []byte("zz")},
		{From: []byte("b"), To: []byte("b")},
		{From: []byte("c"), To: []byte("b")},
		{To: []byte("a\x00")},
		{From: []byte("\xff\xff")},
	} {
		var want []string
		for _, k := range keys {
			if inScan(k, opts) {
				want = append(want, k+"=")
			}
		}
		for _, limit := range []int{0, 1, 3} {
			opts.Limits.Entries = limit
			opts.Backward = false
			equal(t, r.scan(opts), want)
			opts.Backward = true
			equal(t, r.scan(opts), reversed(want))
		}
	}
}

func inScan(k string, opts journal.ScanOptions) bool {
	prefix := string(opts.Prefix)
	return len(k) >= len(prefix) && k[:len(prefix)] == prefix && k >= string(opts.From) &&
		(len(opts.To) == 0 || k < string(opts.To))
}

func reversed(list []string) []string {
	var out []string
	for i := len(list) - 1; i >= 0; i-- {
		out = append(out, list[i])
	}
	return out
}

// indexRebuild makes a history in which later records undo earlier ones in
// every way, and compares the index before and after a rebuild.
func indexRebuild(t *testing.T, open Open) {
	r := start(t, open, Options{})
	for i := range 40 {
		log := home.In("log", fmt.Sprint(i%4))
		rec := journal.Record{Put: []journal.IndexPut{
			put(fmt.Sprintf("k%d", i%7), fmt.Sprint(i)), put(fmt.Sprintf("own%d", i), ""),
		}}
		if i%3 == 0 {
			rec.Remove = [][]byte{fmt.Appendf(nil, "k%d", (i+1)%7), fmt.Appendf(nil, "own%d", i-4)}
		}
		if i%5 == 0 {
			rec.Take = []journal.Take{{Name: fmt.Sprintf("c%d", i)}}
		}
		if i >= 20 && i%10 == 4 {
			rec.Release = []string{fmt.Sprintf("c%d", i-4), fmt.Sprintf("c%d", i-24)}
		}
		r.commit(batch(records(log, rec)))
	}
	drop, err := r.Drop(r.ctx, home.In("log", "2"))
	need(t, err)
	need(t, drop.Wait(r.ctx))
	r.commit(batch(records(home.In("log", "2"), journal.Record{Put: []journal.IndexPut{put("k0", "again")}})))
	claims := func() (out []journal.ClaimState) {
		for i := range 40 {
			out = append(out, r.claim(fmt.Sprintf("c%d", i)))
		}
		return out
	}
	index, held := r.index(), claims()
	if len(index) < 10 {
		t.Fatalf("the history left only %v", index)
	}
	need(t, r.RebuildIndex(r.ctx))
	equal(t, r.index(), index)
	equal(t, claims(), held)
	r.settleRemovals()
	index, held = r.index(), claims()
	need(t, r.Engine.Close())
	r.LoseIndex(t)
	r.Engine, r.Faults = r.Reopen(t)
	equal(t, r.index(), index)
	equal(t, claims(), held)
	r.commit(batch(records(alpha, journal.Record{Put: []journal.IndexPut{put("after", "")}})))
	r.reopen()
	equal(t, len(r.index()), len(index)+1)
}

func indexPending(t *testing.T, open Open) {
	r := start(t, open, Options{})
	r.commit(batch(records(alpha, journal.Record{Put: []journal.IndexPut{put("a", "old"), put("b", "old")}})))
	reached, release := r.HoldSync()
	defer release()
	ticket := r.order(batch(records(alpha, journal.Record{
		Put: []journal.IndexPut{put("a", "new"), put("c", "new")}, Remove: [][]byte{[]byte("b")},
	})))
	r.await(reached, "a sync")
	equal(t, r.index(), []string{"a=old", "b=old"})
	pending(t, ticket)
	release()
	need(t, ticket.Wait(r.ctx))
	equal(t, r.index(), []string{"a=new", "c=new"})
}
