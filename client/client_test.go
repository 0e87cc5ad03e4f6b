package client_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

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

// What was not acknowledged comes again after a reconnect; what is being
// worked on does not come twice, and an ack that was lost is told again.
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
	// Acknowledged while there is nobody to tell.
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

// What the hub would do twice is not sent again: the caller is told that the
// outcome is not known.
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

func TestSendWhenAllowed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a, b := r.attach(r.dial(client.Options{}), "alice"), r.attach(r.dial(client.Options{}), "bob")
	ch := r.open("discussion", a, b)
	type sent struct {
		id  string
		err error
	}
	result := make(chan sent, 1)
	go func() {
		id, err := b.SendWhenAllowed(t.Context(), ch, "my turn")
		result <- sent{id, err}
	}()
	select {
	case s := <-result:
		t.Fatalf("sent out of turn: %+v", s)
	case <-time.After(50 * time.Millisecond):
	}
	if _, err := a.Send(t.Context(), ch, "you?"); err != nil {
		t.Fatal(err)
	}
	s := <-result
	if s.err != nil {
		t.Fatal(s.err)
	}
	if d := r.receive(a, envelope.TypeText); d.Envelope.ID != s.id {
		t.Fatalf("alice got %s, want %s", d.Envelope.ID, s.id)
	}
	// It ends with the channel, and with its context.
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, err := b.SendWhenAllowed(ctx, ch, "again"); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("past its time it got %v", err)
	}
	go func() {
		id, err := b.SendWhenAllowed(t.Context(), ch, "never")
		result <- sent{id, err}
	}()
	if _, err := a.CloseChannel(t.Context(), ch, "enough"); err != nil {
		t.Fatal(err)
	}
	if s := <-result; fault.CodeOf(s.err) != fault.Protocol || !strings.Contains(s.err.Error(), "enough") {
		t.Errorf("after the end it got %+v", s)
	}
}

// More deliveries than an identity has room for come again when it has.
func TestOverflow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := r.attach(r.dial(client.Options{}), "alice")
	b := r.attach(r.dial(client.Options{Deliveries: 4}), "bob")
	ch := r.open("conversation", a, b)
	var want []string
	for n := range 20 {
		id, err := a.Send(t.Context(), ch, fmt.Sprint(n))
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, id)
	}
	seen := map[string]bool{}
	for len(seen) < len(want) {
		d := r.receive(b, envelope.TypeText)
		if d == nil {
			return
		}
		seen[d.Envelope.ID] = true
		if err := d.Ack(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range want {
		if !seen[id] {
			t.Errorf("%s never came", id)
		}
	}
}

// A log larger than a frame is read in parts.
func TestLongLog(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a, b := r.attach(r.dial(client.Options{}), "alice"), r.attach(r.dial(client.Options{}), "bob")
	ch := r.open("conversation", a, b)
	text := strings.Repeat("x", 200_000)
	for range 12 {
		if _, err := a.Post(t.Context(), &envelope.Envelope{Channel: ch, Type: "ag2.task.progress", Data: []byte(`{"text":"` + text + `"}`)}); err != nil {
			t.Fatal(err)
		}
	}
	log, err := b.Log(t.Context(), ch)
	if err != nil {
		t.Fatal(err)
	}
	if len(log) != 15 || log[14].Type != "ag2.task.progress" || len(log[14].Data) != len(text)+11 {
		t.Fatalf("read %d envelopes", len(log))
	}
	for n := 1; n < len(log); n++ {
		if log[n-1].ID >= log[n].ID {
			t.Fatalf("envelope %d is out of order", n)
		}
	}
}

// Closing fails what waits, and closing again is harmless.
func TestClose(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.dial(client.Options{})
	a := r.attach(c, "alice")
	result := make(chan error, 1)
	go func() {
		_, err := a.Receive(t.Context())
		result <- err
	}()
	for range 2 {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-result; fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("Receive ended with %v", err)
	}
	if _, err := a.Send(t.Context(), "c", "x"); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("a post got %v", err)
	}
	if _, err := client.Dial(t.Context(), "ws://127.0.0.1:1", client.Options{Log: quiet}); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("dialling nobody got %v", err)
	}
}

// An identity that the hub forgot while the client was away ends.
func TestForgotten(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := r.attach(r.dial(client.Options{}), "alice")
	r.proxy.cut(true)
	if err := r.hub.Unregister(t.Context(), a.ID()); err != nil {
		t.Fatal(err)
	}
	r.proxy.set(func(p *proxy) { p.refuse = false })
	if _, err := a.Receive(t.Context()); fault.CodeOf(err) != fault.NotFound {
		t.Fatalf("Receive ended with %v", err)
	}
}

// TestAHubThatMoved is found again where it is now, over TLS with a certificate
// that only the given HTTP client accepts.
func TestAHubThatMoved(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	secure := func() *httptest.Server {
		s := httptest.NewTLSServer(r.server)
		t.Cleanup(s.Close)
		return s
	}
	first, second := secure(), secure()
	way := newProxy(t, strings.TrimPrefix(first.URL, "https://"))
	t.Cleanup(way.close)
	if _, err := client.Dial(t.Context(), "wss://"+way.address(), client.Options{Log: quiet}); err == nil {
		t.Error("a certificate that nobody knows was accepted")
	}
	c, err := client.Dial(t.Context(), "wss://"+way.address(), client.Options{
		Log: quiet, HTTP: first.Client(), Backoff: time.Millisecond, MaxBackoff: 10 * time.Millisecond,
		Again: func() string { return "wss" + strings.TrimPrefix(second.URL, "https") },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	a, b := r.attach(c, "a"), r.attach(r.dial(client.Options{}), "b")
	way.close()
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	if peer, err := a.Peer(ctx, "b"); err != nil || peer.ID != b.ID() {
		t.Errorf("after the move: %v, %v", peer, err)
	}
	if c.Reconnects() == 0 {
		t.Error("the connection was never lost")
	}
}
