package ag2_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gobwas/ws"

	"github.com/parley-hub/parley/dialect/ag2"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/internal/wsconn"
)

func TestConnectionLimit(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{config: ag2.Config{Limits: ag2.Limits{Limits: wsconn.Limits{Connections: 2}}}})
	first, second := r.raw(), r.raw()
	refused := r.connect()
	refused.write([]byte(upgrade + "\r\n"))
	response, err := http.ReadResponse(refused.in, nil)
	if err != nil {
		t.Fatal(err)
	}
	body := make([]byte, 200)
	n, _ := response.Body.Read(body)
	_ = response.Body.Close()
	if response.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(body[:n]), "ag2.limits.connections") {
		t.Fatalf("got %s %q", response.Status, body[:n])
	}
	// The others are not affected, and one that disconnects frees its place.
	first.write(frame(true, opText, []byte(ping)))
	first.expect(ws.OpText, pong)
	second.write(frame(true, opClose, closePayload(1000, "")))
	second.expectClose(1000)
	until(t, "there is room", func() bool { return r.server.Stats().Connections == 1 })
	third := r.raw()
	third.write(frame(true, opText, []byte(ping)))
	third.expect(ws.OpText, pong)
	if got := r.server.Stats(); got.Refused != 1 || got.Opened != 3 {
		t.Errorf("counted %+v", got)
	}
}

// A message that arrives too slowly is cut off; a connection that waits between
// messages is not.
func TestSlowLoris(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{config: ag2.Config{Limits: ag2.Limits{Limits: wsconn.Limits{Message: 50 * time.Millisecond}}}})
	for name, begin := range map[string][]byte{
		"half a header":          {0x81},
		"half a message":         frame(true, opText, []byte(ping))[:8],
		"a fragment":             frame(false, opText, []byte(ping)),
		"a fragment with a ping": join(frame(false, opText, []byte(ping)), frame(true, opPong, nil)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := r.raw()
			c.t = t
			c.write(begin)
			if reason := c.expectClose(1008); !strings.Contains(reason, "ag2.limits.message") {
				t.Errorf("the reason is %q", reason)
			}
		})
	}
	t.Run("patience between messages", func(t *testing.T) {
		t.Parallel()
		c := r.raw()
		c.t = t
		for range 3 {
			c.write(frame(true, opText, []byte(ping)))
			c.expect(ws.OpText, pong)
			c.write(frame(true, opPing, nil)[:3])
			c.write(frame(true, opPing, nil)[3:])
			c.expect(ws.OpPong, "")
			<-time.After(80 * time.Millisecond)
		}
	})
}

// A peer that disappeared is detected; one that answers pings stays.
func TestHalfOpen(t *testing.T) {
	t.Parallel()
	limits := ag2.Limits{Limits: wsconn.Limits{Ping: 100 * time.Millisecond, Pong: 60 * time.Millisecond}}
	var passed atomic.Int64
	now := func() time.Time { return time.Unix(1_900_000_000, passed.Load()) }
	r := newRig(t, options{config: ag2.Config{Limits: limits, Now: now}})
	silent, lively := r.raw(), r.raw()
	answers := func(c *raw) {
		t.Helper()
		c.write(frame(true, opText, []byte(ping)))
		c.expect(ws.OpText, pong)
	}
	answers(silent)
	answers(lively)
	passed.Add(int64(limits.Ping))
	for _, c := range []*raw{silent, lively} {
		if op, _, err := c.read(); err != nil || op != ws.OpPing {
			t.Fatalf("got opcode %d, %v; want a ping", op, err)
		}
	}
	lively.write(frame(true, opPong, nil))
	answers(lively) // and its pong was received
	passed.Add(int64(limits.Pong))
	if reason := silent.expectClose(1011); reason == "" {
		t.Error("no reason is given")
	}
	answers(lively)
}

// A reader that never reads is disconnected once its queue is full. Nobody
// else is delayed, and what it missed is replayed when it reconnects.
func TestNeverReading(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{config: ag2.Config{Limits: ag2.Limits{Limits: wsconn.Limits{QueueBytes: 1 << 20}}}})
	a, b := r.dial(), r.dial()
	alice, bob := a.register("alice"), b.register("bob")
	deaf := r.raw()
	_ = deaf.conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	deaf.write(frame(true, opText, []byte(`{"kind":"request","request_id":"1","op":"register","params":{"passport":{"name":"deaf"},"resume":{},"rule":{"limits":{"inbox":{"max_pending":0}}}}}`)))
	op, _, err := deaf.read()
	if err != nil || op != ws.OpText {
		t.Fatalf("got opcode %d, %v", op, err)
	}
	id, ok := r.hub.FindAgent("deaf")
	if !ok {
		t.Fatal("not registered")
	}
	b.call("set_rule", object{"agent_id": bob, "rule": object{"limits": object{"inbox": object{"max_pending": 0}}}}, nil)
	request := a.request("create_channel", object{"creator_id": alice, "manifest_type": "discussion", "participants": []string{bob, id}})
	invite := b.notifiedOf("ag2.channel.invite")
	b.ack(invite)
	channel := invite.Envelope["channel_id"].(string)
	deaf.write(frame(true, opText, fmt.Appendf(nil, `{"kind":"request","request_id":"2","op":"post_envelope","params":{"envelope":{"channel_id":%q,"sender_id":%q,"event_type":"ag2.channel.invite.ack"}}}`, channel, id)))
	if _, err := a.response(request); err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("x", 100_000)
	posts := 0
	for r.server.Stats().SlowReaders == 0 {
		posts++
		if posts > 400 {
			t.Fatal("the deaf reader is still there")
		}
		a.post(channel, alice, "app.note", object{"text": text})
		if n := b.notifiedOf("app.note"); n.Recipient != bob {
			t.Fatalf("bob got %v", n.Recipient)
		}
	}
	until(t, "it is unbound", func() bool {
		_, bound := r.hub.Bound(id)
		return !bound
	})
	until(t, "the log says who it was", func() bool {
		log := r.log.String()
		return strings.Contains(log, "slow reader cut off") && strings.Contains(log, "agents=["+id+"]")
	})
	back := r.dial()
	back.hello("deaf", "")
	got := 0
	for got < posts {
		if n := back.notified(); n.Envelope["event_type"] == "app.note" {
			got++
		}
	}
	back.quiet()
}

// caught is a hub that records the last bound endpoint.
type caught struct {
	*hub.Hub
	last hub.Endpoint
}

func (c *caught) Bind(agent string, at hub.Endpoint) error {
	c.last = at
	return c.Hub.Bind(agent, at)
}

// A reader that the hub cuts off gets a close code that asks it to reconnect.
func TestCutOff(t *testing.T) {
	t.Parallel()
	var net *caught
	r := newRig(t, options{wrap: func(h *hub.Hub) ag2.Hub {
		net = &caught{Hub: h}
		return net
	}})
	c := r.raw()
	c.write(frame(true, opText, []byte(`{"kind":"request","request_id":"1","op":"register","params":{"passport":{"name":"behind"},"resume":{},"rule":{}}}`)))
	if op, _, err := c.read(); err != nil || op != ws.OpText {
		t.Fatalf("got opcode %d, %v", op, err)
	}
	id, _ := r.hub.FindAgent("behind")
	net.last.CutOff(fault.New(fault.SlowReader, "too much"))
	if reason := c.expectClose(1013); reason != string(fault.SlowReader) {
		t.Errorf("the reason is %q", reason)
	}
	until(t, "it is unbound", func() bool {
		_, bound := r.hub.Bound(id)
		return !bound
	})
	if n := r.server.Stats().SlowReaders; n != 1 {
		t.Errorf("%d readers were cut off", n)
	}
}

// Many silent connections cost little, and leave nothing behind.
func TestIdleConnections(t *testing.T) {
	const n = 5000
	r := newRig(t, options{})
	warm := r.dial()
	warm.register("warm")
	before := footprint()
	conns := make([]*raw, n)
	var group sync.WaitGroup
	for worker := range 16 {
		group.Go(func() {
			for i := worker; i < n; i += 16 {
				conns[i] = r.raw()
			}
		})
	}
	group.Wait()
	for i, c := range conns {
		conns[i].in = nil // the client's side is not measured
		_ = c
	}
	after := footprint()
	// The client's side of each socket is in this process too: its connection
	// and poll descriptor are counted with the hub's.
	each := (after - before) / n
	t.Logf("%d bytes for each idle connection, both sides", each)
	if each > 8<<10 {
		t.Errorf("an idle connection costs %d bytes, at most 8192", each)
	}
	warm.quiet()
	for _, c := range conns {
		_ = c.conn.Close()
	}
	until(t, "all are gone", func() bool { return r.server.Stats().Connections == 1 })
}

// footprint returns the heap and stacks in use.
func footprint() int64 {
	// Stacks shrink and pools empty over several collections.
	for range 4 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// A server that closes notifies its clients, finishes its work, and closes only
// once.
func TestClose(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{hub: hub.Options{InviteAckTimeout: time.Hour}})
	a := r.dial()
	alice := a.register("alice")
	b := r.dial()
	bob := b.register("bob")
	// An opening without an answer does not delay the shutdown.
	a.request("create_channel", object{"creator_id": alice, "manifest_type": "conversation", "participants": []string{bob}})
	b.notifiedOf("ag2.channel.invite")
	c := r.raw()
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			if err := r.server.Drain(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	c.expectClose(1001)
	_ = c.conn.Close()
	group.Wait()
	if got := r.server.Stats().Connections; got != 0 {
		t.Errorf("%d connections are left", got)
	}
	late := r.connect()
	late.write([]byte(upgrade + "\r\n"))
	if response, err := http.ReadResponse(late.in, nil); err != nil || response.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a late connection got %v, %v", response, err)
	}
}

// One large message to many identities of one connection reaches them all.
func TestLargeMessageToManyOnOneConnection(t *testing.T) {
	t.Parallel()
	const readers = 12
	r := newRig(t, options{})
	p, q := r.dial(), r.dial()
	alice := p.register("alice")
	invitees := map[string]*peer{}
	for i := range readers {
		invitees[q.register(fmt.Sprint("reader", i))] = q
	}
	ch := p.open("discussion", alice, invitees)
	text := strings.Repeat("x", 1_000_000)
	p.say(ch, alice, text)
	got := map[string]bool{}
	for len(got) < readers {
		if n := q.notifiedOf("ag2.msg.text"); n.Envelope["event_data"].(map[string]any)["text"] == text {
			got[n.Recipient] = true
		}
	}
}
