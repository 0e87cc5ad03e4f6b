package graph

import (
	"cmp"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/envelope"
)

// Script is what is said in a simulation, in YAML or JSON:
//
//	participants: [triage, digger, scribe]  # optional; as in a graph file
//	creator: triage                         # default: the first participant
//	context_vars: {todo: [dig, write]}      # default: none
//	turns:
//	  - speaker: triage         # default: whoever is expected
//	    text: hello             # a plain text
//	  - set: {job: dig}         # a context set on its own, no turn
//	    delete: [draft]
//	  - body: over to you       # a packet whose routing the graph decides
//	  - tool: page_oncall       # a packet of a static handoff by that tool
//	    reason: it is urgent
//	  - handoff: scribe         # a packet with a target (tool, reason optional)
//	  - finish: answered        # a finish packet with that reason
//	  - event: myapp.note       # any other event type
//	    data: {n: 1}
//	  - body: again
//	    repeat: 3               # said three times in a row
//
// body may be given with tool, handoff and finish; set and delete with any
// turn: they travel in the packet, or before a plain text as an envelope of
// their own.
type Script struct {
	Participants Participants   `json:"participants"`
	Creator      string         `json:"creator"`
	ContextVars  jsontext.Value `json:"context_vars"`
	Turns        []Line         `json:"turns"`
}

// Line is one entry of a script's turns.
type Line struct {
	Speaker *string        `json:"speaker"`
	Text    *string        `json:"text"`
	Body    *string        `json:"body"`
	Tool    *string        `json:"tool"`
	Handoff *string        `json:"handoff"`
	Finish  *string        `json:"finish"`
	Reason  string         `json:"reason"`
	Event   string         `json:"event"`
	Data    jsontext.Value `json:"data"`
	Set     jsontext.Value `json:"set"`
	Delete  []string       `json:"delete"`
	Repeat  int            `json:"repeat"`
}

// MaxScriptTurns bounds a script, repeats included.
const MaxScriptTurns = 100_000

// ParseScript reads a script. Unknown keys are refused.
func ParseScript(data []byte) (*Script, error) {
	raw, err := toJSON(data)
	if err != nil {
		return nil, err
	}
	var s Script
	if err := json.Unmarshal(raw, &s, json.RejectUnknownMembers(true)); err != nil {
		return nil, scriptError(err)
	}
	if err := s.Participants.check(); err != nil {
		return nil, err
	}
	total := 0
	for i := range s.Turns {
		if err := s.Turns[i].check(fmt.Sprintf("turns[%d]", i)); err != nil {
			return nil, err
		}
		total += max(s.Turns[i].Repeat, 1)
		if total > MaxScriptTurns {
			return nil, refuse("turns", "more than %d turns", MaxScriptTurns)
		}
	}
	return &s, nil
}

func (l *Line) check(path string) error {
	packet := l.Body != nil || l.Tool != nil || l.Handoff != nil || l.Finish != nil
	said := 0
	for _, is := range []bool{l.Text != nil, packet, l.Event != ""} {
		if is {
			said++
		}
	}
	changes := l.Set != nil || l.Delete != nil
	for _, rule := range []struct {
		broken bool
		why    string
	}{
		{said > 1 || l.Handoff != nil && l.Finish != nil, "says several things; write one of text, event, or a packet with body, tool, handoff or finish"},
		{said == 0 && !changes, "says nothing; write one of text, body, tool, handoff, finish, event, set or delete"},
		{l.Data != nil && l.Event == "", "data belongs to an event"},
		{l.Reason != "" && l.Tool == nil && l.Handoff == nil, "reason belongs to a tool or a handoff; finish is itself the reason"},
		{l.Repeat < 0, "repeat must not be negative"},
		{l.Set != nil && l.Set.Kind() != jsontext.KindBeginObject, "set must be keys and values, not " + kindOf(l.Set)},
		{l.Data != nil && l.Data.Kind() != jsontext.KindBeginObject, "data must be keys and values, not " + kindOf(l.Data)},
	} {
		if rule.broken {
			return refuse(path, "%s", rule.why)
		}
	}
	return nil
}

// envelopes returns what a line posts, in order. ids maps names to agents.
func (l *Line) envelopes(ids func(string) string) []envelope.Envelope {
	context := update{Set: orEmpty(l.Set), Delete: l.Delete}
	if routing := l.routing(ids); routing != nil {
		return []envelope.Envelope{post(envelope.TypePacket, packet{Routing: routing, Updates: context, Body: or(l.Body)})}
	}
	var list []envelope.Envelope
	if l.Set != nil || l.Delete != nil {
		list = append(list, post(envelope.TypeContextSet, context))
	}
	if l.Text != nil {
		list = append(list, post(envelope.TypeText, map[string]string{"text": *l.Text}))
	}
	if l.Event != "" {
		list = append(list, post(l.Event, orEmpty(l.Data)))
	}
	return list
}

// routing returns the routing of this line's packet, or nil if the line is not a packet.
func (l *Line) routing(ids func(string) string) *routing {
	if l.Finish != nil {
		return &routing{Kind: RoutingFinish, Tool: or(l.Tool), Reason: *l.Finish}
	}
	if l.Handoff != nil {
		return &routing{Kind: RoutingHandoff, Tool: or(l.Tool), Reason: l.Reason, Target: ids(*l.Handoff)}
	}
	if l.Tool != nil {
		return &routing{Kind: RoutingHandoff, Tool: *l.Tool, Reason: l.Reason}
	}
	if l.Body != nil {
		return &routing{Kind: RoutingText}
	}
	return nil
}

// packet is the payload of a packet as agents write it.
type packet struct {
	Routing *routing `json:"routing"`
	Updates update   `json:"context_updates"`
	Body    string   `json:"body"`
}

type routing struct {
	Kind   string `json:"kind"`
	Tool   string `json:"tool,omitzero"`
	Reason string `json:"reason,omitzero"`
	Target string `json:"target,omitzero"`
}

type update struct {
	Set    jsontext.Value `json:"set"`
	Delete []string       `json:"delete"`
}

func post(eventType string, data any) envelope.Envelope {
	// Only strings and raw values that were read from JSON go in.
	raw, _ := json.Marshal(data, json.Deterministic(true), jsontext.PreserveRawStrings(true))
	return envelope.Envelope{Type: eventType, Data: raw}
}

func or(s *string) string { return *cmp.Or(s, new(string)) }

func orEmpty(v jsontext.Value) jsontext.Value {
	if v == nil {
		return jsontext.Value("{}")
	}
	return v
}
