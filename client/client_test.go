package client_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/client"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/identity"
)

func TestConversation(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a, b := r.attach(r.dial(client.Options{}), "alice"), r.attach(r.dial(client.Options{}), "bob")
	ch := r.open("conversation", a, b)
	id, err := a.Send(t.Context(), ch, "héllo")
	if err != nil {
		t.Fatal(err)
	}
	d := r.receive(b, envelope.TypeText)
	got := []string{d.Envelope.ID, d.Envelope.Sender, string(d.Envelope.Data)}
	if diff := cmp.Diff([]string{id, a.ID(), `{"text":"héllo"}`}, got); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	if err := d.Ack(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, "the ack arrives", func() bool {
		cursor, err := r.hub.Cursor(t.Context(), b.ID(), ch)
		return err == nil && cursor == id
	})
	reply, err := b.Post(t.Context(), &envelope.Envelope{Channel: ch, Type: envelope.TypeText, Causation: id, Data: []byte(`{"text":"re"}`)})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := b.Answer(t.Context(), ch, id)
	if err != nil || answer == nil || answer.ID != reply {
		t.Fatalf("the answer is %v, %v; want %s", answer, err, reply)
	}
	if none, err := a.Answer(t.Context(), ch, id); err != nil || none != nil {
		t.Fatalf("alice's answer is %v, %v", none, err)
	}
	log, err := a.Log(t.Context(), ch)
	if err != nil {
		t.Fatal(err)
	}
	var types []string
	for _, e := range log {
		types = append(types, e.Type)
	}
	if diff := cmp.Diff([]string{envelope.TypeInvite, envelope.TypeInviteAck, envelope.TypeOpened, envelope.TypeText, envelope.TypeText}, types); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	m, err := a.CloseChannel(t.Context(), ch, "done")
	if err != nil || m.State != channel.Closed || m.CloseReason != "done" {
		t.Fatalf("closed %+v, %v", m, err)
	}
	if _, err := a.Send(t.Context(), ch, "late"); fault.CodeOf(err) != fault.Protocol || !strings.Contains(err.Error(), "closed") {
		t.Fatalf("a late post got %v", err)
	}
	list, err := b.ListChannels(t.Context(), 10)
	if err != nil || len(list) != 1 || list[0].ID != ch {
		t.Fatalf("listed %v, %v", list, err)
	}
}

func TestDirectory(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.dial(client.Options{})
	provider := "p"
	a, err := c.Register(t.Context(), client.Registration{
		Passport: identity.Passport{Name: "alice", Owner: "o", Provider: &provider, Cost: &identity.Cost{InputPerMTok: "0.10"}},
		Resume:   &identity.Resume{ClaimedCapabilities: []string{"ocr"}, Domains: []string{"d"}, Summary: "Reads scans."},
	})
	if err != nil {
		t.Fatal(err)
	}
	b := r.attach(c, "bob")
	want := &agent.Peer{
		ID: a.ID(), Name: "alice", Owner: "o", Provider: "p", Cost: &agent.Cost{InputPerMTok: "0.10"},
		Summary: "Reads scans.", Capabilities: []string{"ocr"}, Domains: []string{"d"},
	}
	got, err := b.Peer(t.Context(), "alice")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	peers, err := b.Peers(t.Context(), agent.PeerQuery{Capability: "ocr"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]*agent.Peer{want}, peers); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	names, err := b.Names(t.Context(), []string{a.ID(), "nobody"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{a.ID(): "alice", "nobody": "nobody"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	made := "---\nname: alice\ndescription: Reads scans.\n---\n\n## Capabilities\n- ocr\n\n## Domains\n- d\n"
	if skill, err := b.Skill(t.Context(), a.ID()); err != nil || skill != made {
		t.Errorf("the fallback skill is %q, %v", skill, err)
	}
	text := "# Alice"
	if err := a.SetSkill(t.Context(), &text); err != nil {
		t.Fatal(err)
	}
	if skill, err := b.Skill(t.Context(), a.ID()); err != nil || skill != text {
		t.Errorf("the skill is %q, %v", skill, err)
	}
	rule := identity.DefaultRule()
	rule.Limits.DelegationDepth = 2
	if err := a.SetRule(t.Context(), &rule); err != nil {
		t.Fatal(err)
	}
	stored, err := c.Rule(t.Context(), a.ID())
	rule.Version = 2
	if diff := cmp.Diff(&rule, stored, cmp.AllowUnexported(identity.TTL{})); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if err := a.SetResume(t.Context(), &identity.Resume{Summary: "New."}); err != nil {
		t.Fatal(err)
	}
	if resume, err := c.Resume(t.Context(), a.ID()); err != nil || resume.Summary != "New." || resume.Version != 2 {
		t.Errorf("the resume is %+v, %v", resume, err)
	}
	if _, err := b.Peer(t.Context(), "nobody"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("nobody is %v", err)
	}
	if err := a.Unregister(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Receive(t.Context()); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("an unregistered identity receives %v", err)
	}
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.dial(client.Options{})
	with := func(token string) client.Registration {
		return client.Registration{Passport: identity.Passport{Name: "keyed", Auth: identity.Auth{Scheme: "api_key", Claim: []byte(`{"token":"` + token + `"}`)}}}
	}
	if _, err := c.Attach(t.Context(), with("wrong")); fault.CodeOf(err) != fault.AuthFailed {
		t.Fatalf("a wrong token got %v", err)
	}
	first, err := c.Attach(t.Context(), with("tok-8"))
	if err != nil {
		t.Fatal(err)
	}
	other := r.dial(client.Options{})
	if _, err := other.Attach(t.Context(), with("wrong")); fault.CodeOf(err) != fault.AuthFailed {
		t.Fatalf("a wrong token got %v", err)
	}
	second, err := other.Attach(t.Context(), with("tok-8"))
	if err != nil || second.ID() != first.ID() {
		t.Fatalf("attached to %v, %v; want %s", second, err, first.ID())
	}
}

// After a reconnect, what was not acknowledged is delivered again; what is
// being handled is not delivered twice, and a lost ack is sent again.
func TestReconnect(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ca, cb := r.dial(client.Options{}), r.dial(client.Options{})
	a, b := r.attach(ca, "alice"), r.attach(cb, "bob")
	ch := r.open("conversation", a, b)
	first, err := a.Send(t.Context(), ch, "one")
	if err != nil {
		t.Fatal(err)
	}
	working := r.receive(b, envelope.TypeText)
	r.proxy.cut(true)
	// Acknowledged while there is no connection.
	if err := working.Ack(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.proxy.set(func(p *proxy) { p.refuse = false })
	second, err := a.Send(t.Context(), ch, "two")
	if err != nil {
		t.Fatal(err)
	}
	d := r.receive(b, envelope.TypeText)
	if d.Envelope.ID != second {
		t.Fatalf("got %s, want %s and not %s again", d.Envelope.ID, second, first)
	}
	until(t, "the lost ack is told", func() bool {
		cursor, err := r.hub.Cursor(t.Context(), b.ID(), ch)
		return err == nil && cursor >= first
	})
	// Not acknowledged: a cut, and it is not delivered twice to the same
	// program, which still works on it.
	r.proxy.cut(false)
	third, err := a.Send(t.Context(), ch, "three")
	if err != nil {
		t.Fatal(err)
	}
	if next := r.receive(b, envelope.TypeText); next.Envelope.ID != third {
		t.Fatalf("got %s, want %s", next.Envelope.ID, third)
	}
	if ca.Reconnects() < 2 || cb.Reconnects() < 2 {
		t.Errorf("reconnected %d and %d times", ca.Reconnects(), cb.Reconnects())
	}
	// Another program that attaches gets what was never acknowledged.
	again := r.attach(r.dial(client.Options{}), "bob")
	if got := r.receive(again, envelope.TypeText); got.Envelope.ID != second {
		t.Fatalf("a new program got %s, want %s", got.Envelope.ID, second)
	}
}

// A post whose answer was lost is sent again, and stored once.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a, b := r.attach(r.dial(client.Options{}), "alice"), r.attach(r.dial(client.Options{}), "bob")
	ch := r.open("conversation", a, b)
	for n := range 5 {
		armed := true
		r.proxy.set(func(p *proxy) {
			// The answer to the post is swallowed, and the connection with it.
			p.swallow = func(data []byte) bool {
				hit := armed && bytes.Contains(data, []byte(`"kind":"response"`))
				armed = armed && !hit
				return hit
			}
		})
		if _, err := a.Send(t.Context(), ch, fmt.Sprint("text ", n)); err != nil {
			t.Fatal(err)
		}
		r.proxy.set(func(p *proxy) { p.swallow = nil })
	}
	log, err := b.Log(t.Context(), ch)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, e := range log {
		if e.Type == envelope.TypeText {
			texts = append(texts, string(e.Data))
		}
	}
	want := []string{`{"text":"text 0"}`, `{"text":"text 1"}`, `{"text":"text 2"}`, `{"text":"text 3"}`, `{"text":"text 4"}`}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
}

// A request that the hub would execute twice is not sent again: the caller's
// error says that its outcome is unknown.
func TestLostAnswerOfWhatCannotBeRepeated(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.dial(client.Options{})
	a := r.attach(c, "alice")
	r.proxy.set(func(p *proxy) {
		p.swallow = func(data []byte) bool { return bytes.Contains(data, []byte(`"kind":"response"`)) }
	})
	err := a.FireTaskEvent(t.Context(), "t", "note", nil)
	r.proxy.set(func(p *proxy) { p.swallow = nil })
	if fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "not known") {
		t.Fatalf("got %v", err)
	}
}
