package ag2_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/ag2"
	"github.com/parley-hub/parley/hub"
)

// The numbered statements about the wire, checked by a client that uses nothing but
// frames.

// fails is the answer to a refused hello.
type fails struct {
	Kind    string `json:"kind"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (p *peer) refused(hello string) fails {
	p.t.Helper()
	p.send(hello)
	var f fails
	if got := p.recv(); json.Unmarshal([]byte(got), &f) != nil {
		p.t.Fatalf("got %s", got)
	}
	return f
}

func TestHandshakeStatements(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{})
	owner := r.dial()
	owner.call("register", object{"passport": object{"name": "quill", "auth": object{"scheme": "api_key", "claim": object{"token": "tok-7"}}}, "resume": object{}}, nil)
	owner.register("open")
	quill := idOf(r, "quill")
	home, _ := r.hub.Bound(quill)

	spec.Check(t, "ag2-hub#1: a registered name is welcomed", func(t *spec.T) {
		p := r.dial()
		p.send(`{"kind":"hello","name":"open"}`)
		var w struct {
			Kind     string `json:"kind"`
			Endpoint string `json:"endpoint_id"`
		}
		t.NoError(json.Unmarshal([]byte(p.recv()), &w))
		t.Equal(w.Kind, "welcome")
		t.True(w.Endpoint != "", "endpoint_id is not empty")
		at, bound := r.hub.Bound(idOf(r, "open"))
		t.Equal([]any{at, bound}, []any{w.Endpoint, true})
	})
	spec.Check(t, "ag2-hub#2: hello for an unknown name is not_found", func(t *spec.T) {
		got := r.dial().refused(`{"kind":"hello","name":"nobody","auth_scheme":"api_key","auth_claim":{"token":"tok-7"}}`)
		t.Equal([]string{got.Kind, got.Code}, []string{"error", "not_found"})
	})
	for _, tt := range []struct{ statement, hello, fragment string }{
		{"ag2-hub#3: a wrong token is refused", `{"kind":"hello","name":"quill","auth_scheme":"api_key","auth_claim":{"token":"tok-8"}}`, "mismatch"},
		{"ag2-hub#4: a missing token is refused", `{"kind":"hello","name":"quill","auth_scheme":"api_key","auth_claim":{}}`, "token"},
		{"ag2-hub#4: an unknown scheme is refused", `{"kind":"hello","name":"quill","auth_scheme":"vip","auth_claim":{"token":"tok-7"}}`, "unknown auth scheme"},
	} {
		spec.Check(t, tt.statement, func(t *spec.T) {
			got := r.dial().refused(tt.hello)
			t.Equal([]string{got.Kind, got.Code}, []string{"error", "auth_failed"})
			t.Contains(got.Message, tt.fragment)
			at, _ := r.hub.Bound(quill)
			t.Equal(at, home)
		})
	}
	spec.Check(t, "ag2-hub#3: the right token binds", func(t *spec.T) {
		p := r.dial()
		p.send(`{"kind":"hello","name":"quill","auth_scheme":"api_key","auth_claim":{"token":"tok-7"}}`)
		var w struct {
			Kind     string `json:"kind"`
			Endpoint string `json:"endpoint_id"`
		}
		t.NoError(json.Unmarshal([]byte(p.recv()), &w))
		at, bound := r.hub.Bound(quill)
		t.Equal([]any{w.Kind, at, bound}, []any{"welcome", w.Endpoint, true})
	})
}

func TestConnectionStatements(t *testing.T) {
	t.Parallel()
	spec.Check(t, "ag2-hub#8: a client's close removes its endpoint and bindings", func(t *spec.T) {
		t.Parallel()
		r := newRig(t, options{})
		p := r.dial()
		alice, bob := p.register("alice"), p.register("bob")
		t.Equal(r.server.Stats().Connections, int64(1))
		p.hangUp()
		until(t, "the endpoint is gone", func() bool { return r.server.Stats().Connections == 0 })
		_, a := r.hub.Bound(alice)
		_, b := r.hub.Bound(bob)
		t.Equal([]bool{a, b}, []bool{false, false})
	})
	spec.Check(t, "ag2-hub#11: an error in the stream", func(t *spec.T) {
		t.Parallel()
		r := newRig(t, options{})
		watch := r.dial()
		watch.register("watch")
		bad := r.raw()
		bad.write(frame(true, 3, nil))
		bad.expectClose(1002)
		until(t, "it is logged", func() bool { return strings.Contains(r.log.String(), "endpoint frame loop failed") })
		until(t, "it is dropped", func() bool { return r.server.Stats().Connections == 1 })
		t.Equal(watch.find("watch"), idOf(r, "watch"))
	})
	spec.Check(t, "ag2-hub#11: a fault while a frame is processed", func(t *spec.T) {
		t.Parallel()
		r := newRig(t, options{wrap: func(h *hub.Hub) ag2.Hub { return &faulty{Hub: h} }})
		watch := r.dial()
		watch.register("watch")
		bad := r.raw()
		bad.write(frame(true, opText, []byte(`{"kind":"request","request_id":"1","op":"get_agent","params":{"name_or_id":"panic"}}`)))
		bad.expectClose(1011)
		until(t, "it is logged", func() bool { return strings.Contains(r.log.String(), "endpoint frame loop failed") })
		until(t, "it is dropped", func() bool { return r.server.Stats().Connections == 1 })
		t.Equal(watch.find("watch"), idOf(r, "watch"))
	})
	spec.Check(t, "ag2-hub#13: agents of a connection share its endpoint", func(t *spec.T) {
		t.Parallel()
		r := newRig(t, options{})
		p := r.dial()
		alice, bob := p.register("alice"), p.register("bob")
		first, _ := r.hub.Bound(alice)
		second, _ := r.hub.Bound(bob)
		t.True(first != "", "bound somewhere")
		t.Equal(second, first)
		t.Equal(p.hello("alice", nil), first)
	})
	spec.Check(t, "ag2-hub#13: unregistering one leaves the others bound", func(t *spec.T) {
		t.Parallel()
		r := newRig(t, options{})
		p, q := r.dial(), r.dial()
		alice, bob, carol := p.register("alice"), p.register("bob"), q.register("carol")
		p.call("unregister", object{"agent_id": alice}, nil)
		_, a := r.hub.Bound(alice)
		_, b := r.hub.Bound(bob)
		t.Equal([]bool{a, b}, []bool{false, true})
		ch := q.open("conversation", carol, map[string]*peer{bob: p})
		id := q.say(ch, carol, "still there?")
		t.Equal(p.notified().Envelope["envelope_id"], any(id))
	})
	spec.Check(t, "ag2-hub#14: endpoints differ", func(t *spec.T) {
		t.Parallel()
		r := newRig(t, options{})
		p, q := r.dial(), r.dial()
		first, _ := r.hub.Bound(p.register("alice"))
		second, _ := r.hub.Bound(q.register("bob"))
		t.True(first != second, "%s and %s differ", first, second)
	})
	spec.Check(t, "ag2-hub#14: deliveries do not leak", func(t *spec.T) {
		t.Parallel()
		r := newRig(t, options{})
		p, q, eve := r.dial(), r.dial(), r.dial()
		alice, bob := p.register("alice"), q.register("bob")
		eve.register("eve")
		ch := p.open("conversation", alice, map[string]*peer{bob: q})
		id := p.say(ch, alice, "between us")
		n := q.notified()
		t.Equal([]any{n.Envelope["envelope_id"], n.Recipient}, []any{id, bob})
		p.quiet()
		eve.quiet()
	})
	for name, open := range map[string]bool{"with a channel open": true, "without channels": false} {
		spec.Check(t, "ag2-hub#18: shutdown "+name, func(t *spec.T) {
			t.Parallel()
			r := newRig(t, options{})
			p := r.dial()
			alice, bob := p.register("alice"), p.register("bob")
			if open {
				p.open("conversation", alice, map[string]*peer{bob: p})
			}
			ctx, cancel := context.WithTimeout(context.Background(), wait)
			defer cancel()
			t.NoError(r.server.Drain(ctx))
			t.NoError(r.server.Drain(ctx))
			r.hub.Close()
			r.hub.Close()
			t.Equal(r.server.Stats().Connections, int64(0))
			// TestMain checks that no goroutine is left.
		})
	}
}

// faulty is a hub that panics on request.
type faulty struct{ *hub.Hub }

func (f *faulty) Agent(nameOrID string) (hub.Profile, error) {
	if nameOrID == "panic" {
		panic("on purpose")
	}
	return f.Hub.Agent(nameOrID)
}

func (p *peer) find(name string) string {
	p.t.Helper()
	var id string
	p.call("find_agent_id", object{"name": name}, &id)
	return id
}

func TestDeliveryStatements(t *testing.T) {
	t.Parallel()
	spec.Check(t, "ag2-hub#9: a notify over WebSocket carries the right recipient_id", func(t *spec.T) {
		t.Parallel()
		r := newRig(t, options{})
		p, q := r.dial(), r.dial()
		alice, bob := p.register("alice"), q.register("bob")
		ch := p.open("conversation", alice, map[string]*peer{bob: q})
		id := p.say(ch, alice, "hi")
		n := q.notified()
		t.Equal(n.Recipient, bob)
		before, err := r.hub.Cursor(t.Context(), bob, ch)
		t.NoError(err)
		t.Equal(before, "")
		q.receipt(n, "ack")
		q.quiet()
		after, err := r.hub.Cursor(t.Context(), bob, ch)
		t.NoError(err)
		t.Equal(after, id)
	})
	spec.Check(t, "ag2-hub#15: a targeted envelope reaches only its target", func(t *spec.T) {
		t.Parallel()
		r := newRig(t, options{})
		p, q := r.dial(), r.dial()
		alice, bob, carol := p.register("alice"), q.register("bob"), q.register("carol")
		ch := p.open("discussion", alice, map[string]*peer{bob: q, carol: q})
		q.drain()
		id := p.post(ch, alice, "app.note", object{}, object{"audience": []string{carol}})
		n := q.notified()
		t.Equal([]any{n.Envelope["envelope_id"], n.Recipient}, []any{id, carol})
		q.quiet()
		p.quiet()
	})
	spec.Check(t, "ag2-hub#25: a unique envelope id per post; the op returns that id", func(t *spec.T) {
		t.Parallel()
		r := newRig(t, options{})
		p, q := r.dial(), r.dial()
		alice, bob := p.register("alice"), q.register("bob")
		ch := p.open("conversation", alice, map[string]*peer{bob: q})
		var ids, delivered []string
		for i := range 20 {
			ids = append(ids, p.say(ch, alice, fmt.Sprint(i)))
			delivered = append(delivered, q.notified().Envelope["envelope_id"].(string))
		}
		t.Equal(delivered, ids)
		t.Equal(len(slices.Compact(slices.Sorted(slices.Values(ids)))), 20)
	})
	spec.Check(t, "ag2-hub#76: on the wire", func(t *spec.T) {
		t.Parallel()
		r := newRig(t, options{})
		p, q := r.dial(), r.dial()
		alice, bob := p.register("alice"), q.register("bob")
		ch := p.open("conversation", alice, map[string]*peer{bob: q})
		one := p.say(ch, alice, "1")
		p.say(ch, alice, "2")
		q.receipt(q.notified(), "ack")
		q.receipt(q.notified(), "nack")
		q.quiet()
		cursor, err := r.hub.Cursor(t.Context(), bob, ch)
		t.NoError(err)
		t.Equal(cursor, one)
	})
	for name, missing := range map[string]string{"recipient_id": "recipient_id", "channel_id": "channel_id"} {
		spec.Check(t, "ag2-hub#77: without "+name, func(t *spec.T) {
			t.Parallel()
			r := newRig(t, options{})
			p, q := r.dial(), r.dial()
			alice, bob := p.register("alice"), q.register("bob")
			ch := p.open("conversation", alice, map[string]*peer{bob: q})
			id := p.say(ch, alice, "hi")
			q.notified()
			receipt := object{"kind": "receipt", "envelope_id": id, "status": "ack", "recipient_id": bob, "channel_id": ch}
			for _, leave := range []any{nil, ""} {
				receipt[missing] = leave
				raw, err := json.Marshal(receipt)
				t.NoError(err)
				q.send(string(raw))
			}
			q.quiet()
			cursor, err := r.hub.Cursor(t.Context(), bob, ch)
			t.NoError(err)
			t.Equal(cursor, "")
		})
	}
}

func TestReplayStatements(t *testing.T) {
	t.Parallel()
	// missed opens a channel, posts a text, disconnects bob, and posts the rest.
	missed := func(t *spec.T) (r *rig, ch, bob, seen string, rest []string) {
		r = newRig(t, options{})
		p, q := r.dial(), r.dial()
		alice := p.register("alice")
		bob = q.register("bob")
		ch = p.open("conversation", alice, map[string]*peer{bob: q})
		seen = p.say(ch, alice, "seen")
		q.notified()
		q.hangUp()
		until(t, "bob is gone", func() bool { return r.server.Stats().Connections == 1 })
		for i := range 3 {
			rest = append(rest, p.say(ch, alice, fmt.Sprint("missed ", i)))
		}
		return r, ch, bob, seen, rest
	}
	spec.Check(t, "ag2-hub#78: replay sends exactly what was missed", func(t *spec.T) {
		t.Parallel()
		r, _, bob, seen, rest := missed(t)
		back := r.dial()
		back.hello("bob", seen)
		var got, recipients []string
		for range rest {
			n := back.notified()
			got, recipients = append(got, n.Envelope["envelope_id"].(string)), append(recipients, n.Recipient)
		}
		t.Equal(got, rest)
		t.Equal(recipients, []string{bob, bob, bob})
		back.quiet()
	})
	spec.Check(t, "ag2-hub#79: an empty since with all acked sends nothing", func(t *spec.T) {
		t.Parallel()
		r, ch, bob, _, rest := missed(t)
		back := r.dial()
		back.hello("bob", nil)
		back.send(fmt.Sprintf(`{"kind":"receipt","envelope_id":%q,"status":"ack","recipient_id":%q,"channel_id":%q}`, rest[2], bob, ch))
		back.quiet()
		cursor, err := r.hub.Cursor(t.Context(), bob, ch)
		t.NoError(err)
		t.Equal(cursor, rest[2])
		back.hello("bob", "")
		back.quiet()
	})
	spec.Check(t, "ag2-hub#80: hello without since sends only welcome", func(t *spec.T) {
		t.Parallel()
		r, ch, bob, _, rest := missed(t)
		back := r.dial()
		back.hello("bob", nil)
		back.quiet()
		back.send(`{"kind":"hello","name":"bob"}`)
		t.Contains(back.recv(), `"kind":"welcome"`)
		back.quiet()
		// There was something to replay.
		length, err := r.hub.Length(t.Context(), ch)
		t.NoError(err)
		t.Equal(length, uint64(4+len(rest)))
		back.hello("bob", "")
		t.Equal(back.notified().Recipient, bob)
	})
}

func TestAttachStatements(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{})
	old, next, other := r.dial(), r.dial(), r.dial()
	alice, bob, carol := old.register("alice"), old.register("bob"), other.register("carol")
	before, _ := r.hub.Bound(alice)
	spec.Check(t, "ag2-hub#86: keeps the id and moves the binding", func(t *spec.T) {
		endpoint := next.hello("alice", "")
		t.Equal(next.find("alice"), alice)
		at, _ := r.hub.Bound(alice)
		t.Equal(at, endpoint)
		t.True(at != before, "the binding moved")
	})
	spec.Check(t, "ag2-hub#86: the old endpoint and its other agents work on", func(t *spec.T) {
		at, bound := r.hub.Bound(bob)
		t.Equal([]any{at, bound}, []any{before, true})
		ch := other.open("conversation", carol, map[string]*peer{bob: old})
		id := other.say(ch, carol, "hi bob")
		n := old.notifiedOf("ag2.msg.text")
		t.Equal([]any{n.Envelope["envelope_id"], n.Recipient}, []any{id, bob})
	})
	spec.Check(t, "ag2-hub#8 ag2-hub#86: the end of the old endpoint takes only its own bindings", func(t *spec.T) {
		moved, _ := r.hub.Bound(alice)
		old.hangUp()
		until(t, "the old endpoint is gone", func() bool { return r.server.Stats().Connections == 2 })
		_, bound := r.hub.Bound(bob)
		t.False(bound, "bob is bound")
		at, _ := r.hub.Bound(alice)
		t.Equal(at, moved)
		t.True(at != "" && at != before, "alice stays where it moved to")
	})
}

func TestRegisterStatements(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{})
	for _, missing := range []string{"passport", "resume"} {
		spec.Check(t, "ag2-hub#87: needs a "+missing, func(t *spec.T) {
			params := object{"passport": object{"name": "new"}, "resume": object{}}
			delete(params, missing)
			_, err := r.dial().try("register", params)
			t.Equal(err, error(&failure{"error", "'" + missing + "' is missing"}))
			_, registered := r.hub.FindAgent("new")
			t.False(registered, "it is registered")
		})
	}
}

func TestDirectoryStatements(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{})
	p, q := r.dial(), r.dial()
	var passport struct {
		ID string `json:"agent_id"`
	}
	p.call("register", object{"passport": object{"name": "alice"}, "resume": object{"claimed_capabilities": []string{"ocr"}}}, &passport)
	type named struct {
		Name string `json:"name"`
		ID   string `json:"agent_id"`
	}
	spec.Check(t, "ag2-hub#19: by name", func(t *spec.T) {
		var got named
		q.call("get_agent", object{"name_or_id": "alice"}, &got)
		t.Equal(got, named{"alice", passport.ID})
		t.Equal(q.find("alice"), passport.ID)
	})
	spec.Check(t, "ag2-hub#19: by capability", func(t *spec.T) {
		var got []named
		q.call("list_agents", object{"capability": "ocr"}, &got)
		t.Equal(got, []named{{"alice", passport.ID}})
		q.call("list_agents", object{"capability": "other"}, &got)
		t.Equal(got, []named{})
	})
	spec.Check(t, "ag2-hub#24: null before", func(t *spec.T) {
		raw, err := p.try("read_task_checkpoint", object{"task_id": "t1"})
		t.NoError(err)
		t.Equal(string(raw), "null")
	})
	spec.Check(t, "ag2-hub#24: equal after", func(t *spec.T) {
		p.call("checkpoint_task", object{"task_id": "t1", "state": object{"step": 3, "notes": []any{"a", nil, true}}}, nil)
		raw, err := p.try("read_task_checkpoint", object{"task_id": "t1"})
		t.NoError(err)
		var got any
		t.NoError(json.Unmarshal(raw, &got))
		t.Equal(got, any(object{"step": 3.0, "notes": []any{"a", nil, true}}))
	})
}
