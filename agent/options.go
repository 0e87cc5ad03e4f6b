package agent

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/agent/samples"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
)

// Defaults of Options.
const (
	DefaultQueue = 1024
	DefaultSteps = 32
	DefaultCalls = 256
)

// Options configure an agent. The zero value is an agent without tools of its
// own that answers when it is its turn.
type Options struct {
	// System is the model's instructions. They follow the text that says who
	// the agent is.
	System string
	// Tools are the agent's own; the network's tools are added to them.
	Tools []*Tool
	// NoNetworkTools leaves the tools delegate, peers, channels, tasks and
	// context out.
	NoNetworkTools bool
	// RoutingTools gives a model in a workflow channel the tools handoff and
	// finish, and those by whose names the workflow's graph routes.
	RoutingTools bool
	// Confirm is called before a tool that needs confirmation runs; without it
	// such a tool never runs. An error refuses the call, and is shown to the
	// model. ConfirmBy returns one that asks people through the hub.
	Confirm func(ctx context.Context, call *Call) error
	// Handle sees every envelope first; one that it handles goes no further. A
	// request to cancel a task is noted before, as soon as it arrives.
	// An error means that the envelope was not taken: it is nacked.
	Handle func(ctx context.Context, a *Agent, e *envelope.Envelope) (handled bool, err error)
	// Task, if it returns a spec, runs the turn as a task of that spec.
	Task func(t *Turn) *TaskSpec
	// TrackDelegations reports each delegation to the hub as a task, whose id
	// is sent with what is delegated, so that the agent that works for it can
	// spend from the budget of the agent that delegated it.
	TrackDelegations bool
	// Adapters know the channels the agent may meet; nil is all that Parley
	// ships.
	Adapters []channel.Adapter
	// Queue is how many envelopes may wait or be worked on at once, over all
	// channels. When it is full, no more are received, except that up to 1,024
	// more are while a turn that delegates waits for its reply. 0 is DefaultQueue.
	Queue int
	// Steps is how often a model is asked within one round; 0 is DefaultSteps.
	Steps int
	// Calls is how many tools a model may call within one round. A reply that goes
	// past it fails the turn before any of its tools runs. 0 is DefaultCalls.
	Calls int
	// Samples carries measurements of the agent and its tools inside the
	// process; nil is a hub of its own.
	Samples *samples.Hub
	// Log receives failed turns; nil is slog.Default.
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Adapters == nil {
		o.Adapters = adapter.All()
	}
	if o.Queue <= 0 {
		o.Queue = DefaultQueue
	}
	if o.Steps <= 0 {
		o.Steps = DefaultSteps
	}
	if o.Calls <= 0 {
		o.Calls = DefaultCalls
	}
	if o.Samples == nil {
		o.Samples = &samples.Hub{}
	}
	o.Log = cmp.Or(o.Log, slog.Default())
	return o
}
