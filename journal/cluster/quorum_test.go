package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/parley-hub/parley/internal/scale"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/cluster"
	"github.com/parley-hub/parley/journal/cluster/jetstream"
	"github.com/parley-hub/parley/journal/cluster/natsservers"
)

// crowd makes many appends at once while nothing can be acknowledged: those with room
// get a ticket, and the others wait until their context ends. It returns the tickets
// by text. The engine's MaxUnsynced is crowdRoom.
func (n *node) crowd() map[string]*journal.Ticket {
	n.t.Helper()
	const size, atLeast = 1000, 60 // at least this many have room
	short, cancel := context.WithCancel(n.ctx)
	defer cancel()
	type answer struct {
		text   string
		ticket *journal.Ticket
		err    error
	}
	answers := make(chan answer, size)
	for i := range size {
		go func() {
			s := fmt.Sprintf("%0100d", i)
			ticket, err := n.Append(short, text(s))
			answers <- answer{s, ticket, err}
		}()
	}
	tickets := map[string]*journal.Ticket{}
	for i := range size {
		if i == atLeast {
			cancel()
		}
		switch got := <-answers; {
		case got.err == nil:
			tickets[got.text] = got.ticket
		case i < atLeast || !errors.Is(got.err, context.Canceled):
			n.t.Fatal(got.err)
		}
	}
	if bytes := n.Stats().Unsynced; bytes > crowdRoom || len(tickets) > size/5 {
		n.t.Fatalf("%d bytes are on their way, in %d batches", bytes, len(tickets))
	}
	return tickets
}

const crowdRoom = 10_000

// pending checks that no ticket has ended, and that the engine reports no failure.
func (n *node) pending(tickets map[string]*journal.Ticket) {
	n.t.Helper()
	for s, ticket := range tickets {
		if o := ticket.Outcome(); o != journal.Pending {
			n.t.Fatalf("without quorum %s ended %v", s, o)
		}
	}
	select {
	case <-n.Failed():
		n.t.Fatal("the engine took the absence of others for a failure")
	default:
	}
}

// TestAppendsWaitForQuorum: while no server answers, waiting appends are bounded and
// end with their contexts; afterwards everything continues by itself.
func TestAppendsWaitForQuorum(t *testing.T) {
	t.Parallel()
	eachLog(t, func(t *testing.T, connect func() *faulty) {
		client := connect()
		var quorum atomic.Bool
		quorum.Store(true)
		client.onAppend = func([]byte) verdict {
			if quorum.Load() {
				return store
			}
			return lose
		}
		a := openNode(t, "a", client, func(o *cluster.Options) { o.Disk.MaxUnsynced = crowdRoom }).take()
		a.write("1")
		quorum.Store(false)
		tickets := a.crowd()
		a.pending(tickets)
		quorum.Store(true)
		for _, ticket := range tickets {
			if err := ticket.Wait(a.ctx); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(a.texts()); n != 1+len(tickets) {
			t.Fatalf("%d records, %d were acknowledged", n, 1+len(tickets))
		}
	})
}

// TestQuorumLost: with one of three servers left nothing is acknowledged, nothing
// fails, and a thousand appends stay within their memory limit; when the servers are
// back, every waiting append ends durable or failed, and none unknown. The servers are
// away for 5 s, and for 30 s from a scale of 2 on, which is that of CI.
func TestQuorumLost(t *testing.T) {
	t.Parallel()
	s, connect := ownServers(t)
	a, b := openNode(t, "a", connect(), func(o *cluster.Options) { o.Disk.MaxUnsynced = crowdRoom }), openNode(t, "b", connect())
	a.take().write("before")
	s.End(1)
	s.End(2)
	tickets := a.crowd()
	lost, away := time.Now(), 5*time.Second
	if scale.N(1) >= 2 {
		away = 30 * time.Second
	}
	a.until("Health to tell", func() bool {
		return a.Health().State == journal.Waiting && time.Since(lost) > away
	})
	a.pending(tickets)
	a.has("before")
	if away >= 30*time.Second { // servers need up to 20 s to notice
		log := connect()
		if state, err := log.State(a.ctx, 0); err == nil && !state.NoQuorum {
			t.Error("the servers say that they have a quorum")
		}
		log.Close()
	}
	for i := 1; i <= 2; i++ {
		if err := s.Again(i); err != nil {
			t.Fatal(err)
		}
	}
	back := time.Now()
	want := []string{"before"}
	for text, ticket := range tickets {
		switch o := a.outcome(ticket); o {
		case journal.Durable:
			want = append(want, text)
		case journal.Failed, journal.Aborted:
		default:
			t.Fatalf("%s ended %v", text, o)
		}
	}
	t.Logf("%d of %d are durable, %v after the servers were back", len(want)-1, len(tickets), time.Since(back))
	got := a.texts()
	slices.Sort(want[1:])
	if sorted := slices.Sorted(slices.Values(got[1:])); got[0] != "before" || !slices.Equal(sorted, want[1:]) {
		t.Fatalf("%d records are there, %d were acknowledged", len(got), len(want))
	}
	b.reaches(a.Reached(0))
	b.has(got...)
	b.take().write("after")
	verifyLog(t, connect(), b.Reached(0))
}

// ownServers starts servers that the test may stop, with an empty cluster.
func ownServers(t *testing.T) (*natsservers.Servers, func() *jetstream.Log) {
	t.Helper()
	s, err := natsservers.Start(t.Context(), 3, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s, connector(t, s)
}

// connector makes an empty cluster on servers, and returns a function that connects
// to it.
func connector(t *testing.T, s *natsservers.Servers) func() *jetstream.Log {
	t.Helper()
	return connectorOf(t, s, "own")
}

func connectorOf(t *testing.T, s *natsservers.Servers, name string) func() *jetstream.Log {
	t.Helper()
	connect := func() *jetstream.Log {
		log, err := jetstream.Connect(jetstream.Options{URL: s.URL(), Cluster: name})
		if err != nil {
			t.Fatal(err)
		}
		return log
	}
	log := connect()
	defer log.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := log.Create(ctx, 1, 3, 1); err != nil {
		t.Fatal(err)
	}
	return connect
}

// TestServersThatHaveJustStarted: servers make no streams until they have found each
// other; Create waits for that.
func TestServersThatHaveJustStarted(t *testing.T) {
	t.Parallel()
	s, connect := ownServers(t)
	connect().Close()
	left := slices.IndexFunc([]int{0, 1, 2}, func(i int) bool { return !s.Leads(i) }) // it has to find a leader
	for i := range 3 {
		if i != left {
			s.End(i)
		}
	}
	log, err := jetstream.Connect(jetstream.Options{URL: s.URLs()[left], Cluster: "late"})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	made := make(chan error, 1)
	go func() { made <- log.Create(ctx, 2, 3, 1) }()
	for i := range 3 {
		if i != left {
			if err := s.Again(i); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := <-made; err != nil {
		t.Fatal(err)
	}
	for shard := range 2 {
		if state, err := log.State(ctx, shard); err != nil || state.Shards != 2 {
			t.Errorf("shard %d: %+v, %v", shard, state, err)
		}
	}
}

// TestNoAnswerIsToldThoughNobodyWrites: Health and Following report servers that do not
// answer at all, and why, also while nothing is written.
func TestNoAnswerIsToldThoughNobodyWrites(t *testing.T) {
	t.Parallel()
	eachLog(t, func(t *testing.T, connect func() *faulty) {
		client, standby := connect(), connect()
		a, b := openNode(t, "a", client).take(), openNode(t, "b", standby)
		a.until("the beginning", func() bool { return a.Health().State == journal.Ready && b.Following() == nil })
		client.silent.Store(true)
		standby.silent.Store(true)
		a.until("Health to tell", func() bool { h := a.Health(); return h.State == journal.Waiting && errors.Is(h.Err, errGate) })
		b.until("the standby to tell", func() bool { return errors.Is(b.Following(), errGate) })
		client.silent.Store(false)
		standby.silent.Store(false)
		a.until("the end of it", func() bool { return a.Health().State == journal.Ready && b.Following() == nil })
	})
}

// TestNoQuorumIsToldThoughNobodyWrites: Health reports a lost quorum without writes.
func TestNoQuorumIsToldThoughNobodyWrites(t *testing.T) {
	t.Parallel()
	eachLog(t, func(t *testing.T, connect func() *faulty) {
		client := connect()
		a := openNode(t, "a", client).take()
		a.until("the beginning", func() bool { return a.Health().State == journal.Ready })
		client.poor.Store(true)
		a.until("Health to tell", func() bool { h := a.Health(); return h.State == journal.Waiting && h.Err != nil })
		client.poor.Store(false)
		a.until("the end of it", func() bool { return a.Health().State == journal.Ready })
	})
}

// TestServersEndInTurn: each server is stopped and restarted while nodes write.
// Every acknowledged write is there once, in order.
func TestServersEndInTurn(t *testing.T) {
	t.Parallel()
	s, connect := ownServers(t)
	a, b := openNode(t, "a", connect()), openNode(t, "b", connect())
	a.take()
	var acked atomic.Int64
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			ticket, err := a.Append(a.ctx, text(fmt.Sprint(i)))
			if err == nil {
				err = ticket.Wait(a.ctx)
			}
			if err != nil {
				t.Errorf("write %d: %v", i, err)
				return
			}
			acked.Add(1)
		}
	}()
	more := func(what string) {
		began, at := time.Now(), acked.Load()
		a.until("writes after "+what, func() bool { return acked.Load() > at+5 || t.Failed() })
		t.Logf("writes go on %v after %s", time.Since(began).Round(time.Millisecond), what)
	}
	more("the beginning")
	for i := range 3 {
		s.End(i)
		more(fmt.Sprintf("the end of server %d", i))
		if err := s.Again(i); err != nil {
			t.Fatal(err)
		}
		more(fmt.Sprintf("server %d began again", i))
	}
	close(stop)
	<-done
	var want []string
	for i := range acked.Load() {
		want = append(want, fmt.Sprint(i))
	}
	a.has(want...)
	b.reaches(a.Reached(0))
	b.has(want...)
	verifyLog(t, connect(), b.Reached(0))
}

// verifyLog verifies a log of any servers, and closes the connection.
func verifyLog(t testing.TB, log *jetstream.Log, last uint64) {
	t.Helper()
	defer log.Close()
	verify(t, storedIn(t, log, last))
}

// TestADeadStore: a failed store of a node is a failure that Health and Failed
// report; another node then serves, and has everything that was acknowledged.
func TestADeadStore(t *testing.T) {
	t.Parallel()
	name := natsServers{}.create(t, 1, 1)
	var dead atomic.Bool
	a := openNode(t, "a", dial(t, name), func(o *cluster.Options) {
		o.Disk.FS = errorfs.Wrap(o.Disk.FS, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if dead.Load() && op.Kind == errorfs.OpFileWrite {
				return syscall.EIO
			}
			return nil
		}))
	})
	b := openNode(t, "b", dial(t, name))
	a.take().write("before")
	dead.Store(true)
	want := []string{"before"}
	for failed := false; !failed; {
		s := fmt.Sprint(len(want), strings.Repeat(" ", 10_000)) // Pebble writes full blocks
		ticket, err := a.Append(a.ctx, text(s))
		if err == nil {
			err = ticket.Wait(a.ctx)
		}
		if failed = err != nil; !failed {
			want = append(want, s)
		}
	}
	a.until("the failure", func() bool {
		select {
		case <-a.Failed():
			return true
		default:
			return false
		}
	})
	if h := a.Health(); h.State != journal.Broken || h.Err == nil {
		t.Errorf("health is %v", h)
	}
	got := b.take().texts()
	if len(got) < len(want) || !slices.Equal(got[:len(want)], want) || len(got) > len(want)+1 {
		t.Errorf("%d records were acknowledged, %d are there", len(want), len(got))
	}
	b.write("after")
}
