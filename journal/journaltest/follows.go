package journaltest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/parley-hub/parley/journal"
)

var followCases = []testCase{
	{"a log is followed from any position while writers race", followLog},
	{"a shard is followed in commit order from any position while writers race", followShard},
	{"a log that does not exist yet is followed from its start", followEarly},
	{"a log that does not exist yet is followed from its head", followHeadOfNothing},
	{"a commit tells what its batch wrote", followCommit},
	{"who follows from before a commit and who reads it later see the same", followTogether},
	{"following ends with its context, its close and the engine's", followEnds},
}

// race runs writers over a few logs and returns when all is durable.
func race(r *rig, writers, each int) {
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				b := batch(to(home.In("race", fmt.Sprint(i%3)), fmt.Sprintf("%d.%d", w, i), "second"))
				if i%4 == 0 {
					b.Appends = append(b.Appends, to(home.In("race", "common"), fmt.Sprintf("%d.%d", w, i)))
				}
				ticket, err := r.Append(r.ctx, b)
				if err == nil {
					err = ticket.Wait(r.ctx)
				}
				if err != nil {
					r.tb.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func followLog(t *testing.T, open Open) {
	r := start(t, open, Options{})
	log := home.In("race", "0")
	race(r, 2, 6)
	head := r.head(log).Durable
	const writers, each = 8, 30
	total := head.Seq + writers*each/3*2
	var wg sync.WaitGroup
	got := make([][]string, head.Seq+1)
	for from := range head.Seq + 1 {
		at := journal.Position{Epoch: head.Epoch, Incarnation: head.Incarnation, Seq: from}
		if from == 0 {
			at = journal.Position{}
		}
		follower, err := r.Follow(r.ctx, log, at)
		need(t, err)
		wg.Go(func() {
			defer follower.Close()
			for next := from + 1; next <= total; {
				page, err := follower.Next(r.ctx)
				if err != nil {
					t.Error(err)
					return
				}
				for _, entry := range page.Entries {
					if entry.Seq != next {
						t.Errorf("from %d: got %d, want %d", from, entry.Seq, next)
						return
					}
					got[from] = append(got[from], string(entry.Data))
					next++
				}
				if at := follower.Position(); at != (journal.Position{Epoch: head.Epoch, Incarnation: head.Incarnation, Seq: next - 1}) {
					t.Errorf("the follower is at %v after %d", at, next-1)
				}
			}
		})
	}
	race(r, writers, each)
	wg.Wait()
	want := r.texts(log)
	equal(t, uint64(len(want)), total)
	for from := range got {
		equal(t, got[from], want[from:])
	}
}

func followShard(t *testing.T, open Open) {
	r := start(t, open, Options{})
	begin := r.place().Durable
	race(r, 2, 6)
	mid := r.place()
	const writers, each = 6, 20
	last := mid.Durable + writers*each
	var wg sync.WaitGroup
	froms := []uint64{0, begin, begin + 1, begin + 5, mid.Durable - 1, mid.Durable}
	got := make([]map[journal.LogName][]string, len(froms))
	for i, from := range froms {
		got[i] = map[journal.LogName][]string{}
		at := journal.ShardPosition{Epoch: mid.Epoch, Offset: from}
		if from == 0 {
			at = journal.ShardPosition{}
		}
		follower, err := r.FollowShard(r.ctx, r.shard(), at)
		need(t, err)
		wg.Go(func() {
			defer follower.Close()
			for next := from + 1; next <= last; {
				commits, err := follower.Next(r.ctx)
				if err != nil {
					t.Error(err)
					return
				}
				for _, c := range commits {
					if want := (journal.ShardPosition{Epoch: mid.Epoch, Offset: next}); c.Position != want {
						t.Errorf("from %d: got %v, want %v", from, c.Position, want)
						return
					}
					next++
					collect(t, got[i], c)
				}
				if at := follower.Position(); at.Offset != next-1 {
					t.Errorf("the follower is at %v after %d", at, next-1)
				}
			}
		})
	}
	race(r, writers, each)
	wg.Wait()
	for i := range froms {
		for log, texts := range got[i] {
			all := r.texts(log)
			equal(t, texts, all[len(all)-len(texts):])
			if froms[i] <= begin {
				equal(t, len(texts), len(all))
			}
		}
	}
}

func collect(t *testing.T, into map[journal.LogName][]string, c journal.Commit) {
	for _, w := range c.Writes {
		if len(w.Entries) != int(w.Last-w.First+1) || w.Dropped {
			t.Errorf("write %+v lacks entries", w)
		}
		for i, entry := range w.Entries {
			if entry.Seq != w.First+uint64(i) || entry.Offset != c.Position.Offset {
				t.Errorf("entry %d of %v at offset %d has offset %d", entry.Seq, w.Log, c.Position.Offset, entry.Offset)
			}
			into[w.Log] = append(into[w.Log], string(entry.Data))
		}
	}
}

func followEarly(t *testing.T, open Open) {
	r := start(t, open, Options{})
	follower, err := r.Follow(r.ctx, alpha, journal.Position{})
	need(t, err)
	got := make(chan journal.Page, 1)
	go func() {
		page, err := follower.Next(r.ctx)
		if err != nil {
			t.Error(err)
		}
		got <- page
	}()
	r.commit(batch(to(beta, "noise")))
	ticket := r.commit(batch(to(alpha, "1", "2")))
	page := <-got
	equal(t, page.Entries, []journal.Entry{
		{Seq: 1, Offset: ticket.Offset(), Data: []byte("1")}, {Seq: 2, Offset: ticket.Offset(), Data: []byte("2")},
	})
	equal(t, follower.Position(), ticket.Position(0))
}

func followHeadOfNothing(t *testing.T, open Open) {
	r := start(t, open, Options{})
	first := func(at journal.Position, want ...string) {
		t.Helper()
		follower, err := r.Follow(r.ctx, alpha, at)
		need(t, err)
		page, err := follower.Next(r.ctx)
		need(t, err)
		var got []string
		for _, entry := range page.Entries {
			got = append(got, string(entry.Data))
		}
		equal(t, got, want)
		equal(t, follower.Position(), r.head(alpha).Durable.Position())
	}
	before := r.head(alpha).Durable.Position()
	r.commit(batch(to(alpha, "1", "2")))
	first(before, "1", "2")
	r.drop(alpha)
	dropped := r.head(alpha).Durable.Position()
	r.commit(batch(to(alpha, "anew")))
	first(dropped, "anew")
	first(before, "anew")
	// In another epoch there may have been other records.
	before.Epoch++
	equal(t, r.gapOf(alpha, before).Reason, journal.EpochChanged)
}

func followCommit(t *testing.T, open Open) {
	r := start(t, open, Options{})
	at := r.place()
	ticket := r.commit(journal.Batch{
		Appends: []journal.Append{to(beta, "b"), to(alpha, "1", "2")},
		Values:  []journal.ValueWrite{{Key: key("v"), Data: []byte("x")}, {Key: key("w"), Delete: true}},
	})
	drop, err := r.Drop(r.ctx, beta)
	need(t, err)
	away, err := r.DropPartition(r.ctx, other)
	need(t, err)
	need(t, away.Wait(r.ctx))
	follower, err := r.FollowShard(r.ctx, r.shard(), journal.ShardPosition{Epoch: at.Epoch, Offset: at.Durable})
	need(t, err)
	var got []journal.Commit
	for len(got) < 3 {
		commits, err := follower.Next(r.ctx)
		need(t, err)
		got = append(got, commits...)
	}
	offset := ticket.Offset()
	if got[0].Writes[0].Log == (journal.LogName{}) {
		got[0].Writes[0].Log = beta // an engine may have forgotten the name of a dropped log
	}
	equal(t, got, []journal.Commit{
		{
			Position: journal.ShardPosition{Epoch: at.Epoch, Offset: offset},
			Writes: []journal.Write{
				{Log: beta, Incarnation: offset, First: 1, Last: 1, Dropped: true},
				{Log: alpha, Incarnation: offset, First: 1, Last: 2, Entries: []journal.Entry{
					{Seq: 1, Offset: offset, Data: []byte("1")}, {Seq: 2, Offset: offset, Data: []byte("2")},
				}},
			},
			Values: []journal.ValueKey{key("v"), key("w")},
		},
		{Position: journal.ShardPosition{Epoch: at.Epoch, Offset: drop.Offset()}, DroppedLog: new(beta)},
		{Position: journal.ShardPosition{Epoch: at.Epoch, Offset: away.Offset()}, DroppedPartition: new(other)},
	})
}

// followTogether runs several followers: an engine may keep the newest commits in
// memory while it is followed.
func followTogether(t *testing.T, open Open) {
	r := start(t, open, Options{})
	place := r.place()
	begin := journal.ShardPosition{Epoch: place.Epoch, Offset: place.Durable}
	early, err := r.FollowShard(r.ctx, r.shard(), begin)
	need(t, err)
	defer early.Close()
	see := func(follower journal.ShardFollower, n int) (got []journal.Commit) {
		for len(got) < n {
			commits, err := follower.Next(r.ctx)
			need(t, err)
			got = append(got, commits...)
		}
		for _, c := range got {
			for i := range c.Writes {
				if c.Writes[i].Dropped { // its name is forgotten when the removal reaches it
					c.Writes[i].Log = journal.LogName{}
				}
			}
		}
		return got
	}
	data := []byte("data that its caller changes")
	r.commit(journal.Batch{
		Appends: []journal.Append{to(beta, "b"), records(alpha, journal.Record{Data: data}, journal.Record{Data: []byte("2")})},
		Values:  []journal.ValueWrite{{Key: key("v"), Data: []byte("x")}},
	})
	clear(data)
	r.commit(batch(to(beta, "c")))
	first := see(early, 2)
	later := func(after journal.ShardPosition, n int) []journal.Commit {
		follower, err := r.FollowShard(r.ctx, r.shard(), after)
		need(t, err)
		defer follower.Close()
		return see(follower, n)
	}
	equal(t, string(first[0].Writes[1].Entries[0].Data), "data that its caller changes")
	equal(t, later(begin, 2), first)
	equal(t, later(first[0].Position, 1), first[1:])
	early.Close()
	r.commit(batch(to(alpha, "not followed")))
	all := later(begin, 3)
	equal(t, all[:2], first)

	early, err = r.FollowShard(r.ctx, r.shard(), all[2].Position)
	need(t, err)
	defer early.Close()
	r.commit(batch(to(beta, "d"), to(alpha, "e")))
	drop, err := r.Drop(r.ctx, beta)
	need(t, err)
	need(t, drop.Wait(r.ctx))
	r.commit(batch(to(beta, "anew")))
	second := see(early, 3)
	equal(t, []bool{second[0].Writes[0].Dropped, second[0].Writes[1].Dropped, second[2].Writes[0].Dropped}, []bool{true, false, false})
	equal(t, later(all[2].Position, 3), second)
	r.reopen()
	equal(t, later(all[2].Position, 3), second)
}

func followEnds(t *testing.T, open Open) {
	r := start(t, open, Options{})
	ticket := r.commit(batch(to(alpha, "1")))
	at := journal.ShardPosition{Epoch: ticket.Epoch(), Offset: ticket.Offset()}
	waiting := func(ctx context.Context) (errs chan error, stop []func()) {
		errs = make(chan error, 2)
		log, err := r.Follow(r.ctx, alpha, ticket.Position(0))
		need(t, err)
		shard, err := r.FollowShard(r.ctx, r.shard(), at)
		need(t, err)
		go func() { _, err := log.Next(ctx); errs <- err }()
		go func() { _, err := shard.Next(ctx); errs <- err }()
		return errs, []func(){log.Close, shard.Close}
	}
	ctx, cancel := context.WithCancel(r.ctx)
	byContext, _ := waiting(ctx)
	byClose, stop := waiting(r.ctx)
	byEngine, _ := waiting(r.ctx)
	cancel()
	stop[0]()
	stop[1]()
	stop[1]()
	for range 2 {
		if err := <-byContext; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want the context's error", err)
		}
		if err := <-byClose; !errors.Is(err, journal.ErrClosed) {
			t.Errorf("got %v, want ErrClosed", err)
		}
	}
	need(t, r.Engine.Close())
	for range 2 {
		if err := <-byEngine; !errors.Is(err, journal.ErrClosed) {
			t.Errorf("got %v, want ErrClosed", err)
		}
	}
}
