package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/cluster"
	"github.com/parley-hub/parley/journal/cluster/internal/frame"
	"github.com/parley-hub/parley/journal/cluster/port"
)

// TestNothingOfAnOldTermFollowsAFence: a message that was being published when
// another node took over is not stored after the new fence, and its sender gets an
// error. The test uses real servers, because they check the expected sequence.
func TestNothingOfAnOldTermFollowsAFence(t *testing.T) {
	t.Parallel()
	name := natsServers{}.create(t, 1, 1)
	hold := newGate(dial(t, name))
	a, b := openNode(t, "a", hold), openNode(t, "b", dial(t, name))
	a.take().write("1")
	reached, release := hold.HoldSync()
	late, behind := a.order("late"), (*journal.Ticket)(nil)
	<-reached
	behind = a.order("behind")
	b.take().write("2")
	release()
	if o := a.outcome(late); o != journal.Failed {
		t.Fatalf("what came too late ended %v", o)
	}
	if o := a.outcome(behind); o != journal.Aborted {
		t.Fatalf("what stood behind it ended %v", o)
	}
	var notMine *journal.NotMineError
	if err := late.Err(); !errors.As(err, &notMine) || !journal.Retryable(err) {
		t.Fatalf("the sender is told %v", err)
	}
	b.write("3")
	verify(t, stored(t, name, b.Reached(0)))
	b.has("1", "2", "3")
	a.reaches(b.Reached(0))
	a.has("1", "2", "3")
	if _, err := a.Append(a.ctx, text("x")); !errors.As(err, &notMine) || notMine.Node != "b" {
		t.Fatalf("the old leader answers %v", err)
	}
}

// stored reads a log of the servers.
func stored(t testing.TB, name string, last uint64) [][]byte {
	t.Helper()
	log := dial(t, name)
	defer log.Close()
	return storedIn(t, log, last)
}

func storedIn(t testing.TB, log port.Log, last uint64) (all [][]byte) {
	t.Helper()
	for uint64(len(all)) < last {
		messages, err := log.Read(context.Background(), 0, uint64(len(all))+1)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range messages {
			if m.Seq != uint64(len(all))+1 {
				t.Fatalf("message %d is missing", len(all)+1)
			}
			all = append(all, m.Data)
		}
	}
	return all
}

// TestARefusalIsNotAnAnswer: a leader without quorum refuses a message because of
// its own proposal, which becomes durable. A message whose answer is lost may become
// durable as well.
func TestARefusalIsNotAnAnswer(t *testing.T) {
	t.Parallel()
	eachLog(t, func(t *testing.T, connect func() *faulty) {
		client := connect()
		var odd atomic.Int64 // how many messages get the verdict how
		var how atomic.Int64
		client.onAppend = func([]byte) verdict {
			if odd.Add(-1) >= 0 {
				return verdict(how.Load())
			}
			return store
		}
		a := openNode(t, "a", client).take()
		var want []string
		for _, v := range []verdict{storeRefused, storeUnheard, refuse, lose} {
			how.Store(int64(v))
			for i := range 3 {
				odd.Store(int64(i)) // none, then one, then two tries
				want = append(want, fmt.Sprint(v, i))
				a.write(want[len(want)-1])
			}
			if mine, _, _ := a.Lead(0); !mine {
				t.Fatalf("verdict %d: the node gave the lead up", v)
			}
		}
		a.has(want...)
		verify(t, connect().messages(t))
	})
}

// TestServesOnlyBehindItsOwnFence: a node that does not have everything that was
// stored does not order.
func TestServesOnlyBehindItsOwnFence(t *testing.T) {
	t.Parallel()
	eachLog(t, func(t *testing.T, connect func() *faulty) {
		a := openNode(t, "a", connect()).take()
		client, gate := connect(), make(chan struct{})
		client.deaf, client.onRead = true, held(gate)
		a.write("1", "2", "3")
		b := openNode(t, "b", client)
		took := make(chan error, 1)
		go func() { took <- b.Acquire(b.ctx) }()
		a.write("4", "5")
		if mine, _, _ := b.Lead(0); mine || b.Reached(0) != 0 {
			t.Fatal("the node leads, and has nothing")
		}
		var notMine *journal.NotMineError
		if _, err := b.Append(b.ctx, text("x")); !errors.As(err, &notMine) {
			t.Fatalf("an append is answered with %v", err)
		}
		close(gate)
		if err := <-took; err != nil {
			t.Fatal(err)
		}
		heads, err := b.Head(b.ctx, history)
		if err != nil || heads.Ordered.Seq != 5 || heads.Pending != nil {
			t.Fatalf("it begins at %+v, %v", heads, err)
		}
		next := text("6")
		next.Appends[0].Expect = journal.Exactly(5)
		if ticket, err := b.Append(b.ctx, next); err != nil || ticket.Wait(b.ctx) != nil {
			t.Fatal(err)
		}
		verify(t, connect().messages(t))
		b.has("1", "2", "3", "4", "5", "6")
	})
}

// TestExpectsItsOwnSlot: a node that does not know of another node's fence does not
// write after that fence, whatever the end of the log is.
func TestExpectsItsOwnSlot(t *testing.T) {
	t.Parallel()
	eachLog(t, func(t *testing.T, connect func() *faulty) {
		client := connect()
		client.deaf = true
		a := openNode(t, "a", client, func(o *cluster.Options) { o.Poll = patience }).take()
		a.write("1")
		b := openNode(t, "b", connect()).take()
		b.write("2", "3")
		ticket := a.order("too late")
		if o := a.outcome(ticket); o != journal.Failed {
			t.Fatalf("it ended %v", o)
		}
		all := connect().messages(t)
		verify(t, all)
		b.has("1", "2", "3")
		a.reaches(uint64(len(all)))
		a.has("1", "2", "3")
	})
}

// TestAHoleIsNotSkipped: a message that cannot be read stops a follower, which
// continues when the message can be read.
func TestAHoleIsNotSkipped(t *testing.T) {
	t.Parallel()
	eachLog(t, func(t *testing.T, connect func() *faulty) {
		a := openNode(t, "a", connect()).take()
		a.write("1", "2", "3", "4")
		client := connect()
		client.hidden.Store(3) // the fence is message 1, so message 3 is "2"
		b := openNode(t, "b", client)
		missing := fails[*cluster.MissingError](b)
		if missing.Seq != 3 || b.Reached(0) != 2 {
			t.Fatalf("%v at %d", missing, b.Reached(0))
		}
		a.write("5") // pushed to the follower
		b.has("1")
		client.hidden.Store(0)
		b.reaches(6)
		b.has("1", "2", "3", "4", "5")
		b.until("the end of the trouble", func() bool { return b.Trouble(0) == nil })
	})
}

// TestAFenceIsOneOfMany: if the answer to a fence is lost, the node publishes another
// fence after it.
func TestAFenceIsOneOfMany(t *testing.T) {
	t.Parallel()
	eachLog(t, func(t *testing.T, connect func() *faulty) {
		client := connect()
		var first atomic.Bool
		client.onAppend = func([]byte) verdict {
			if first.CompareAndSwap(false, true) {
				return storeUnheard
			}
			return store
		}
		a := openNode(t, "a", client).take()
		a.write("1")
		all := connect().messages(t)
		verify(t, all)
		if len(all) != 3 { // two fences and a group
			t.Fatalf("the log has %d messages", len(all))
		}
		a.has("1")
	})
}

// TestPartsThatAFenceVoids: a group of which only some parts were stored is not
// applied if another node fences.
func TestPartsThatAFenceVoids(t *testing.T) {
	t.Parallel()
	eachLog(t, func(t *testing.T, connect func() *faulty) {
		client := connect()
		client.most.Store(4 << 10)
		var parts atomic.Int64
		lost := make(chan struct{})
		client.onAppend = func(data []byte) verdict {
			if frame.KindOf(data) == frame.Part {
				switch n := parts.Add(1); {
				case n == 4:
					close(lost)
					return lose
				case n > 4:
					return lose
				}
			}
			return store
		}
		a := openNode(t, "a", client).take()
		a.write("1")
		big := a.order(strings.Repeat("big ", 5000))
		<-lost
		b := openNode(t, "b", connect()).take()
		b.write("2")
		b.has("1", "2")
		if o := a.outcome(big); o != journal.Failed {
			t.Fatalf("the group in parts ended %v", o)
		}
		a.reaches(b.Reached(0))
		a.has("1", "2")
		verify(t, connect().messages(t))
		// A group with all its parts is on both nodes.
		parts.Store(-1000)
		a.take()
		whole := strings.Repeat("whole ", 5000)
		a.write(whole)
		a.has("1", "2", whole)
		b.reaches(a.Reached(0))
		b.has("1", "2", whole)
	})
}

// TestConfirm: Confirm fails on a leader that was replaced, and on one that leads it
// stores a message of its term.
func TestConfirm(t *testing.T) {
	t.Parallel()
	eachLog(t, func(t *testing.T, connect func() *faulty) {
		client := connect()
		client.deaf = true
		a := openNode(t, "a", client, func(o *cluster.Options) { o.Poll = patience }).take()
		if err := a.Confirm(a.ctx, 0); err != nil {
			t.Fatal(err)
		}
		if all := connect().messages(t); len(all) != 2 || frame.KindOf(all[1]) != frame.Barrier {
			t.Fatalf("the log has %d messages", len(all))
		}
		b := openNode(t, "b", connect()).take()
		if mine, _, _ := a.Lead(0); !mine {
			t.Fatal("this test shows nothing: the old leader knows already")
		}
		var notMine *journal.NotMineError
		if err := a.Confirm(a.ctx, 0); !errors.As(err, &notMine) {
			t.Fatalf("the old leader confirms: %v", err)
		}
		if err := b.Confirm(b.ctx, 0); err != nil {
			t.Fatal(err)
		}
		verify(t, connect().messages(t))
	})
}
