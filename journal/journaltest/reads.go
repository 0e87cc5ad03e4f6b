package journaltest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/parley-hub/parley/journal"
)

var readCases = []testCase{
	{"a log is read forward, backward, in ranges and in pages", readRanges},
	{"a page is bounded in entries and bytes", readPages},
	{"a partition's logs are listed", readLogs},
	{"reading another incarnation is a gap", readIncarnation},
}

func readRanges(t *testing.T, open Open) {
	r := start(t, open, Options{})
	const n = 30
	all := numbered("r", 1, n)
	for i := 0; i < n; i += 3 {
		r.commit(batch(to(alpha, all[i:i+3]...), to(beta, "noise")))
	}
	for _, c := range []struct{ from, to, first, last int }{
		{0, 0, 1, n},
		{1, n, 1, n},
		{5, 0, 5, n},
		{0, 7, 1, 7},
		{5, 7, 5, 7},
		{7, 7, 7, 7},
		{7, 5, 1, 0},
		{n, 0, n, n},
		{n + 1, 0, 1, 0},
		{20, n + 100, 20, n},
	} {
		var want []string
		for i := c.first; i <= c.last; i++ {
			want = append(want, all[i-1])
		}
		for _, limit := range []int{0, 1, 4} {
			opts := journal.ReadOptions{From: uint64(c.from), To: uint64(c.to), Limits: journal.Limits{Entries: limit}}
			equal(t, r.read(alpha, opts), want)
			opts.Backward = true
			equal(t, r.read(alpha, opts), reversed(want))
		}
	}
	r.reopen()
	equal(t, r.texts(alpha), all)
}

func readPages(t *testing.T, open Open) {
	r := start(t, open, Options{})
	for i := range 10 {
		r.commit(batch(to(alpha, fmt.Sprintf("%0100d", i))))
	}
	page := func(opts journal.ReadOptions) (seqs []uint64, next uint64) {
		p, err := r.Read(r.ctx, alpha, opts)
		need(t, err)
		for _, entry := range p.Entries {
			seqs = append(seqs, entry.Seq)
		}
		equal(t, p.Head.Seq, uint64(10))
		return seqs, p.Next
	}
	seqs, next := page(journal.ReadOptions{Limits: journal.Limits{Entries: 3}})
	equal(t, seqs, []uint64{1, 2, 3})
	equal(t, next, uint64(4))
	seqs, next = page(journal.ReadOptions{From: 4, Backward: true, Limits: journal.Limits{Bytes: 250}})
	equal(t, seqs, []uint64{10, 9})
	equal(t, next, uint64(8))
	seqs, next = page(journal.ReadOptions{From: 9, Limits: journal.Limits{Entries: 2}})
	equal(t, seqs, []uint64{9, 10})
	equal(t, next, uint64(0))
	seqs, next = page(journal.ReadOptions{Backward: true, From: 2, To: 3, Limits: journal.Limits{Entries: 2}})
	equal(t, seqs, []uint64{3, 2})
	equal(t, next, uint64(0))
	seqs, next = page(journal.ReadOptions{Limits: journal.Limits{Bytes: 1}})
	equal(t, seqs, []uint64{1})
	equal(t, next, uint64(2))
}

func readLogs(t *testing.T, open Open) {
	r := start(t, open, Options{})
	var names []journal.LogName
	for _, family := range []string{"audit", "log"} {
		for _, id := range []string{"a", "b", "c"} {
			names = append(names, home.In(family, id))
		}
	}
	for i := range names {
		r.commit(batch(to(names[(i*5)%len(names)], "x")))
	}
	r.commit(batch(to(other.In("log", "z"), "x")))
	list := func(opts journal.LogsOptions) (got []journal.LogName, more bool) {
		page, err := r.Logs(r.ctx, home, opts)
		need(t, err)
		for _, info := range page.Logs {
			equal(t, info.Head, r.head(info.Log).Durable)
			got = append(got, info.Log)
		}
		return got, page.More
	}
	// In the order of the encoded names: shorter parts first.
	byCode := []journal.LogName{names[3], names[4], names[5], names[0], names[1], names[2]}
	got, more := list(journal.LogsOptions{})
	equal(t, got, byCode)
	equal(t, more, false)
	got, more = list(journal.LogsOptions{Limit: 4})
	equal(t, got, byCode[:4])
	equal(t, more, true)
	got, more = list(journal.LogsOptions{Limit: 4, After: byCode[3]})
	equal(t, got, byCode[4:])
	equal(t, more, false)
	got, _ = list(journal.LogsOptions{Family: "audit"})
	equal(t, got, names[:3])
	// After a log of another partition: all of this one's, or none.
	for _, name := range []string{"aaaa", "zzzz"} {
		far := journal.PartitionName{Tenant: home.Tenant, Partition: name}
		r.commit(batch(to(far.In("log", "a"), "x"), to(far.In("log", "b"), "x")))
		got, more = list(journal.LogsOptions{After: far.In("log", "a")})
		want := byCode
		if name > home.Partition {
			want = nil
		}
		equal(t, got, want)
		equal(t, more, false)
	}
}

func readIncarnation(t *testing.T, open Open) {
	r := start(t, open, Options{})
	old := r.commit(batch(to(alpha, "1", "2"))).Position(0)
	opts := journal.ReadOptions{From: 2, Incarnation: old.Incarnation}
	equal(t, r.read(alpha, opts), []string{"2"})
	drop, err := r.Drop(r.ctx, alpha)
	need(t, err)
	need(t, drop.Wait(r.ctx))
	wantGap := func(head journal.Position) {
		_, err := r.Read(r.ctx, alpha, opts)
		var gap *journal.GapError
		if !errors.As(err, &gap) {
			t.Fatalf("got %v, want a gap", err)
		}
		equal(t, *gap, journal.GapError{
			Reason: journal.LogDropped, Log: alpha, Head: head,
			Want: journal.Position{Epoch: old.Epoch, Incarnation: old.Incarnation, Seq: 1},
		})
	}
	wantGap(journal.Position{})
	wantGap(r.commit(batch(to(alpha, "new"))).Position(0))
	equal(t, r.texts(alpha), []string{"new"})
}
