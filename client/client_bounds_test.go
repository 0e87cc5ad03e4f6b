package client_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/parley-hub/parley/client"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
)

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

// Deliveries for which an identity has no room are delivered again when it
// has.
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

// An identity that the hub removed while the client was disconnected ends.
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
