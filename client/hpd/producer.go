package hpd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"

	"github.com/go-json-experiment/json"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/fault"
)

// Producer does the runs of one agent in another process than the hub.
type Producer struct {
	// Agent is the name whose runs are done.
	Agent string
	// Do executes one run and ends it by returning: nil completes it, an error
	// fails it. The context ends when the run is interrupted, when the hub no
	// longer has it, or with the producer.
	Do func(ctx context.Context, run *Run) error
	// Repeatable says that Do publishes the same events, in the same calls,
	// each time it is given one run. A run that an earlier producer began is
	// then executed again, and events that were published before are not
	// written twice.
	Repeatable bool
	// AtOnce is how many runs are executed at once; 0: 1,000. More are failed
	// as Busy.
	AtOnce int
	// Ready is called each time the hub has accepted the producer; nil: nothing.
	Ready func()
	Log   *slog.Logger // nil: slog.Default()
}

// producing is a Producer at work.
type producing struct {
	Producer
	client *Client
	nonce  string // of keys; empty where runs are repeatable

	mu    sync.Mutex
	runs  map[string]*Run
	ended [rememberedEnds]string // the last ones whose end the hub has taken
	next  int                    // place in ended
	done  sync.WaitGroup
}

// rememberedEnds is how many ended runs are remembered: the hub may have named one
// as open just before it took the end.
const rememberedEnds = 1024

// Produce does the runs of an agent until ctx ends, also across restarts of
// the hub. It returns an error when the hub refuses the producer.
func (c *Client) Produce(ctx context.Context, p Producer) error {
	p.AtOnce = cmp.Or(p.AtOnce, 1000)
	if p.Ready == nil {
		p.Ready = func() {}
	}
	p.Log = cmp.Or(p.Log, slog.Default())
	w := &producing{Producer: p, client: c, runs: map[string]*Run{}}
	if !p.Repeatable {
		w.nonce = newNonce()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer w.done.Wait()
	defer cancel()
	return c.hub.FollowFrom(ctx, path("agents", p.Agent, "work"), "", p.Ready, func(f v1.Frame) error {
		if err := w.take(ctx, f); err != nil {
			p.Log.Warn("a frame of work was not understood", "frame", f.Name, "error", err)
		}
		return nil
	})
}

// take acts on one frame of work. It never waits: the next may be an
// interruption.
func (w *producing) take(ctx context.Context, f v1.Frame) error {
	switch f.Name {
	case "input":
		var in wire.WorkInput
		if err := json.Unmarshal(f.Data, &in); err != nil {
			return err
		}
		w.begin(ctx, in)
	case "interrupt":
		var in wire.WorkInterrupt
		if err := json.Unmarshal(f.Data, &in); err != nil {
			return err
		}
		if r := w.run(in.RuntimeRunID); r != nil && (in.EventFlowID == nil || *in.EventFlowID == r.Work.MessageTurnID) {
			r.interrupt()
		}
	case "response":
		var in struct {
			RuntimeRunID string `json:"runtimeRunId"`
		}
		if err := json.Unmarshal(f.Data, &in); err != nil {
			return err
		}
		if r := w.run(in.RuntimeRunID); r != nil {
			return r.answered(f.Data)
		}
	}
	return nil
}

func (w *producing) run(id string) *Run {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.runs[id]
}

// begin starts a run, unless it is being done: the hub names the open ones
// again after each break.
func (w *producing) begin(ctx context.Context, in wire.WorkInput) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.runs[in.RuntimeRunID] != nil || slices.Contains(w.ended[:], in.RuntimeRunID) {
		return
	}
	r := &Run{Work: in, client: w.client, agent: w.Agent, nonce: w.nonce, waiting: map[string]chan *wire.Event{}, early: map[string]*wire.Event{}}
	var cancel context.CancelFunc
	r.ctx, cancel = context.WithCancel(ctx)
	r.cancel = cancel
	busy := len(w.runs) >= w.AtOnce
	w.runs[in.RuntimeRunID] = r
	w.done.Go(func() {
		defer func() {
			cancel()
			w.mu.Lock()
			delete(w.runs, in.RuntimeRunID)
			w.mu.Unlock()
		}()
		var err error
		if busy {
			err = &RunError{Type: "Busy", Message: fmt.Sprintf("the producer does %d runs, as many as it may at once", w.AtOnce)}
		} else {
			err = w.Do(r.ctx, r)
		}
		if ctx.Err() != nil {
			return // the producer ends; the run goes to another one, or waits
		}
		if err := r.complete(ctx, err); err != nil {
			if ctx.Err() == nil {
				w.Log.Warn("the end of a run was not taken", "run", in.RuntimeRunID, "error", err)
			}
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.ended[w.next] = in.RuntimeRunID
		w.next = (w.next + 1) % len(w.ended)
	})
}

// complete reports to the hub how a run ended.
func (r *Run) complete(ctx context.Context, failed error) error {
	end := wire.CompleteRun{Status: wire.RunCompleted}
	switch {
	case r.interrupted.Load():
		end.Status = wire.RunCancelled
	case failed != nil:
		end.Status = wire.RunFailed
		end.Error = &wire.CompleteError{Code: "ProducerFailed", Message: failed.Error()}
		if own, ok := errors.AsType[*RunError](failed); ok {
			end.Error.Code = own.Type
		}
	}
	err := r.client.persist(ctx, func() error {
		return r.client.hub.Call(ctx, http.MethodPost, r.path()+"/runs/"+r.Work.RuntimeRunID+"/complete", body(end), nil)
	})
	if code := fault.CodeOf(err); code == fault.Conflict || code == fault.NotFound {
		return nil // the hub has ended it otherwise, or the branch is gone
	}
	return err
}

// RunError is a producer's reason for failing a run.
type RunError struct {
	Type    string
	Message string
}

func (e *RunError) Error() string { return e.Message }
