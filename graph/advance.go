package graph

import (
	"cmp"
	"fmt"

	"github.com/parley-hub/parley/envelope"
)

// Close reasons that the routing step gives.
const (
	ReasonFinished   = "finished"
	ReasonMaxTurns   = "max_turns"
	ReasonTerminated = "workflow_terminated"
)

// By says what decided the route after an envelope.
type By int

const (
	ByNothing By = iota // not an event of the workflow: nothing changed
	ByContext           // context variables changed; no turn
	ByFinish            // a finish packet
	ByHandoff           // a handoff packet with a target
	ByRule              // a transition
	ByDefault           // the default target
)

var byNames = [...]string{"nothing", "context", "finish", "handoff", "rule", "default"}

func (b By) String() string {
	if b < 0 || int(b) >= len(byNames) {
		return fmt.Sprintf("by(%d)", int(b))
	}
	return byNames[b]
}

// MarshalText writes the name.
func (b By) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// Route says what an envelope led to.
type Route struct {
	By       By
	Rule     int // the transition's index in the list for ByRule, else NoRule
	Decision Decision
}

// Advance is the workflow's routing step. A context set changes variables and
// nothing else. A text or packet is a turn: first the packet's context updates
// and the bookkeeping are applied, and then, on the resulting facts, a finish
// packet, a handoff with a target, the transitions and the default target
// decide, in this order. Any other envelope leaves the facts as they are.
// Advance is pure and total.
func (g *Graph) Advance(f Facts, e *envelope.Envelope) (Facts, Route) {
	switch e.Type {
	case envelope.TypeContextSet:
		update, _ := ReadUpdate(e.Data)
		f.Vars = f.Vars.With(update)
		return f, Route{By: ByContext, Rule: NoRule}
	case envelope.TypeText, envelope.TypePacket:
	default:
		return f, Route{Rule: NoRule}
	}
	turn := NewTurn(e)
	f.Vars = f.Vars.With(turn.Packet.Updates)
	f.LastSpeaker = f.intern(e.Sender)
	f.LastEnvelope = e.ID
	f.Turns++
	f.Closing = ""
	route := g.decide(&f, turn)
	f.Expected, f.Ended, f.Closing = "", route.Decision.End, route.Decision.Reason
	if !f.Ended {
		f.Expected = f.intern(route.Decision.Speaker)
	}
	return f, route
}

func (g *Graph) decide(f *Facts, t *Turn) Route {
	p := &t.Packet
	if p.Kind == RoutingFinish {
		return Route{By: ByFinish, Rule: NoRule, Decision: Decision{End: true, Reason: cmp.Or(p.Reason, ReasonFinished)}}
	}
	if p.Kind == RoutingHandoff && p.Target != "" {
		return Route{By: ByHandoff, Rule: NoRule, Decision: Decision{Speaker: p.Target}}
	}
	d, rule := g.Evaluate(f, t)
	if rule == NoRule {
		return Route{By: ByDefault, Rule: NoRule, Decision: d}
	}
	return Route{By: ByRule, Rule: rule, Decision: d}
}

// Outcome reports whether a channel with these facts, just advanced by a turn,
// must close, and why. The graph's own end takes precedence over the cap on
// turns, and the cap never consults the default target.
func (g *Graph) Outcome(f *Facts) (reason string, closes bool) {
	if f.Ended {
		return cmp.Or(f.Closing, ReasonTerminated), true
	}
	if g.capped && f.Turns >= g.maxTurns {
		return ReasonMaxTurns, true
	}
	return "", false
}
