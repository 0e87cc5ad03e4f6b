package graph

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-hub/parley/envelope"
)

// Trace is the result of a simulation.
type Trace struct {
	Creator  string `json:"-"` // who opened the channel, by id
	Steps    []Step `json:"steps"`
	Turns    int    `json:"turns"`
	Expected string `json:"expected,omitzero"` // who would speak next
	Closed   bool   `json:"closed"`
	Reason   string `json:"reason,omitzero"`
	Context  Vars   `json:"context_vars"`
}

// Step is one envelope of a simulation and what it led to.
type Step struct {
	Line    int    `json:"line"`             // index in the script's turns
	Turn    int    `json:"turn,omitzero"`    // its number among the turns; 0 if it is none
	Speaker string `json:"speaker"`          // by id
	Type    string `json:"type"`             // the event type
	Tool    string `json:"tool,omitzero"`    // that a packet names
	By      By     `json:"by"`               // what decided
	Rule    int    `json:"rule"`             // index in the graph's transitions, or -1
	Why     string `json:"why,omitzero"`     // the deciding rule in words
	Next    string `json:"next,omitzero"`    // who is expected now
	Closed  string `json:"closed,omitzero"`  // why the channel closed here
	Refused string `json:"refused,omitzero"` // why the envelope was not accepted
}

// Simulate plays a script through the routing step that workflow channels use. The
// graph may use the names of the script's participants. Participants are ids in
// speaking order; if there are none, the script's are taken. As on a hub, a line
// that is out of turn, or that comes after the channel has closed, is refused and
// the simulation goes on. The error is one that would stop the channel from opening.
func Simulate(g *Graph, participants []string, s *Script) (*Trace, error) {
	if len(participants) == 0 {
		participants = s.Participants.IDs()
	}
	names := s.Participants.byName()
	g, err := g.WithNames(names)
	if err != nil {
		return nil, err
	}
	return simulate(g, participants, resolver(names), s)
}

// simulate plays a script on a graph of ids; ids maps the script's names.
func simulate(g *Graph, participants []string, ids func(string) string, s *Script) (*Trace, error) {
	for _, f := range Check(g, participants) {
		if f.Severity == SeverityError {
			return nil, refuse(f.Path, "%s", f.Message)
		}
	}
	if len(participants) == 0 {
		return nil, refuse("participants", "a workflow needs at least 2 participants; list them in the graph file or the script")
	}
	creator := participants[0]
	if s.Creator != "" {
		creator = ids(s.Creator)
	}
	if !slices.Contains(participants, creator) {
		return nil, refuse("creator", "'%s' is not in participants: %s", creator, strings.Join(participants, ", "))
	}
	run := simulation{graph: g, ids: ids, trace: &Trace{Creator: creator}}
	var vars Vars
	var err error
	if s.ContextVars != nil {
		if vars, err = ParseVars(s.ContextVars); err != nil {
			return nil, err
		}
	}
	run.facts = g.Start(participants, creator, vars)
	for i := range s.Turns {
		for range max(s.Turns[i].Repeat, 1) {
			run.line(i, &s.Turns[i])
		}
	}
	return run.end(), nil
}

type simulation struct {
	graph *Graph
	ids   func(string) string
	facts Facts
	trace *Trace
}

func (r *simulation) line(i int, l *Line) {
	speaker := r.facts.Expected
	if l.Speaker != nil {
		speaker = r.ids(*l.Speaker)
	}
	for _, e := range l.envelopes(r.ids) {
		e.ID = fmt.Sprintf("%032x", len(r.trace.Steps))
		e.Sender = speaker
		step := r.post(&e)
		step.Line = i
		r.trace.Steps = append(r.trace.Steps, step)
	}
}

func (r *simulation) post(e *envelope.Envelope) Step {
	step := Step{Speaker: e.Sender, Type: e.Type, Rule: NoRule}
	if e.Type == envelope.TypePacket {
		step.Tool = ReadPacket(e.Data).Tool
	}
	if step.Refused = r.refusal(e); step.Refused != "" {
		step.Next = r.facts.Expected
		return step
	}
	var route Route
	r.facts, route = r.graph.Advance(r.facts, e)
	step.By, step.Rule, step.Next = route.By, route.Rule, r.facts.Expected
	switch route.By {
	case ByRule:
		t := r.graph.transitions[route.Rule]
		step.Why = describe(t.When) + " → " + describe(t.Then)
	case ByDefault:
		step.Why = "default → " + describe(r.graph.fallback)
	case ByHandoff:
		step.Why = "handoff → " + route.Decision.Speaker
	case ByFinish:
		step.Why = "finish"
	case ByNothing, ByContext:
		return step
	}
	step.Turn = r.facts.Turns
	if reason, closes := r.graph.Outcome(&r.facts); closes {
		step.Closed = reason
		r.trace.Closed, r.trace.Reason = true, reason
	}
	return step
}

// refusal returns why a hub would not accept the envelope, or "".
func (r *simulation) refusal(e *envelope.Envelope) string {
	if r.trace.Closed {
		return "the channel is closed: " + r.trace.Reason
	}
	if e.Sender == "" {
		return "anyone may speak; name a speaker"
	}
	switch e.Type {
	case envelope.TypeContextSet:
		if !slices.Contains(r.facts.Order, e.Sender) {
			return "workflow only accepts EV_CONTEXT_SET from participants"
		}
	case envelope.TypeText, envelope.TypePacket:
		if !r.facts.MaySpeak(e.Sender) {
			return fmt.Sprintf("workflow expects '%s' to speak", r.facts.Expected)
		}
	}
	return ""
}

func (r *simulation) end() *Trace {
	t := r.trace
	t.Turns, t.Context = r.facts.Turns, r.facts.Vars
	if !t.Closed {
		t.Expected = r.facts.Expected
	}
	return t
}

// Speakers lists who took the turns, in order.
func (t *Trace) Speakers() []string {
	var speakers []string
	for _, step := range t.Steps {
		if step.Turn > 0 {
			speakers = append(speakers, step.Speaker)
		}
	}
	return speakers
}

// String returns the trace for people: one line for each envelope.
func (t *Trace) String() string {
	var out strings.Builder
	for _, s := range t.Steps {
		number := "·"
		if s.Turn > 0 {
			number = strconv.Itoa(s.Turn)
		}
		fmt.Fprintf(&out, "%3s  %s\n", number, s)
	}
	if t.Closed {
		fmt.Fprintf(&out, "closed: %s, after %d turns\n", t.Reason, t.Turns)
	} else {
		fmt.Fprintf(&out, "open after %d turns: %s\n", t.Turns, expectation(t.Expected))
	}
	return out.String()
}

func expectation(speaker string) string {
	if speaker == "" {
		return "anyone may speak"
	}
	return speaker + " is expected"
}

func (s Step) String() string {
	said := s.Speaker + " " + s.Type
	if s.Refused != "" {
		return said + " refused: " + s.Refused
	}
	if s.By == ByContext {
		return said + ": context changed, no turn"
	}
	if s.By == ByNothing {
		return said + ": no turn"
	}
	if s.By == ByRule {
		said += fmt.Sprintf("; transitions[%d]: %s", s.Rule, s.Why)
	} else {
		said += "; " + s.Why
	}
	if s.Closed != "" {
		return said + "; closed: " + s.Closed
	}
	return said + "; " + expectation(s.Next)
}
