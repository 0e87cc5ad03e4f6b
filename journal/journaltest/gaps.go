package journaltest

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/parley-hub/parley/journal"
)

var gapCases = []testCase{
	{"a position in a dropped log is a gap", gapDropped},
	{"a position in a log created anew is a gap", gapRecreated},
	{"a position beyond the end is a gap", gapAhead},
	{"a position of another epoch is a gap", gapEpoch},
	{"positions survive a clean close and a crash", positionsSurvive},
}

// gapOf follows from a position that does not exist, and returns the error.
func (r *rig) gapOf(log journal.LogName, at journal.Position) journal.GapError {
	r.t.Helper()
	follower, err := r.Follow(r.ctx, log, at)
	need(r.t, err)
	return r.nextGap(follower)
}

func (r *rig) nextGap(follower journal.Follower) journal.GapError {
	r.t.Helper()
	var gap *journal.GapError
	page, err := follower.Next(r.ctx)
	if !errors.As(err, &gap) {
		r.t.Fatalf("got %v and error %v, want a gap", page.Entries, err)
	}
	if _, again := follower.Next(r.ctx); !errors.As(again, &gap) {
		r.t.Fatalf("after a gap the follower goes on with %v", again)
	}
	return *gap
}

func (r *rig) shardGapOf(at journal.ShardPosition) journal.GapError {
	r.t.Helper()
	follower, err := r.FollowShard(r.ctx, r.shard(), at)
	need(r.t, err)
	commits, err := follower.Next(r.ctx)
	var gap *journal.GapError
	if !errors.As(err, &gap) {
		r.t.Fatalf("got %v and error %v, want a gap", commits, err)
	}
	return *gap
}

func (r *rig) drop(log journal.LogName) *journal.Ticket {
	r.t.Helper()
	ticket, err := r.Drop(r.ctx, log)
	need(r.t, err)
	need(r.t, ticket.Wait(r.ctx))
	return ticket
}

func gapDropped(t *testing.T, open Open) {
	r := start(t, open, Options{})
	at := r.commit(batch(to(alpha, "1", "2"))).Position(0)
	reader, err := r.Follow(r.ctx, alpha, at)
	need(t, err)
	early, err := r.Follow(r.ctx, alpha, journal.Position{})
	need(t, err)
	_, err = early.Next(r.ctx)
	need(t, err)
	waiting := make(chan error, 1)
	go func() {
		_, err := early.Next(r.ctx)
		waiting <- err
	}()
	r.drop(alpha)
	want := journal.GapError{Reason: journal.LogDropped, Shard: r.shard(), Log: alpha, Want: at}
	equal(t, r.nextGap(reader), want)
	var gap *journal.GapError
	if err := <-waiting; !errors.As(err, &gap) {
		t.Fatalf("a waiting follower got %v, want a gap", err)
	}
	equal(t, *gap, want)
	r.settleRemovals()
	equal(t, r.gapOf(alpha, at), want)
	r.reopen()
	equal(t, r.gapOf(alpha, at), want)
}

func gapRecreated(t *testing.T, open Open) {
	r := start(t, open, Options{})
	at := r.commit(batch(to(alpha, "1", "2"))).Position(0)
	r.drop(alpha)
	// The new log has a record where the old position pointed, and more.
	head := r.commit(batch(to(alpha, "n1", "n2", "n3"))).Position(0)
	want := journal.GapError{Reason: journal.LogDropped, Shard: r.shard(), Log: alpha, Want: at, Head: head}
	equal(t, r.gapOf(alpha, at), want)
	r.settleRemovals()
	equal(t, r.gapOf(alpha, at), want)
	equal(t, r.texts(alpha), []string{"n1", "n2", "n3"})
	fresh, err := r.Follow(r.ctx, alpha, journal.Position{})
	need(t, err)
	page, err := fresh.Next(r.ctx)
	need(t, err)
	equal(t, len(page.Entries), 3)
}

func gapAhead(t *testing.T, open Open) {
	r := start(t, open, Options{})
	head := r.commit(batch(to(alpha, "1"))).Position(0)
	at := head
	at.Seq = 2
	equal(t, r.gapOf(alpha, at), journal.GapError{Reason: journal.NeverWritten, Shard: r.shard(), Log: alpha, Want: at, Head: head})
	place := r.place()
	end := journal.ShardPosition{Epoch: place.Epoch, Offset: place.Durable}
	beyond := journal.ShardPosition{Epoch: place.Epoch, Offset: place.Durable + 1}
	equal(t, r.shardGapOf(beyond), journal.GapError{Reason: journal.NeverWritten, Shard: r.shard(), WantShard: beyond, HeadShard: end})
}

func gapEpoch(t *testing.T, open Open) {
	r := start(t, open, Options{})
	at := r.commit(batch(to(alpha, "1", "2"))).Position(0)
	old := r.place()
	dir := filepath.Join(t.TempDir(), "copy")
	wide, err := r.Checkpoint(r.ctx, dir)
	need(t, err)
	equal(t, wide[r.shard()], journal.ShardPosition{Epoch: old.Epoch, Offset: old.Durable})
	lost := r.commit(batch(to(alpha, "3"))).Position(0)
	r.restore(dir)
	now := r.place()
	if now.Epoch <= old.Epoch {
		t.Fatalf("the epoch is %d after a restore from %d", now.Epoch, old.Epoch)
	}
	equal(t, r.texts(alpha), []string{"1", "2"})
	r.commit(batch(expecting(2, to(alpha, "other 3"))))
	head := r.head(alpha).Durable.Position()
	for _, p := range []journal.Position{at, lost} {
		equal(t, r.gapOf(alpha, p), journal.GapError{Reason: journal.EpochChanged, Shard: r.shard(), Log: alpha, Want: p, Head: head})
	}
	was := journal.ShardPosition{Epoch: old.Epoch, Offset: old.Durable}
	gap := r.shardGapOf(was)
	equal(t, gap.Reason, journal.EpochChanged)
	equal(t, gap.WantShard, was)
	equal(t, gap.HeadShard.Epoch, now.Epoch)
}

func positionsSurvive(t *testing.T, open Open) {
	r := start(t, open, Options{})
	at := r.commit(batch(to(alpha, "1"))).Position(0)
	wide := journal.ShardPosition{Epoch: at.Epoch, Offset: r.place().Durable}
	r.reopen()
	r.commit(batch(to(alpha, "2")))
	r.crash()
	follower, err := r.Follow(r.ctx, alpha, at)
	need(t, err)
	page, err := follower.Next(r.ctx)
	need(t, err)
	equal(t, string(page.Entries[0].Data), "2")
	shard, err := r.FollowShard(r.ctx, r.shard(), wide)
	need(t, err)
	commits, err := shard.Next(r.ctx)
	need(t, err)
	equal(t, commits[0].Position, journal.ShardPosition{Epoch: wide.Epoch, Offset: wide.Offset + 1})
}
