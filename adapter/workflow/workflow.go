// Package workflow governs channels in which a transition graph decides who speaks
// next and when the channel closes. The graph itself, and the step that every turn
// takes through it, are in package graph; this package adds the rules of a channel:
// what to refuse, which state to keep, when to close. It is pure.
package workflow

import (
	"slices"

	"github.com/parley-hub/parley/adapter/internal/ag2"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/graph"
)

// Type is the name under which the adapter is registered.
const Type = "workflow"

// DefaultMaxContext is how many bytes of context variables a channel may hold.
const DefaultMaxContext = 1 << 20

// Adapter is safe for concurrent use; create one with New.
type Adapter struct {
	ag2.Common
	graphs     *graph.Cache
	maxContext int
	bounds     graph.Bounds
}

// Options configure an adapter. The zero value behaves as AG2 does.
type Options struct {
	// Registry loads graphs; nil is the default one. Nodes of an application must
	// be registered there before any channel that uses them is loaded.
	Registry *graph.Registry
	// Graphs is how many graphs are kept for sharing between channels; 0 is
	// graph.DefaultCacheLimit.
	Graphs int
	// MaxContext bounds a channel's context variables, in bytes; 0 is
	// DefaultMaxContext.
	MaxContext int
	// Bounds limit a new graph and its context variables. Folds do not depend on
	// them.
	Bounds graph.Bounds
}

// New returns an adapter.
func New(o Options) Adapter {
	if o.MaxContext <= 0 {
		o.MaxContext = DefaultMaxContext
	}
	return Adapter{graphs: graph.NewCache(o.Registry, o.Graphs), maxContext: o.MaxContext, bounds: o.Bounds.WithDefaults()}
}

var manifest = channel.Manifest{
	Type:         Type,
	Version:      1,
	Participants: channel.Bounds{Min: 2},
	KnobsSchema:  []byte(`{"graph":"TransitionGraph"}`),
	DefaultView:  "named_windowed_summary",
	Expectations: []channel.Expectation{
		ag2.Expectation("turn_within", "warn", `{"seconds":120}`),
		ag2.Expectation("turn_within", "auto_close", `{"seconds":600}`),
	},
}

// Manifest returns a constant.
func (Adapter) Manifest() channel.Manifest { return manifest }

// ValidateCreate requires at least two participants, and a graph that loads,
// is within its bounds and begins with one of the participants. The other
// agents that the graph names are not checked. Initial does not check the
// bounds again: a channel that is older than they are still loads.
func (a Adapter) ValidateCreate(m *channel.Metadata) error {
	if err := ag2.SeveralParties(m); err != nil {
		return err
	}
	s, err := a.begin(m)
	if err != nil {
		return err
	}
	if err := s.Graph.CheckBounds(a.bounds); err != nil {
		return ag2.Refuse("invalid workflow graph: %v", err)
	}
	if err := s.Facts.Vars.CheckBounds(a.bounds); err != nil {
		return ag2.Refuse("workflow refuses the knob context_vars: %v", err)
	}
	return nil
}

// Initial expects the graph's first speaker.
func (a Adapter) Initial(m *channel.Metadata) (channel.State, error) {
	s, err := a.begin(m)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// ValidateSend lets only the expected speaker take a turn, supervisors speak at any
// time, and every participant write context.
func (a Adapter) ValidateSend(m *channel.Metadata, s channel.State, e *envelope.Envelope) error {
	state, ok := s.(*State)
	if !ok {
		return nil
	}
	switch e.Type {
	case envelope.TypeContextSet:
		if !m.Has(e.Sender) {
			return ag2.Refuse("workflow only accepts EV_CONTEXT_SET from participants; '%s' is none", e.Sender)
		}
		update, err := graph.ReadUpdate(e.Data)
		if err != nil {
			return ag2.Refuse("workflow refuses this EV_CONTEXT_SET: %v", err)
		}
		return a.roomFor(state, e, update)
	case envelope.TypeText, envelope.TypePacket:
		return a.mayTakeTurn(state, e)
	}
	return nil
}

func (a Adapter) mayTakeTurn(state *State, e *envelope.Envelope) error {
	facts := &state.Facts
	switch {
	case facts.Ended:
		return ag2.RefuseTurn("workflow has come to its end and expects nobody to speak; '%s' is refused", e.Sender)
	case !facts.MaySpeak(e.Sender) && !state.supervises(e.Sender):
		return ag2.RefuseTurn("workflow expects '%s' to speak, not '%s'", facts.Expected, e.Sender)
	case e.Type == envelope.TypePacket:
		packet, err := graph.ParsePacket(e.Data)
		if err != nil {
			return ag2.Refuse("workflow refuses this EV_PACKET: %v", err)
		}
		return a.roomFor(state, e, packet.Updates)
	}
	return nil
}

// roomFor bounds context variables. Variables that do not grow are accepted, so
// that a full channel can still be cleared.
func (a Adapter) roomFor(state *State, e *envelope.Envelope, update graph.Update) error {
	if err := update.CheckBounds(); err != nil {
		return ag2.Refuse("workflow refuses this update: %v", err)
	}
	before := &state.Facts.Vars
	if before.Size()+len(e.Data) <= a.limit() && before.Len()+len(update.Set) <= a.bounds.Vars {
		return nil
	}
	after := before.With(update)
	if n := after.Size(); n > a.limit() && n > before.Size() {
		return ag2.Refuse("workflow keeps at most %d bytes of context variables; this would make it %d", a.limit(), n)
	}
	if n := after.Len(); n > a.bounds.Vars && n > before.Len() {
		return ag2.Refuse("workflow keeps at most %d context variables (limits.context_vars); this would make it %d", a.bounds.Vars, n)
	}
	return nil
}

// Fold takes a turn through the graph, or writes context variables. A supervisor's
// text out of turn changes nothing.
func (a Adapter) Fold(s channel.State, e *envelope.Envelope) channel.State {
	state, ok := s.(*State)
	if !ok || state.injected(e) {
		return s
	}
	facts, route := state.Graph.Advance(state.Facts, e)
	if route.By == graph.ByNothing {
		return s
	}
	return &State{Graph: state.Graph, Facts: facts, Supervisors: state.Supervisors}
}

// OnAccepted closes the channel if the turn ended it or was the last.
func (Adapter) OnAccepted(_ *channel.Metadata, s channel.State, e *envelope.Envelope) channel.Effects {
	state, ok := s.(*State)
	// A supervisor's text is logged, but it is not the last turn.
	if !ok || !substantive(e) || state.Facts.LastEnvelope != e.ID {
		return channel.Effects{}
	}
	if reason, closes := state.Graph.Outcome(&state.Facts); closes {
		return channel.Effects{Next: channel.Closed, Reason: reason}
	}
	return channel.Effects{}
}

// Expected returns the speaker that the graph chose.
func (Adapter) Expected(_ *channel.Metadata, s channel.State) (channel.Turn, bool) {
	state, ok := s.(*State)
	if !ok || state.Facts.Ended || state.Facts.Expected == "" {
		return channel.Turn{}, false
	}
	return channel.Turn{Agent: state.Facts.Expected, Trigger: state.Facts.LastEnvelope}, true
}

// TurnCount returns how many turns were taken, and how many there may be.
func (Adapter) TurnCount(_ *channel.Metadata, s channel.State) (taken, most int, ok bool) {
	state, ok := s.(*State)
	if !ok {
		return 0, 0, false
	}
	most, _ = state.Graph.MaxTurns()
	return state.Facts.Turns, most, true
}

// Supervisor reports whether an agent may speak out of turn.
func (Adapter) Supervisor(_ *channel.Metadata, s channel.State, agent string) bool {
	state, ok := s.(*State)
	return ok && state.supervises(agent)
}

func substantive(e *envelope.Envelope) bool {
	return e.Type == envelope.TypeText || e.Type == envelope.TypePacket
}

func (s *State) supervises(agent string) bool { return slices.Contains(s.Supervisors, agent) }

// injected reports whether an envelope is a supervisor's text and not its own turn.
func (s *State) injected(e *envelope.Envelope) bool {
	return substantive(e) && s.supervises(e.Sender) && !s.Facts.MaySpeak(e.Sender)
}
