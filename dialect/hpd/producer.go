package hpd

import (
	"context"
	"errors"
	"time"

	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/loop"
	"github.com/parley-hub/parley/view/branch"
)

// Producer is an agent runtime in this process.
type Producer interface {
	// OnInput executes one run and ends it by returning: nil completes it, an
	// error fails it. The context ends when the run is interrupted or the
	// server closes; the run is then cancelled, whatever OnInput returns.
	OnInput(ctx context.Context, run *Run, work Work) error
}

// ProducerFunc is a function that implements Producer.
type ProducerFunc func(ctx context.Context, run *Run, work Work) error

// OnInput calls the function.
func (f ProducerFunc) OnInput(ctx context.Context, run *Run, work Work) error {
	return f(ctx, run, work)
}

// Work is the input of a run.
type Work struct {
	Messages  []wire.ChatMessage
	RunConfig wire.Raw // as the client sent it; it may hold secrets
}

// RunError is a producer's reason for failing a run.
type RunError struct {
	Type    string
	Message string
}

func (e *RunError) Error() string { return e.Message }

// failure returns the type and the text of a producer's error.
func failure(err error) (kind, message string) {
	if own, ok := errors.AsType[*RunError](err); ok {
		return own.Type, own.Message
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "Timeout", err.Error()
	}
	if code := fault.CodeOf(err); code != fault.Internal {
		return string(code), err.Error()
	}
	return "ProducerFailed", err.Error()
}

// Run is the producer's handle to a run.
type Run struct {
	server *Server
	run    *run
}

// ID returns the run's id.
func (r *Run) ID() string { return r.run.id }

// Scope returns the branch of the run.
func (r *Run) Scope() wire.Scope { return r.run.scope.wire() }

// Turn returns the id of the run's message turn, which the server has begun.
func (r *Run) Turn() string { return r.run.turn }

// Publish stores the durable ones of some events and shows all of them, in order.
// It returns when they are durable, and never waits for a reader.
func (r *Run) Publish(ctx context.Context, events ...wire.Payload) error {
	if len(events) == 1 {
		return r.server.publishOne(ctx, r.run, &wire.Event{Payload: events[0]})
	}
	list := make([]*wire.Event, len(events))
	for i, p := range events {
		list[i] = &wire.Event{Payload: p}
	}
	return r.server.publish(ctx, r.run, list)
}

// PublishEvents does the same as Publish for events with base fields of their own,
// such as a child agent's metadata.
func (r *Run) PublishEvents(ctx context.Context, events ...*wire.Event) error {
	return r.server.publish(ctx, r.run, events)
}

// History returns the messages of the branch so far, the input last; of a long
// branch only the last ones.
func (r *Run) History(ctx context.Context, last int) ([]branch.ChatMessage, error) {
	var all branch.History
	for e, err := range r.server.hub.Log(ctx, r.run.scope.channel, 1, 0) {
		if err != nil {
			return nil, err
		}
		if event, ok := branch.FromEnvelope(e); ok {
			all.Apply(event)
		}
	}
	said := all.Messages()
	return said[max(0, len(said)-last):], nil
}

// Echo is a producer that repeats its input, a word at a time.
type Echo struct {
	Pause time.Duration // between the words
}

// OnInput streams the input's text back.
func (p Echo) OnInput(ctx context.Context, run *Run, work Work) error {
	id := "m-" + run.ID()
	if err := run.Publish(ctx, wire.TextMessageStart{MessageID: id, Role: "assistant"}); err != nil {
		return err
	}
	for _, word := range wire.Words(work.Messages) {
		if err := loop.Pause(ctx, p.Pause); err != nil {
			return err
		}
		if err := run.Publish(ctx, wire.TextDelta{MessageID: id, Text: word}); err != nil {
			return err
		}
	}
	return run.Publish(ctx, wire.TextMessageEnd{MessageID: id})
}
