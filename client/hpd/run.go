package hpd

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/fault"
)

var errInterrupted = errors.New("the run was interrupted")

// Run is a run as its producer has it.
type Run struct {
	Work wire.WorkInput

	client *Client
	agent  string
	nonce  string

	ctx         context.Context
	cancel      context.CancelFunc
	interrupted flag

	mu      sync.Mutex
	calls   int
	waiting map[string]chan *wire.Event // answers that are waited for
	early   map[string]*wire.Event      // answers that came before their question was asked again
}

// Scope returns the branch on which the run runs.
func (r *Run) Scope() wire.Scope {
	return wire.Scope{Session: r.Work.SessionID, Branch: r.Work.BranchID}
}

func (r *Run) path() string { return agentPath(r.agent, r.Scope()) }

func (r *Run) interrupt() {
	r.interrupted.Store(true)
	r.cancel()
}

// Publish publishes events and returns when those that are stored are durable.
// While the hub is away it waits and retries; nothing is written twice. A
// refusal for a run that is over ends the run's context.
func (r *Run) Publish(ctx context.Context, events ...wire.Payload) error {
	for len(events) > 0 {
		n := min(len(events), wire.MaxPublished)
		if err := r.publish(ctx, events[:n]); err != nil {
			return err
		}
		events = events[n:]
	}
	return nil
}

func (r *Run) publish(ctx context.Context, events []wire.Payload) error {
	list := []byte{'['}
	for i, p := range events {
		if i > 0 {
			list = append(list, ',')
		}
		var err error
		if list, err = (&wire.Event{Payload: p}).Append(list, wire.Branches); err != nil {
			return err
		}
	}
	list = append(list, ']')
	r.mu.Lock()
	r.calls++
	key := r.key(r.calls)
	r.mu.Unlock()
	err := r.client.persist(ctx, func() error {
		return r.client.hub.CallKeyed(ctx, http.MethodPost, r.path()+"/events?runtimeRunId="+r.Work.RuntimeRunID, key, jsontext.Value(list), nil)
	})
	return r.over(err)
}

// over ends a run that the hub no longer has.
func (r *Run) over(err error) error {
	if code := fault.CodeOf(err); code == fault.Conflict || code == fault.NotFound {
		r.cancel()
	}
	if r.interrupted.Load() && err != nil {
		return errInterrupted
	}
	return err
}
