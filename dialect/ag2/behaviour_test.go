package ag2_test

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/gobwas/ws"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/ag2"
	"github.com/parley-hub/parley/hub"
)

// Urgent envelopes are sent before those of other channels that wait for the same
// reader, but never before one of their own channel.
func TestPriority(t *testing.T) {
	t.Parallel()
	spec.Check(t, "seed-000#58 seed-000#59: of what waits for a slow client", func(t *spec.T) {
		t.Parallel()
		r := newRig(t, options{})
		slow := r.raw()
		_ = slow.conn.(*net.TCPConn).SetReadBuffer(64 << 10)
		slow.write(frame(true, opText, []byte(`{"kind":"request","request_id":"1","op":"register","params":{"passport":{"name":"slow"},"resume":{}}}`)))
		_, _, _ = slow.read()
		p := r.dial()
		alice := p.register("alice")
		busy, calm, third := slow.join(p, alice), slow.join(p, alice), slow.join(p, alice)
		// Large posts fill the socket until some of them wait in the hub.
		big := strings.Repeat("x", 100_000)
		const n = 80
		for i := range n {
			p.post(busy, alice, "app.note", object{"n": i, "text": big})
		}
		p.post(calm, alice, "app.note", object{"n": 100}, object{"priority": "background"})
		p.post(calm, alice, "app.note", object{"n": 101}, object{"priority": "urgent"})
		p.post(busy, alice, "app.note", object{"n": 102}, object{"priority": "urgent"})
		p.post(third, alice, "app.note", object{"n": 103}, object{"priority": "urgent"})
		p.post(third, alice, "app.note", object{"n": 104})
		order := slow.numbers(n + 5)
		at := func(n int) int { return slices.Index(order, n) }
		for i := 1; i < n; i++ {
			t.True(at(i-1) < at(i), "the busy channel is in order: %v", order)
		}
		t.True(at(102) > at(n-1), "an urgent one waits for its own channel: %v", order)
		t.True(at(100) < at(101), "an urgent one waits for a background one of its channel: %v", order)
		t.True(at(103) < at(n-1), "an urgent one does not wait for another channel: %v", order)
		t.True(at(103) < at(104) && at(104) < at(100), "a normal one comes after its channel's urgent one and before what is less: %v", order)
	})
}

// join lets an identity of alice's peer open a channel with the one identity of the
// raw client.
func (c *raw) join(p *peer, alice string) string {
	c.t.Helper()
	var id string
	p.call("find_agent_id", object{"name": "slow"}, &id)
	request := p.request("create_channel", object{"creator_id": alice, "manifest_type": "conversation", "participants": []string{id}})
	_, payload, err := c.read()
	if err != nil {
		c.t.Fatal(err)
	}
	var n notice
	if err := json.Unmarshal(payload, &n); err != nil {
		c.t.Fatal(err)
	}
	ch := n.Envelope["channel_id"].(string)
	c.write(frame(true, opText, fmt.Appendf(nil, `{"kind":"request","request_id":"2","op":"post_envelope","params":{"envelope":{"channel_id":%q,"sender_id":%q,"event_type":"ag2.channel.invite.ack"}}}`, ch, id)))
	for range 2 {
		_, _, _ = c.read() // opened, and the answer
	}
	if _, err := p.response(request); err != nil {
		c.t.Fatal(err)
	}
	return ch
}

// numbers reads deliveries and returns the n that each carries.
func (c *raw) numbers(count int) []int {
	c.t.Helper()
	var order []int
	for len(order) < count {
		op, payload, err := c.read()
		if err != nil || op != ws.OpText {
			c.t.Fatalf("got opcode %d, %v", op, err)
		}
		var n notice
		if err := json.Unmarshal(payload, &n); err != nil {
			c.t.Fatal(err)
		}
		order = append(order, int(n.Envelope["event_data"].(object)["n"].(float64)))
	}
	return order
}

// A post that waits for another turn to end does not delay the answers to other
// posts and requests of its connection.
func TestLatePost(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{})
	p := r.dial()
	alice, bob, chief := p.register("alice"), p.register("bob"), p.register("chief")
	graph := object{
		"initial_speaker": alice, "default_target": object{"name": "round_robin", "args": object{}},
		"transitions": []any{}, "max_turns": nil,
	}
	ch := p.open("workflow", alice, map[string]*peer{bob: p, chief: p}, object{"knobs": object{"graph": graph, "supervisors": []string{chief}}})
	p.drain()
	asked := p.post(ch, alice, "ag2.msg.text", object{"text": "go"})
	p.drain()
	// It is bob's turn, so the supervisor's text waits.
	held := p.request("post_envelope", object{"envelope": env(ch, chief, "ag2.msg.text", object{"text": "careful"})})
	note := p.post(ch, bob, "ag2.task.started", object{"task_id": "t"})
	if note == "" || note <= asked {
		t.Fatalf("the note got %q", note)
	}
	p.call("get_channel", object{"channel_id": ch}, nil)
	reply := p.post(ch, bob, "ag2.msg.text", object{"text": "done"})
	raw, err := p.response(held)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Trim(string(raw), `"`); got <= note || got >= reply {
		t.Errorf("the word has id %s, which is not between %s and %s", got, note, reply)
	}
}

// Posts of one connection are stored in the order in which they were sent, although
// none waits for the answer to the one before.
func TestPipelinedPosts(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{})
	p, q := r.dial(), r.dial()
	alice, bob := p.register("alice"), q.register("bob")
	ch := p.open("conversation", alice, map[string]*peer{bob: q})
	held, release := r.engine.Faults().HoldSync()
	var requests []string
	for i := range 50 {
		requests = append(requests, p.request("post_envelope", object{"envelope": env(ch, alice, "ag2.msg.text", object{"text": fmt.Sprint(i)})}))
	}
	<-held
	release()
	var ids []string
	for _, request := range requests {
		raw, err := p.response(request)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, strings.Trim(string(raw), `"`))
	}
	if !slices.IsSorted(ids) {
		t.Error("the ids are not in the order of the posts")
	}
	for i, id := range ids {
		n := q.notified()
		if n.Envelope["envelope_id"] != id || n.Envelope["event_data"].(object)["text"] != fmt.Sprint(i) {
			t.Fatalf("delivery %d is %v", i, n)
		}
	}
}

// Posts that are read from the socket together are answered in their order,
// each on its own, whatever is between them.
func TestPostsReadTogether(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{})
	p, q := r.dial(), r.dial()
	alice, bob := p.register("alice"), q.register("bob")
	ch := p.open("conversation", alice, map[string]*peer{bob: q})
	other := p.open("conversation", alice, map[string]*peer{bob: q})
	q.drain()
	var frames []byte
	send := func(id, op string, params object) {
		payload, err := json.Marshal(object{"kind": "request", "request_id": id, "op": op, "params": params})
		if err != nil {
			t.Fatal(err)
		}
		frames = append(frames, frame(true, 1, payload)...)
	}
	said := func(channel, sender string, data any) object {
		return object{"envelope": env(channel, sender, "ag2.msg.text", nil, object{"event_data": data})}
	}
	send("1", "post_envelope", said(ch, alice, object{"text": "1"}))
	send("2", "post_envelope", said(ch, alice, object{"text": "2"}))
	send("3", "post_envelope", said(ch, bob, object{"text": "3"})) // the connection does not act for bob
	send("4", "post_envelope", said(ch, alice, object{"text": "4"}))
	send("5", "post_envelope", said(ch, alice, object{"text": "5"}))
	send("6", "get_channel", object{"channel_id": ch})
	send("7", "post_envelope", said(ch, alice, object{"text": "7"}))
	send("8", "post_envelope", said(other, alice, object{"text": "8"}))
	send("9", "post_envelope", said("nowhere", alice, object{"text": "9"}))
	send("10", "post_envelope", said(other, alice, object{"text": "10"}))
	if _, err := p.conn.Write(frames); err != nil {
		t.Fatal(err)
	}
	var answered []string
	for range 10 {
		var got struct {
			ID string `json:"request_id"`
			OK bool   `json:"ok"`
		}
		raw := p.recv()
		if err := json.Unmarshal([]byte(raw), &got); err != nil || got.OK != (got.ID != "3" && got.ID != "9") {
			t.Fatalf("got %s", raw)
		}
		if got.ID != "6" { // it does not wait for posts
			answered = append(answered, got.ID)
		}
	}
	if want := []string{"1", "2", "3", "4", "5", "7", "8", "9", "10"}; !slices.Equal(answered, want) {
		t.Errorf("answered in the order %v", answered)
	}
	// Posts of a client that disconnects are stored anyway.
	frames = nil
	send("11", "post_envelope", said(ch, alice, object{"text": "11"}))
	send("12", "post_envelope", said(ch, alice, object{"text": "12"}))
	if _, err := p.conn.Write(append(frames, frame(true, 8, []byte{3, 232})...)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"1", "2", "4", "5", "7", "8", "10", "11", "12"} {
		if n := q.notified(); n.Envelope["event_data"].(object)["text"] != want {
			t.Fatalf("bob was told %v, not %s", n, want)
		}
	}
}

// Creator and invitee on one connection, and two connections that open
// channels to each other at the same time.
func TestOpeningDoesNotBlock(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{})
	p := r.dial()
	alice, bob := p.register("alice"), p.register("bob")
	p.open("conversation", alice, map[string]*peer{bob: p})

	q, s := r.dial(), r.dial()
	carol, dave := q.register("carol"), s.register("dave")
	one := q.request("create_channel", object{"creator_id": carol, "manifest_type": "conversation", "participants": []string{dave}})
	two := s.request("create_channel", object{"creator_id": dave, "manifest_type": "conversation", "participants": []string{carol}})
	var group sync.WaitGroup
	for who, request := range map[*peer]string{q: one, s: two} {
		group.Go(func() {
			who.ack(who.notifiedOf("ag2.channel.invite"))
			if _, err := who.response(request); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

// A new identity whose client missed the invitation is invited again.
func TestInvitedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{})
	p, q := r.dial(), r.dial()
	alice, bob := p.register("alice"), q.register("bob")
	request := p.request("create_channel", object{"creator_id": alice, "manifest_type": "conversation", "participants": []string{bob}})
	first := q.notifiedOf("ag2.channel.invite")
	again := q.notifiedOf("ag2.channel.invite")
	if first.Envelope["envelope_id"] != again.Envelope["envelope_id"] {
		t.Fatalf("got another invitation: %v", again)
	}
	q.ack(again)
	if _, err := p.response(request); err != nil {
		t.Fatal(err)
	}
}

// While an operation takes long, pings are answered.
func TestReaderKeepsReading(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	r := newRig(t, options{wrap: func(h *hub.Hub) ag2.Hub { return &stuck{Hub: h, gate: gate} }})
	c := r.raw()
	c.write(frame(true, opText, []byte(`{"kind":"request","request_id":"1","op":"find_agent_id","params":{"name":"slow"}}`)))
	c.write(frame(true, opText, []byte(`{"kind":"request","request_id":"2","op":"find_agent_id","params":{"name":"quick"}}`)))
	c.write(frame(true, opPing, []byte("alive?")))
	c.expect(ws.OpPong, "alive?")
	close(gate)
	for _, id := range []string{"1", "2"} {
		c.expect(ws.OpText, `{"kind":"response","request_id":"`+id+`","ok":true,"result":null,"error_code":"","error_message":""}`)
	}
}

type stuck struct {
	*hub.Hub
	gate chan struct{}
}

func (s *stuck) FindAgent(name string) (string, bool) {
	if name == "slow" {
		select {
		case <-s.gate:
		case <-time.After(wait):
		}
	}
	return s.Hub.FindAgent(name)
}

// A log that is too large for one frame is read without what the client does not
// fold; one that is still too large is refused, and can be read in parts.
func TestLongLogs(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{})
	p, q := r.dial(), r.dial()
	alice, bob := p.register("alice"), q.register("bob")
	p.call("set_rule", object{"agent_id": alice, "rule": object{}}, nil)
	ch := p.open("conversation", alice, map[string]*peer{bob: q})
	big := strings.Repeat("x", 400_000)
	for range 3 {
		p.post(ch, alice, "ag2.task.progress", object{"text": big})
	}
	said := p.say(ch, alice, "short")
	types := func(params object) []string {
		params["channel_id"] = ch
		var log []object
		q.call("read_wal", params, &log)
		list := []string{}
		for _, e := range log {
			list = append(list, e["event_type"].(string))
		}
		return list
	}
	want := []string{"ag2.channel.invite", "ag2.channel.invite.ack", "ag2.channel.opened", "ag2.msg.text"}
	if got := types(object{"since": 0, "until": nil}); !slices.Equal(got, want) {
		t.Errorf("a full read has %v, want %v", got, want)
	}
	if got := types(object{"since": 3, "until": 5}); !slices.Equal(got, []string{"ag2.task.progress", "ag2.task.progress"}) {
		t.Errorf("a part has %v", got)
	}
	if _, err := q.try("read_wal", object{"channel_id": ch, "since": 3}); err == nil || !strings.HasPrefix(err.Error(), "error: ") || !strings.Contains(err.Error(), "1048576") {
		t.Errorf("a part that is too large got %v", err)
	}
	if r.server.Stats().LongLogs == 0 {
		t.Error("the long log is not counted")
	}
	types(object{"since": 0})
	page, _, err := r.hub.AuditLog(t.Context(), hub.AuditQuery{Kind: "channel_log_long"})
	if err != nil || len(page) != 1 {
		t.Errorf("the long log is audited %d times, %v", len(page), err)
	}
	if said == "" {
		t.Error("nothing was said")
	}
	for range 3 {
		p.post(ch, alice, "ag2.msg.text", object{"text": big})
	}
	if _, err := q.try("read_wal", object{"channel_id": ch}); err == nil || !strings.HasPrefix(err.Error(), "error: ") {
		t.Errorf("a log of texts that is too large got %v", err)
	}
	q.hello("bob", said)
	q.drain()
}
