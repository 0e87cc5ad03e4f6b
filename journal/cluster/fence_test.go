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
	"github.com/parley-hub/parley/journal/cluster/internal/fakelog"
	"github.com/parley-hub/parley/journal/cluster/internal/frame"
	"github.com/parley-hub/parley/journal/cluster/port"
)

// TestNothingOfAnOldTermFollowsAFence: a message that was on its way when another
// node took over is not stored behind its fence, and its sender is told so. On
// real servers: they check what is expected.
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
// its own proposal, which becomes durable. So does one whose answer is lost.
func TestARefusalIsNotAnAnswer(t *testing.T) {
	t.Parallel()
	for _, verdict := range []fakelog.Verdict{fakelog.StoreRefused, fakelog.StoreUnheard, fakelog.Refuse, fakelog.Lose} {
		logs := fakelog.New(1)
		client := logs.Connect()
		var odd atomic.Int64 // how many messages are answered so
		client.OnAppend = func(int, uint64, []byte) fakelog.Verdict {
			if odd.Add(-1) >= 0 {
				return verdict
			}
			return fakelog.Store
		}
		a := openNode(t, "a", client).take()
		a.write("1")
		odd.Store(2)
		a.write("2", "3")
		a.has("1", "2", "3")
		if mine, _, _ := a.Lead(0); !mine {
			t.Fatalf("verdict %d: the node gave the lead up", verdict)
		}
		verify(t, logs.Messages(0))
	}
}

// TestServesOnlyBehindItsOwnFence: a node that does not have all that was stored
// does not order.
func TestServesOnlyBehindItsOwnFence(t *testing.T) {
	t.Parallel()
	logs := fakelog.New(1)
	a := openNode(t, "a", logs.Connect()).take()
	client, gate := logs.Connect(), make(chan struct{})
	client.Deaf = true
	client.OnRead = func(ctx context.Context) error {
		select {
		case <-gate:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
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
	verify(t, logs.Messages(0))
	b.has("1", "2", "3", "4", "5", "6")
}

// TestExpectsItsOwnSlot: a node that was not told of another's fence does not
// write behind it, whatever the end of the log is.
func TestExpectsItsOwnSlot(t *testing.T) {
	t.Parallel()
	logs := fakelog.New(1)
	client := logs.Connect()
	client.Deaf = true
	a := openNode(t, "a", client, func(o *cluster.Options) { o.Poll = patience }).take()
	a.write("1")
	b := openNode(t, "b", logs.Connect()).take()
	b.write("2", "3")
	ticket := a.order("too late")
	if o := a.outcome(ticket); o != journal.Failed {
		t.Fatalf("it ended %v", o)
	}
	verify(t, logs.Messages(0))
	b.has("1", "2", "3")
	a.reaches(uint64(len(logs.Messages(0))))
	a.has("1", "2", "3")
}

// TestAHoleIsNotSkipped: a message that nobody gives stops a follower, and it
// goes on when somebody does.
func TestAHoleIsNotSkipped(t *testing.T) {
	t.Parallel()
	logs := fakelog.New(1)
	a := openNode(t, "a", logs.Connect()).take()
	a.write("1", "2", "3", "4")
	logs.Hide(0, 3, true) // the fence is 1, so it is "2"
	b := openNode(t, "b", logs.Connect())
	missing := fails[*cluster.MissingError](b)
	if missing.Seq != 3 || b.Reached(0) != 2 {
		t.Fatalf("%v at %d", missing, b.Reached(0))
	}
	a.write("5") // it is pushed to the follower
	b.has("1")
	logs.Hide(0, 3, false)
	b.reaches(6)
	b.has("1", "2", "3", "4", "5")
	b.until("the end of the trouble", func() bool { return b.Trouble(0) == nil })
}

// TestAFenceIsOneOfMany: when the answer to a fence is lost, the node begins
// again, behind it.
func TestAFenceIsOneOfMany(t *testing.T) {
	t.Parallel()
	logs := fakelog.New(1)
	client := logs.Connect()
	var first atomic.Bool
	client.OnAppend = func(int, uint64, []byte) fakelog.Verdict {
		if first.CompareAndSwap(false, true) {
			return fakelog.StoreUnheard
		}
		return fakelog.Store
	}
	a := openNode(t, "a", client).take()
	a.write("1")
	verify(t, logs.Messages(0))
	if n := len(logs.Messages(0)); n != 3 { // two fences and a group
		t.Fatalf("the log has %d messages", n)
	}
	a.has("1")
}

// TestPartsThatAFenceVoids: a group in parts of which some were stored never
// happened when another node fences.
func TestPartsThatAFenceVoids(t *testing.T) {
	t.Parallel()
	logs := fakelog.New(1)
	client := logs.Connect()
	client.Most.Store(4 << 10)
	var parts atomic.Int64
	lost := make(chan struct{})
	client.OnAppend = func(_ int, _ uint64, data []byte) fakelog.Verdict {
		if frame.KindOf(data) == frame.Part && parts.Add(1) > 3 {
			if parts.Load() == 4 {
				close(lost)
			}
			return fakelog.Lose
		}
		return fakelog.Store
	}
	a := openNode(t, "a", client).take()
	a.write("1")
	big := a.order(strings.Repeat("big ", 5000))
	<-lost
	b := openNode(t, "b", logs.Connect()).take()
	b.write("2")
	b.has("1", "2")
	if o := a.outcome(big); o != journal.Failed {
		t.Fatalf("the group in parts ended %v", o)
	}
	a.reaches(b.Reached(0))
	a.has("1", "2")
	verify(t, logs.Messages(0))
	// And one that is whole is there on both.
	parts.Store(-1000)
	a.take()
	whole := strings.Repeat("whole ", 5000)
	a.write(whole)
	a.has("1", "2", whole)
	b.reaches(a.Reached(0))
	b.has("1", "2", whole)
}

// TestAppendsWaitForQuorum: while nobody answers, what waits is bounded and ends
// with its context; afterwards everything goes on by itself.
func TestAppendsWaitForQuorum(t *testing.T) {
	t.Parallel()
	logs := fakelog.New(1)
	client := logs.Connect()
	var quorum atomic.Bool
	quorum.Store(true)
	client.OnAppend = func(int, uint64, []byte) fakelog.Verdict {
		if quorum.Load() {
			return fakelog.Store
		}
		return fakelog.Lose
	}
	a := openNode(t, "a", client, func(o *cluster.Options) { o.Disk.MaxUnsynced = 10_000 }).take()
	a.write("1")
	quorum.Store(false)
	short, cancel := context.WithCancel(a.ctx)
	type answer struct {
		ticket *journal.Ticket
		err    error
	}
	answers := make(chan answer, 1000)
	for i := range 1000 {
		go func() {
			ticket, err := a.Append(short, text(fmt.Sprintf("%0100d", i)))
			answers <- answer{ticket, err}
		}()
	}
	var tickets []*journal.Ticket
	for range 60 { // at least so many have room
		got := <-answers
		if got.err != nil {
			t.Fatal(got.err)
		}
		tickets = append(tickets, got.ticket)
	}
	cancel()
	refused := 0
	for range 940 {
		if got := <-answers; got.err == nil {
			tickets = append(tickets, got.ticket)
		} else if errors.Is(got.err, context.Canceled) {
			refused++
		} else {
			t.Fatal(got.err)
		}
	}
	if bytes := a.Stats().Unsynced; bytes > 10_000 || refused < 800 {
		t.Fatalf("%d bytes are on their way, %d appends waited", bytes, refused)
	}
	for _, ticket := range tickets {
		if o := ticket.Outcome(); o != journal.Pending {
			t.Fatalf("without quorum a ticket ended %v", o)
		}
	}
	select {
	case <-a.Failed():
		t.Fatal("the engine took the absence of others for a failure")
	default:
	}
	quorum.Store(true)
	for _, ticket := range tickets {
		if err := ticket.Wait(a.ctx); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(a.texts()); n != 1+len(tickets) {
		t.Fatalf("%d records, %d were acknowledged", n, 1+len(tickets))
	}
}

// TestConfirm: a leader that was replaced does not confirm, and one that leads
// does so by a message of its term.
func TestConfirm(t *testing.T) {
	t.Parallel()
	logs := fakelog.New(1)
	client := logs.Connect()
	client.Deaf = true
	a := openNode(t, "a", client, func(o *cluster.Options) { o.Poll = patience }).take()
	if err := a.Confirm(a.ctx, 0); err != nil {
		t.Fatal(err)
	}
	if n := len(logs.Messages(0)); n != 2 || frame.KindOf(logs.Messages(0)[1]) != frame.Barrier {
		t.Fatalf("the log has %d messages", n)
	}
	b := openNode(t, "b", logs.Connect()).take()
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
	verify(t, logs.Messages(0))
}
