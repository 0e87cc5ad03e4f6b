package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	api "github.com/nats-io/nats.go/jetstream"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/cluster"
	"github.com/parley-hub/parley/journal/cluster/internal/frame"
	"github.com/parley-hub/parley/journal/cluster/natsservers"
)

// request sends a request to the servers, as an operator or a foreign client would.
func request(t testing.TB, url, subject, body string) {
	t.Helper()
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	answer, err := nc.RequestWithContext(ctx, subject, []byte(body))
	if err != nil || strings.Contains(string(answer.Data), `"error"`) {
		t.Fatalf("%s: %v, %v", subject, answer, err)
	}
}

// persist writes with retries, as a hub does for its clients.
func (n *node) persist(s string) {
	n.t.Helper()
	for {
		ticket, err := n.Append(n.ctx, text(s))
		if err == nil {
			err = ticket.Wait(n.ctx)
		}
		if err == nil {
			return
		}
		if !journal.Retryable(err) {
			n.t.Fatalf("writing %s: %v", s, err)
		}
		n.until("the lead", func() bool { mine, _, _ := n.Lead(0); return mine })
	}
}

// TestAForeignPublisher: a foreign client publishes to the log's subject while a node
// leads. The node loses its slot, fences again by itself, and continues.
func TestAForeignPublisher(t *testing.T) {
	t.Parallel()
	name := natsServers{}.create(t, 1, 1)
	url, _ := servers()
	leading := func(o *cluster.Options) { o.Manual = false }
	a := openNode(t, "a", dial(t, name), leading)
	b := openNode(t, "b", dial(t, name))
	a.until("the lead", func() bool { mine, _, _ := a.Lead(0); return mine })
	var want []string
	for i := range 12 {
		if i%3 == 1 {
			request(t, url, "parley."+name+".log.0", "who am I")
		}
		s := fmt.Sprint(i)
		a.persist(s)
		want = append(want, s)
	}
	a.has(want...)
	b.reaches(a.Reached(0))
	b.has(want...)
	if a.Voids() != 4 || b.Voids() != 4 {
		t.Errorf("%d and %d foreign messages were counted", a.Voids(), b.Voids())
	}
	verify(t, stored(t, name, a.Reached(0)))
}

// TestAPurgedStream: the leader and a node that has everything continue, and a node
// that is behind takes a copy.
func TestAPurgedStream(t *testing.T) {
	t.Parallel()
	name := natsServers{}.create(t, 1, 1)
	url, _ := servers()
	p := &peers{nodes: map[string]*node{}}
	a, b, c := openNode(t, "a", dial(t, name), p.options), openNode(t, "b", dial(t, name), p.options), openNode(t, "c", dial(t, name), p.options)
	p.nodes["a"], p.nodes["b"] = a, b
	a.take().write("1", "2")
	c.reaches(a.Reached(0))
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	a.write("3", "4")
	b.reaches(a.Reached(0))
	request(t, url, "$JS.API.STREAM.PURGE.PARLEY_"+name+"_0", "")
	a.write("5")
	b.reaches(a.Reached(0))
	b.has("1", "2", "3", "4", "5")
	c = openOn(t, c.fs, "c", dial(t, name), p.options)
	c.reaches(a.Reached(0))
	c.has("1", "2", "3", "4", "5")
	if p.count() != 1 {
		t.Errorf("%d copies were given", p.count())
	}
	c.take().write("6")
	b.reaches(c.Reached(0))
	b.has("1", "2", "3", "4", "5", "6")
	a.reaches(c.Reached(0))
	a.has("1", "2", "3", "4", "5", "6")
	// All nodes close, the stream is empty, and one node opens again.
	request(t, url, "$JS.API.STREAM.PURGE.PARLEY_"+name+"_0", "")
	for _, n := range []*node{a, b, c} {
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
	}
	a = openOn(t, a.fs, "a", dial(t, name)).take()
	a.write("7")
	a.has("1", "2", "3", "4", "5", "6", "7")
}

// TestADeletedStream: publishing to a deleted stream never succeeds; the shard fails
// closed with a typed error, and reads continue. A new stream of the same name is
// another log.
func TestADeletedStream(t *testing.T) {
	t.Parallel()
	name := natsServers{}.create(t, 1, 1)
	url, _ := servers()
	a, b := openNode(t, "a", dial(t, name)), openNode(t, "b", dial(t, name))
	a.take().write("1", "2")
	b.reaches(a.Reached(0))
	request(t, url, "$JS.API.STREAM.DELETE.PARLEY_"+name+"_0", "")
	if ticket, err := a.Append(a.ctx, text("3")); err == nil {
		if o := a.outcome(ticket); o == journal.Durable {
			t.Fatal("it is durable, in no stream")
		}
	}
	_ = fails[*cluster.GoneError](a)
	_ = fails[*cluster.GoneError](b)
	a.has("1", "2")
	log := dial(t, name)
	defer log.Close()
	if err := log.Create(a.ctx, 1, 3, 1); err != nil {
		t.Fatal(err)
	}
	_ = fails[*cluster.ReplacedError](a)
	_ = fails[*cluster.ReplacedError](b)
}

// TestASettingIsChanged: if a setting of the stream is changed, the nodes report which,
// and continue when it is right again.
func TestASettingIsChanged(t *testing.T) {
	t.Parallel()
	name := natsServers{}.create(t, 1, 1)
	url, _ := servers()
	a, b := openNode(t, "a", dial(t, name)), openNode(t, "b", dial(t, name))
	a.take().write("1")
	b.reaches(a.Reached(0))
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := api.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(a.ctx, "PARLEY_"+name+"_0")
	if err != nil {
		t.Fatal(err)
	}
	config := stream.CachedInfo().Config
	config.MaxAge = time.Hour
	if _, err := js.UpdateStream(a.ctx, config); err != nil {
		t.Fatal(err)
	}
	for _, n := range []*node{a, b} {
		n.until("the setting's name", func() bool {
			h := n.Health()
			return h.State == journal.Waiting && strings.Contains(h.Err.Error(), "max_age")
		})
	}
	config.MaxAge = 0
	if _, err := js.UpdateStream(a.ctx, config); err != nil {
		t.Fatal(err)
	}
	for _, n := range []*node{a, b} {
		n.until("the end of the trouble", func() bool { return n.Trouble(0) == nil })
	}
	a.write("2")
	b.reaches(a.Reached(0))
	b.has("1", "2")
}

// TestALogThatIsGone: if the log comes back, everything continues.
func TestALogThatIsGone(t *testing.T) {
	t.Parallel()
	logs, a := led(t)
	logs.Remove(0, true)
	if o := a.outcome(a.order("4")); o != journal.Unknown {
		t.Fatalf("it ended %v", o)
	}
	_ = fails[*cluster.GoneError](a)
	logs.Remove(0, false)
	a.take().write("5")
	a.has("1", "2", "3", "5")
}

// TestServersThatTakeLess: max_payload is lowered while a group is being published.
// The group is then published in parts, and only once.
func TestServersThatTakeLess(t *testing.T) {
	t.Parallel()
	for _, v := range []verdict{lose, storeUnheard} {
		eachLog(t, func(t *testing.T, connect func() *faulty) {
			client := connect()
			var unread, again atomic.Bool // the next read has no answer; parts are split again
			client.onRead = func(context.Context) error {
				if unread.CompareAndSwap(true, false) {
					return errors.New("no answer")
				}
				return nil
			}
			client.onAppend = func(data []byte) verdict {
				switch {
				case len(data) > 4<<10: // the first try, after which the servers accept less
					client.most.Store(1 << 10)
					unread.Store(true)
					return v
				case again.Load() && frame.KindOf(data) == frame.Part && len(data) > 1<<10:
					client.most.Store(1 << 10)
				}
				return store
			}
			a, b := openNode(t, "a", client).take(), openNode(t, "b", connect())
			large := strings.Repeat("large ", 1500)
			a.write("1", large, "2")
			a.has("1", large, "2")
			b.reaches(a.Reached(0))
			b.has("1", large, "2")
			verify(t, connect().messages(t))
			if mine, _, _ := a.Lead(0); !mine {
				t.Error("the lead is lost")
			}
			// The limit is lowered again while parts are being published.
			client.most.Store(2 << 10)
			again.Store(true)
			a.write(large)
			b.reaches(a.Reached(0))
			b.has("1", large, "2", large)
			verify(t, connect().messages(t))
		})
	}
}

// TestMaxPayloadLowered: the same on real servers, which are restarted one after the
// other.
func TestMaxPayloadLowered(t *testing.T) {
	t.Parallel()
	s, connect := ownServers(t)
	a, b := openNode(t, "a", connect()), openNode(t, "b", connect())
	large := strings.Repeat("large ", 50_000)
	a.take().write("1", large)
	for i := range 3 {
		s.End(i)
		s.Change(i, func(o *server.Options) { o.MaxPayload = 16 << 10 })
		if err := s.Again(i); err != nil {
			t.Fatal(err)
		}
		a.write(fmt.Sprint(i))
	}
	a.write(large)
	want := []string{"1", large, "0", "1", "2", large}
	a.has(want...)
	b.reaches(a.Reached(0))
	b.has(want...)
	verifyLog(t, connect(), b.Reached(0))
}

// TestFullServers: the servers have no space for a published group. The group waits;
// when there is space, everything continues by itself.
func TestFullServers(t *testing.T) {
	t.Parallel()
	s, err := natsservers.StartWith(t.Context(), 3, t.TempDir(), func(o *server.Options) { o.JetStreamMaxStore = 8 << 20 })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	connect := connector(t, s)
	request(t, s.URL(), "$JS.API.STREAM.CREATE.FILLER",
		`{"name":"FILLER","subjects":["filler"],"storage":"file","num_replicas":3,"retention":"limits","max_consumers":-1,"max_msgs":-1,"max_bytes":-1,"discard":"new"}`)
	for range 5 {
		request(t, s.URL(), "filler", strings.Repeat("x", 1<<20-1024))
	}
	a, b := openNode(t, "a", connect()), openNode(t, "b", connect())
	a.take()
	chunk := strings.Repeat("chunk ", 40_000)
	tickets := make([]*journal.Ticket, 24) // three times the room
	ordered := make(chan error, 1)
	go func() { // a full server makes Append wait as well
		for i := range tickets {
			var err error
			if tickets[i], err = a.Append(a.ctx, text(chunk)); err != nil {
				ordered <- fmt.Errorf("chunk %d: %w", i, err)
				return
			}
		}
		ordered <- nil
	}()
	a.until("Health to tell", func() bool { return a.Health().State == journal.Waiting })
	if len(a.texts()) == len(tickets) {
		t.Fatal("this test shows nothing: there was room for all")
	}
	request(t, s.URL(), "$JS.API.STREAM.DELETE.FILLER", "")
	if err := <-ordered; err != nil {
		t.Fatal(err)
	}
	for i, ticket := range tickets {
		if err := ticket.Wait(a.ctx); err != nil {
			t.Fatalf("chunk %d: %v", i, err)
		}
	}
	want := slices.Repeat([]string{chunk}, len(tickets))
	a.has(want...)
	b.reaches(a.Reached(0))
	b.has(want...)
	verifyLog(t, connect(), b.Reached(0))
}

// TestASlowFollower: messages that a follower does not receive in time are not queued;
// it reads them from the log.
func TestASlowFollower(t *testing.T) {
	t.Parallel()
	eachLog(t, func(t *testing.T, connect func() *faulty) {
		a := openNode(t, "a", connect()).take()
		client, gate := connect(), make(chan struct{})
		client.onRead = held(gate)
		a.write("1")
		b := openNode(t, "b", client)
		want := []string{"1"}
		for i := range 4 * cluster.TailQueue {
			want = append(want, fmt.Sprint(i))
		}
		a.write(want[1:]...)
		close(gate)
		b.reaches(a.Reached(0))
		b.has(want...)
	})
}
