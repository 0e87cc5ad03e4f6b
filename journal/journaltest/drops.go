package journaltest

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/parley-hub/parley/journal"
)

var dropCases = []testCase{
	{"a dropped log is gone with its index entries", dropLog},
	{"a log dropped and created anew starts at 1", dropRecreate},
	{"dropping what does not exist does nothing", dropNothing},
	{"dropping partitions that have nothing", dropEmptyPartitions},
	{"a dropped partition is gone but for what is kept", dropPartition},
	{"a log with 25,000 entries is dropped whole", dropMany},
	{"a partition with many logs is dropped whole", dropManyLogs},
	{"a removal that was interrupted is finished by the next open", dropInterrupted},
	{"a drop that was not synced did not happen", dropCrash},
	{"a dropped partition's lazy values go when the drop is durable", dropLazy},
	{"a drop that failed takes no lazy values away", dropFailed},
}

// fill appends n records to a log, so that its removal takes several steps.
func fill(r *rig, log journal.LogName, n int) {
	r.t.Helper()
	var last *journal.Ticket
	for i := 0; i < n; i += 100 {
		a := journal.Append{Log: log}
		for j := i; j < min(i+100, n); j++ {
			a.Records = append(a.Records, journal.Record{
				Data: fmt.Appendf(nil, "%s %d", log.ID, j),
				Put:  []journal.IndexPut{put(fmt.Sprintf("%s/%05d", log.ID, j), "")},
				Take: []journal.Take{{Name: fmt.Sprintf("%s/%d", log.ID, j)}},
			})
		}
		last = r.order(batch(a))
	}
	need(r.t, last.Wait(r.ctx))
}

func (r *rig) gone(log journal.LogName, n int) {
	r.t.Helper()
	equal(r.t, r.texts(log), nil)
	equal(r.t, r.head(log).Durable.Exists(), false)
	equal(r.t, r.scan(journal.ScanOptions{Prefix: []byte(log.ID + "/")}), nil)
	for _, i := range []int{0, n / 2, n - 1} {
		equal(r.t, r.claim(fmt.Sprintf("%s/%d", log.ID, i)).Durable, nil)
	}
}

func dropLog(t *testing.T, open Open) {
	r := start(t, open, Options{})
	fill(r, alpha, 700)
	fill(r, beta, 3)
	before := r.place()
	ticket := r.drop(alpha)
	equal(t, ticket.Offset(), before.Ordered+1)
	r.gone(alpha, 700)
	r.settleRemovals()
	r.gone(alpha, 700)
	equal(t, len(r.texts(beta)), 3)
	equal(t, len(r.index()), 3)
	page, err := r.Logs(r.ctx, home, journal.LogsOptions{Family: "log"})
	need(t, err)
	equal(t, len(page.Logs), 1)
	r.reopen()
	r.gone(alpha, 700)
	equal(t, r.Stats().Removals, 0)
}

func dropRecreate(t *testing.T, open Open) {
	r := start(t, open, Options{})
	fill(r, alpha, 600)
	reached, release := r.HoldSync()
	defer release()
	drop, err := r.Drop(r.ctx, alpha)
	need(t, err)
	r.await(reached, "a sync")
	equal(t, len(r.texts(alpha)), 600) // still there for readers
	equal(t, r.head(alpha).Ordered.Exists(), false)
	equal(t, r.head(alpha).Pending, drop)
	conflict := r.refused(batch(expecting(600, to(alpha, "x"))), journal.SequenceConflict)
	equal(t, conflict.LostTo, drop)
	again := r.order(batch(expecting(0, records(alpha, journal.Record{
		Data: []byte("new"), Put: []journal.IndexPut{put("alpha/00000", "new")}, Take: []journal.Take{{Name: "alpha/0"}},
	}))))
	release()
	need(t, again.Wait(r.ctx))
	check := func() {
		t.Helper()
		equal(t, r.texts(alpha), []string{"new"})
		equal(t, r.index(), []string{"alpha/00000=new"})
		equal(t, r.claim("alpha/0").Durable.Offset, again.Offset())
		equal(t, r.claim("alpha/1").Durable, nil)
	}
	check()
	r.settleRemovals()
	check()
	equal(t, r.head(alpha).Durable.Incarnation, again.Offset())
	need(t, r.RebuildIndex(r.ctx))
	check()
	r.reopen()
	check()
	r.drop(alpha)
	equal(t, r.texts(alpha), nil)
}

func dropNothing(t *testing.T, open Open) {
	r := start(t, open, Options{})
	before := r.place()
	ticket, err := r.Drop(r.ctx, alpha)
	need(t, err)
	need(t, ticket.Wait(r.ctx))
	equal(t, r.place(), before)
	_, err = r.Drop(r.ctx, journal.LogName{})
	invalid(t, err)
	_, err = r.DropPartition(r.ctx, journal.PartitionName{})
	invalid(t, err)
}

// dropEmptyPartitions drops several partitions without contents at once.
func dropEmptyPartitions(t *testing.T, open Open) {
	r := start(t, open, Options{})
	reached, release := r.HoldSync()
	defer release()
	r.order(batch(to(other.In("log", "far"), "x")))
	r.await(reached, "a sync")
	var last *journal.Ticket
	for _, name := range []string{"one", "two", "three"} {
		ticket, err := r.DropPartition(r.ctx, journal.PartitionName{Tenant: home.Tenant, Partition: name})
		need(t, err)
		last = ticket
	}
	release()
	need(t, last.Wait(r.ctx))
	for r.Stats().Removals > 0 { // no other batch drives the removal
		if r.ctx.Err() != nil {
			t.Fatal("removal does not end")
		}
		runtime.Gosched()
	}
}

// dropMany drops a log with more records than fit a batch, in several steps.
func dropMany(t *testing.T, open Open) {
	const records, each = 1_250, 20
	r := start(t, open, Options{})
	var last *journal.Ticket
	for i := 0; i < records; {
		a := journal.Append{Log: alpha}
		for range 250 {
			record := journal.Record{Take: []journal.Take{{Name: fmt.Sprint("row/", i)}}}
			for k := range each {
				record.Put = append(record.Put, put(fmt.Sprintf("row/%06d", i*each+k), ""))
			}
			a.Records = append(a.Records, record)
			i++
		}
		last = r.order(batch(a))
	}
	need(t, last.Wait(r.ctx))
	fill(r, beta, 3)
	r.drop(alpha)
	equal(t, len(r.index()), 3)
	r.settleRemovals()
	equal(t, len(r.index()), 3)
	equal(t, r.claim(fmt.Sprint("row/", records-1)), journal.ClaimState{})
	need(t, r.RebuildIndex(r.ctx))
	equal(t, len(r.index()), 3)
}

// dropManyLogs drops a partition in which logs are created again meanwhile.
func dropManyLogs(t *testing.T, open Open) {
	const n = 500
	r := start(t, open, Options{})
	for i := range n {
		r.order(batch(records(home.In("log", fmt.Sprint(i)), journal.Record{Put: []journal.IndexPut{put(fmt.Sprint("k", i), "")}})))
	}
	ticket, err := r.DropPartition(r.ctx, home)
	need(t, err)
	anew := home.In("log", "7")
	again := r.order(batch(to(anew, "anew")))
	need(t, ticket.Wait(r.ctx))
	need(t, again.Wait(r.ctx))
	for r.Stats().Removals > 0 {
		r.commit(batch(to(other.In("tick", "tick"), "tick")))
	}
	for range 2 {
		page, err := r.Logs(r.ctx, home, journal.LogsOptions{})
		need(t, err)
		equal(t, len(page.Logs), 1)
		equal(t, r.texts(anew), []string{"anew"})
		equal(t, r.index(), nil)
		r.reopen()
		equal(t, r.Stats().Removals, 0)
	}
}

func dropPartition(t *testing.T, open Open) {
	r := start(t, open, Options{})
	audit := home.In("audit", "all")
	fill(r, alpha, 600)
	fill(r, beta, 10)
	fill(r, audit, 5)
	fill(r, other.In("log", "far"), 5)
	r.commit(setting("v", "x"))
	need(t, r.PutLazy(r.ctx, journal.ValueWrite{Key: key("z"), Data: []byte("x")}))
	far := journal.ValueKey{Partition: other, Name: "v"}
	r.commit(journal.Batch{Values: []journal.ValueWrite{{Key: far, Data: []byte("far")}}})
	ticket, err := r.DropPartition(r.ctx, home, "audit")
	need(t, err)
	need(t, ticket.Wait(r.ctx))
	check := func() {
		t.Helper()
		r.gone(alpha, 600)
		r.gone(beta, 10)
		equal(t, len(r.texts(audit)), 5)
		equal(t, len(r.texts(other.In("log", "far"))), 5)
		equal(t, len(r.scan(journal.ScanOptions{Prefix: []byte("all/")})), 5)
		equal(t, r.claim("far/0").Durable.Log, other.In("log", "far"))
		equal(t, r.value(key("v")), journal.ValueState{})
		equal(t, r.lazy(key("z")), "")
		equal(t, string(r.value(far).Durable.Data), "far")
	}
	check()
	r.commit(batch(to(audit, "deleted")))
	r.reopen()
	for r.Stats().Removals > 0 {
		r.commit(batch(to(other.In("tick", "tick"), "tick")))
	}
	need(t, r.RebuildIndex(r.ctx))
	equal(t, len(r.texts(audit)), 6)
	equal(t, r.index()[0], "all/00000=")
	equal(t, len(r.index()), 10)
	// The partition may be used again.
	r.commit(batch(to(alpha, "anew")))
	r.commit(setting("v", "anew"))
	r.reopen()
	equal(t, r.texts(alpha), []string{"anew"})
	equal(t, string(r.value(key("v")).Durable.Data), "anew")
}

func dropInterrupted(t *testing.T, open Open) {
	r := start(t, open, Options{})
	const n = 2000
	audit := home.In("audit", "all")
	fill(r, alpha, n)
	fill(r, beta, 4)
	ticket, err := r.DropPartition(r.ctx, home, "audit")
	need(t, err)
	need(t, ticket.Wait(r.ctx))
	// The power fails during the step that is running.
	reached, release := r.HoldSync()
	defer release()
	r.order(batch(to(audit, "never synced")))
	r.await(reached, "a sync")
	r.crash()
	r.gone(alpha, n)
	r.gone(beta, 4)
	equal(t, r.texts(audit), nil)
	recreated := r.commit(batch(to(alpha, "anew")))
	r.settleRemovals()
	equal(t, r.texts(alpha), []string{"anew"})
	equal(t, r.head(alpha).Durable.Incarnation, recreated.Offset())
	equal(t, r.index(), nil)
	need(t, r.RebuildIndex(r.ctx))
	equal(t, r.index(), nil)
	r.reopen()
	equal(t, r.Stats().Removals, 0)
	r.gone(beta, 4)
}

func dropCrash(t *testing.T, open Open) {
	r := start(t, open, Options{})
	fill(r, alpha, 10)
	reached, release := r.HoldSync()
	defer release()
	ticket, err := r.Drop(r.ctx, alpha)
	need(t, err)
	r.await(reached, "a sync")
	pending(t, ticket)
	r.crash()
	equal(t, len(r.texts(alpha)), 10)
	equal(t, len(r.index()), 10)
	equal(t, r.Stats().Removals, 0)
}

// dropLazy checks that a drop removes the lazy values that existed when it was
// ordered, wherever they are stored, and only once it is durable.
func dropLazy(t *testing.T, open Open) {
	r := start(t, open, Options{})
	put := func(name, data string) {
		t.Helper()
		need(t, r.PutLazy(r.ctx, journal.ValueWrite{Key: key(name), Data: []byte(data)}))
	}
	list := func() (got []string) {
		t.Helper()
		page, err := r.Values(r.ctx, home, journal.ValuesOptions{Lazy: true})
		need(t, err)
		for _, v := range page.Values {
			equal(t, r.lazy(key(v.Name)), string(v.Value.Data))
			got = append(got, v.Name+"="+string(v.Value.Data))
		}
		return got
	}
	put("saved", "1")
	put("saved and written", "1")
	put("written again", "1")
	r.commit(batch(to(alpha, "saves them")))
	reached, release := r.HoldSync()
	defer release()
	put("in flight", "1")
	put("in flight, written again", "1")
	r.order(batch(to(other.In("log", "far"), "x")))
	r.await(reached, "a sync")
	put("saved and written", "2")
	put("gathered", "1")
	put("gathered, written again", "1")
	before := list()
	drop, err := r.DropPartition(r.ctx, home)
	need(t, err)
	equal(t, list(), before)
	for _, name := range []string{"new", "written again", "in flight, written again", "gathered, written again"} {
		put(name, "after")
	}
	pending(t, drop)
	release()
	need(t, drop.Wait(r.ctx))
	after := []string{"gathered, written again=after", "in flight, written again=after", "new=after", "written again=after"}
	equal(t, list(), after)
	r.commit(batch(to(alpha, "saves them")))
	equal(t, list(), after)
	r.reopen()
	equal(t, list(), after)
	// The same with nothing in flight.
	put("gathered", "2")
	drop, err = r.DropPartition(r.ctx, home)
	need(t, err)
	need(t, drop.Wait(r.ctx))
	equal(t, list(), nil)
	r.commit(batch(to(alpha, "saves nothing")))
	equal(t, list(), nil)
}

func dropFailed(t *testing.T, open Open) {
	r := start(t, open, Options{})
	lazily := func(name string) {
		t.Helper()
		need(t, r.PutLazy(r.ctx, journal.ValueWrite{Key: key(name), Data: []byte("x")}))
	}
	lazily("saved")
	r.commit(batch(to(alpha, "saves it")))
	lazily("gathered")
	r.FailWrite()
	drop, err := r.DropPartition(r.ctx, home)
	need(t, err)
	if drop.Wait(r.ctx) == nil {
		t.Fatal("a drop that could not be written is durable")
	}
	equal(t, r.lazy(key("saved")), "x")
	equal(t, r.lazy(key("gathered")), "x")
	equal(t, r.texts(alpha), []string{"saves it"})
}
