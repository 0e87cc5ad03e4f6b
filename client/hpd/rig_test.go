package hpd_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/adapter/branch"
	"github.com/parley-hub/parley/client/hpd"
	v1 "github.com/parley-hub/parley/client/v1"
	dialect "github.com/parley-hub/parley/dialect/hpd"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/journal/mem"
)

// rig is a hub that can be restarted, at another address each time.
type rig struct {
	t      testing.TB
	store  *mem.Store
	engine *mem.Engine
	hub    *hub.Hub
	server *dialect.Server
	client *hpd.Client

	mu  sync.Mutex
	web *httptest.Server
}

func newRig(t testing.TB) *rig {
	t.Helper()
	r := &rig{t: t, store: mem.NewStore()}
	r.start()
	t.Cleanup(r.stop)
	at, err := v1.New(r.url(), v1.Options{Relocate: func() (string, *http.Client) { return r.url(), nil }})
	if err != nil {
		t.Fatal(err)
	}
	r.client = hpd.New(at)
	return r
}

func (r *rig) url() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.web.URL
}

func (r *rig) start() {
	r.t.Helper()
	log := slog.New(slog.DiscardHandler)
	var err error
	if r.engine, err = mem.Open(mem.Options{Store: r.store}); err != nil {
		r.t.Fatal(err)
	}
	r.hub, err = hub.Open(context.Background(), r.engine, hub.Options{
		Adapters: append(adapter.All(), branch.New(branch.Options{Record: 16 << 10})),
		Auth:     identity.NewAuthRegistry(identity.None{}), Log: log,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	if r.server, err = dialect.New(dialect.Config{Hub: r.hub, Log: log}); err != nil {
		r.t.Fatal(err)
	}
	if err := r.server.Start(context.Background()); err != nil {
		r.t.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.web = httptest.NewServer(r.server)
}

func (r *rig) stop() {
	if err := r.server.Close(); err != nil {
		r.t.Error(err)
	}
	r.web.Close()
	r.hub.Close()
	_ = r.engine.Close()
}

// session makes a session and returns its main branch.
func (r *rig) session() wire.Scope {
	r.t.Helper()
	s, err := r.client.CreateSession(r.t.Context(), wire.CreateSession{})
	if err != nil {
		r.t.Fatal(err)
	}
	return wire.Scope{Session: s.ID, Branch: wire.MainBranch}
}

// produce runs a producer for the time of the test, or until it is stopped,
// and returns when the hub has accepted it.
func (r *rig) produce(p hpd.Producer) (stop func()) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready := make(chan struct{}, 100)
	p.Ready = func() { ready <- struct{}{} }
	p.Log = slog.New(slog.DiscardHandler)
	done := make(chan error, 1)
	go func() { done <- r.client.Produce(ctx, p) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				r.t.Errorf("the producer ended with %v", err)
			}
		})
	}
	r.t.Cleanup(stop)
	select {
	case <-ready:
	case <-time.After(wait):
		r.t.Fatal("the producer was not accepted")
	}
	return stop
}

const wait = 20 * time.Second

// event is what tests read of one.
type event struct {
	Type           string  `json:"type"`
	Text           string  `json:"text"`
	MessageID      string  `json:"messageId"`
	RequestID      string  `json:"requestId"`
	Cancelled      bool    `json:"cancelled"`
	ErrorType      *string `json:"errorType"`
	SequenceNumber int     `json:"sequenceNumber"`
}

// until follows a branch from its start up to an event.
func (r *rig) until(at wire.Scope, last string) []event {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), wait)
	defer cancel()
	var seen []event
	err := r.client.Follow(ctx, at, "", func(_ string, data jsontext.Value) error {
		var e event
		if err := json.Unmarshal(data, &e); err != nil {
			return err
		}
		if seen = append(seen, e); e.Type == last {
			return v1.ErrStop
		}
		return nil
	})
	if err != nil || ctx.Err() != nil {
		r.t.Fatalf("no %s in %v (%v)", last, seen, err)
	}
	return seen
}

// words returns the agent's deltas of a history.
func words(seen []event) (list []string) {
	for _, e := range seen {
		if e.Type == "TEXT_DELTA" && e.MessageID == "m" {
			list = append(list, e.Text)
		}
	}
	return list
}
