package ag2_test

import (
	"strings"
	"testing"

	"github.com/parley-hub/parley/adapter/branch"
	"github.com/parley-hub/parley/adapter/thread"
	"github.com/parley-hub/parley/adapter/transcript"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/dialect/ag2"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/request"
)

// An envelope that came through another dialect, and is too large for any client,
// is not delivered; the next one is.
func TestOversizedDelivery(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{})
	p, q := r.dial(), r.dial()
	alice, bob := p.register("alice"), q.register("bob")
	ch := p.open("conversation", alice, map[string]*peer{bob: q})
	if _, err := r.hub.Post(t.Context(), &envelope.Envelope{
		Channel: ch, Sender: alice, Type: "app.note", Data: []byte(`{"text":"` + strings.Repeat("x", 1<<20-40) + `"}`),
	}, nil); err != nil {
		t.Fatal(err)
	}
	id := p.say(ch, alice, "short")
	if n := q.notified(); n.Envelope["envelope_id"] != id {
		t.Fatalf("got %v", n)
	}
	if got := r.server.Stats().Oversized; got != 1 {
		t.Errorf("%d oversized deliveries were counted", got)
	}
}

// An envelope that only looks like one of the hub's is not delivered as such.
func TestImpostors(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{})
	p, q := r.dial(), r.dial()
	alice, bob := p.register("alice"), q.register("bob")
	ch := p.open("conversation", alice, map[string]*peer{bob: q})
	for _, eventType := range []string{"ag2.channel.closed", "ag2.channel.opened", "ag2.channel.expired", "ag2.session.closed"} {
		p.post(ch, alice, eventType, object{"reason": "fake"})
	}
	p.post(ch, alice, "ag2.channel.custom", object{})
	if n := q.notified(); n.Envelope["event_type"] != "ag2.channel.custom" {
		t.Fatalf("got %v", n)
	}
	var m object
	q.call("get_channel", object{"channel_id": ch}, &m)
	if m["state"] != "active" {
		t.Errorf("the channel is %v", m["state"])
	}
}

// Trusted clients act for anyone, as with AG2's own hub.
func TestTrustClients(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{hub: hub.Options{TrustClients: true}, config: ag2.Config{TrustClients: true}})
	p, q, eve := r.dial(), r.dial(), r.dial()
	alice, bob := p.register("alice"), q.register("bob")
	ch := p.open("conversation", alice, map[string]*peer{bob: q})
	id := eve.say(ch, alice, "as alice")
	if n := q.notified(); n.Envelope["envelope_id"] != id {
		t.Fatalf("got %v", n)
	}
	eve.call("get_channel", object{"channel_id": ch}, nil)
	eve.call("set_skill", object{"agent_id": bob, "skill_md": "x"}, nil)
	eve.call("checkpoint_task", object{"task_id": "t", "state": object{}}, nil)
	eve.call("unregister", object{"agent_id": alice}, nil)
}

// Deliveries to an identity that is being registered follow the answer to its
// registration.
func TestNoticesFollowTheRegistration(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{wrap: func(h *hub.Hub) ag2.Hub { return &eager{h} }})
	p := r.dial()
	p.send(`{"kind":"request","request_id":"1","op":"register","params":{"passport":{"name":"new"},"resume":{}}}`)
	if got := p.recv(); !strings.HasPrefix(got, `{"kind":"response","request_id":"1","ok":true`) {
		t.Fatalf("first came %s", got)
	}
	for _, want := range []string{"e1", "e2"} {
		if n := p.notified(); n.Envelope["envelope_id"] != want {
			t.Fatalf("got %v, want %s", n, want)
		}
	}
	p.quiet()
}

// eager delivers while an identity is being bound.
type eager struct{ *hub.Hub }

func (e *eager) Bind(agent string, at hub.Endpoint) error {
	if err := e.Hub.Bind(agent, at); err != nil {
		return err
	}
	for _, id := range []string{"e1", "e2"} {
		err := at.Deliver(&hub.Notice{
			Envelope:  &envelope.Envelope{ID: id, Channel: "c", Sender: "s", Type: "app.note", Priority: envelope.Normal},
			Recipient: agent, Shared: &hub.Shared{},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// The checkpoint of a task is available to those who may read the task.
func TestForeignCheckpoint(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{})
	p, q, eve := r.dial(), r.dial(), r.dial()
	alice, bob := p.register("alice"), q.register("bob")
	eve.register("eve")
	ch := p.open("conversation", alice, map[string]*peer{bob: q})
	p.call("observe_task", object{"metadata": object{"task_id": "t1", "owner_id": alice, "channel_id": ch}}, nil)
	p.call("checkpoint_task", object{"task_id": "t1", "state": object{"step": 1}}, nil)
	for _, may := range []*peer{p, q} {
		if raw, err := may.try("read_task_checkpoint", object{"task_id": "t1"}); err != nil || string(raw) != `{"step":1}` {
			t.Errorf("got %s, %v", raw, err)
		}
	}
	if _, err := eve.try("read_task_checkpoint", object{"task_id": "t1"}); err == nil || !strings.HasPrefix(err.Error(), "access_denied: ") {
		t.Errorf("a stranger got %v", err)
	}
	if _, err := eve.try("checkpoint_task", object{"task_id": "t1", "state": object{}}); err == nil || !strings.HasPrefix(err.Error(), "access_denied: ") {
		t.Errorf("a stranger wrote: %v", err)
	}
}

// An identity that was unregistered elsewhere gives no rights.
func TestUnregisteredElsewhere(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{config: ag2.Config{Limits: ag2.Limits{Identities: 1}}})
	p, q := r.dial(), r.dial()
	alice, bob := p.register("alice"), q.register("bob")
	ch := p.open("conversation", alice, map[string]*peer{bob: q})
	q.call("observe_task", object{"metadata": object{"task_id": "t", "owner_id": bob, "spec": object{"title": "look"}}}, nil)
	if err := r.hub.Unregister(t.Context(), bob); err != nil {
		t.Fatal(err)
	}
	p.say(ch, alice, "secret")
	for op, params := range map[string]object{
		"read_wal":      {"channel_id": ch, "since": 0, "until": nil},
		"get_channel":   {"channel_id": ch},
		"close_channel": {"channel_id": ch},
		"get_task":      {"task_id": "t"},
	} {
		if result, err := q.try(op, params); err == nil || !strings.Contains(err.Error(), "access_denied") {
			t.Errorf("%s is answered with %s, %v", op, result, err)
		}
	}
	// And it uses no place on the connection.
	q.register("carol")
}

// A registration that exceeds the connection's limit creates no identity.
func TestIdentityTooMany(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{config: ag2.Config{Limits: ag2.Limits{Identities: 1}}})
	p := r.dial()
	p.register("alice")
	_, err := p.try("register", object{"passport": object{"name": "bob"}, "resume": object{}, "rule": object{}})
	if err == nil || !strings.Contains(err.Error(), "ag2.limits.identities") {
		t.Fatalf("the answer is %v", err)
	}
	if id, ok := r.hub.FindAgent("bob"); ok {
		t.Errorf("bob is registered as %s", id)
	}
}

// AG2's clients do not support live envelopes: none is sent to them, neither live
// ones of a channel nor those of its side log.
func TestLiveEnvelopesAreNotSent(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{})
	p, q := r.dial(), r.dial()
	alice, bob := p.register("alice"), q.register("bob")
	ch := p.open("conversation", alice, map[string]*peer{bob: q})
	for range 3 {
		e := &envelope.Envelope{Channel: ch, Sender: alice, Type: envelope.TypeDelta, Data: []byte(`{"text":"x"}`)}
		if err := r.hub.SendLive(t.Context(), e, nil); err != nil {
			t.Fatal(err)
		}
	}
	asking := hub.Asking{Request: hub.Request{
		Kind: request.Approval, Channel: ch, AskedBy: alice, Title: "May I?", Choices: []request.Choice{{ID: "approve"}},
	}}
	if _, err := r.hub.Ask(t.Context(), asking, nil); err != nil {
		t.Fatal(err)
	}
	id := p.say(ch, alice, "stored")
	if n := q.notified(); n.Envelope["event_type"] != envelope.TypeText || n.Envelope["envelope_id"] != id {
		t.Errorf("bob is sent %v", n)
	}
	q.quiet()
}

// A type that one dialect opens cannot be opened by an AG2 client.
func TestTypesOfOtherDialectsAreNotOpened(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{adapters: []channel.Adapter{branch.New(branch.Options{}), thread.New(thread.Options{}), transcript.New(transcript.Options{})}})
	p, q := r.dial(), r.dial()
	alice, bob := p.register("alice"), q.register("bob")
	for _, kind := range []string{"branch", "thread", "transcript"} {
		_, err := p.try("create_channel", object{"creator_id": alice, "manifest_type": kind, "participants": []string{bob}})
		if err == nil || !strings.Contains(err.Error(), "dialect only") {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
