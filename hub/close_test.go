package hub_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/parley-hub/parley/adapter/conversation"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/journal/mem"
)

// stuckAdapter does not return from a fold until it is released.
type stuckAdapter struct {
	conversation.Adapter
	begun, release chan struct{}
	once           *sync.Once
}

func (a stuckAdapter) Fold(s channel.State, e *envelope.Envelope) channel.State {
	if e.Type == "stuck" {
		a.once.Do(func() { close(a.begun) })
		<-a.release
	}
	return a.Adapter.Fold(s, e)
}

// Close returns although an adapter does not return, and so does a second Close.
func TestCloseUnderAStuckAdapter(t *testing.T) {
	t.Parallel()
	engine, err := mem.Open(mem.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a := stuckAdapter{begun: make(chan struct{}), release: make(chan struct{}), once: &sync.Once{}}
	const within = 50 * time.Millisecond
	h, err := hub.Open(t.Context(), engine, hub.Options{Adapters: []channel.Adapter{a}, CloseWithin: within, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	alice, err := h.Register(t.Context(), hub.Registration{Passport: passport("alice")})
	if err != nil {
		t.Fatal(err)
	}
	bob, err := h.Register(t.Context(), hub.Registration{Passport: passport("bob")})
	if err != nil {
		t.Fatal(err)
	}
	m, err := h.Open(t.Context(), hub.Opening{Creator: alice.ID(), Type: "conversation", Participants: []string{bob.ID()}, RequiredAcks: new(0)})
	if err != nil {
		t.Fatal(err)
	}
	posted := make(chan error, 1)
	go func() {
		_, err := h.Post(context.Background(), &envelope.Envelope{Channel: m.ID, Sender: alice.ID(), Type: "stuck", Data: []byte(`{}`)}, nil)
		posted <- err
	}()
	<-a.begun
	began := time.Now()
	h.Close()
	if took := time.Since(began); took < within {
		t.Errorf("Close gave up after %v, before its time", took)
	}
	h.Close()
	select {
	case err := <-posted:
		t.Errorf("the post ended under a stuck adapter: %v", err)
	default:
	}
	close(a.release)
	<-posted // whatever its result, it ends once the adapter returns
	_ = engine.Close()
}
