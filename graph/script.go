package graph

import (
	"fmt"
	"slices"

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
// body may stand beside tool, handoff and finish; set and delete beside any
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
	switch {
	case said > 1 || l.Handoff != nil && l.Finish != nil:
		return refuse(path, "says several things; write one of text, event, or a packet with body, tool, handoff or finish")
	case said == 0 && !changes:
		return refuse(path, "says nothing; write one of text, body, tool, handoff, finish, event, set or delete")
	case l.Data != nil && l.Event == "":
		return refuse(path, "data belongs to an event")
	case l.Reason != "" && l.Tool == nil && l.Handoff == nil:
		return refuse(path, "reason belongs to a tool or a handoff; finish is itself the reason")
	case l.Repeat < 0:
		return refuse(path, "repeat must not be negative")
	case l.Set != nil && l.Set.Kind() != jsontext.KindBeginObject:
		return refuse(path, "set must be keys and values, not %s", kindOf(l.Set))
	case l.Data != nil && l.Data.Kind() != jsontext.KindBeginObject:
		return refuse(path, "data must be keys and values, not %s", kindOf(l.Data))
	}
	return nil
}

// envelopes are what a line posts, in order. ids maps names to agents.
func (l *Line) envelopes(ids func(string) string) []envelope.Envelope {
	context := update{Set: l.Set, Delete: l.Delete}
	if context.Set == nil {
		context.Set = jsontext.Value("{}")
	}
	var list []envelope.Envelope
	post := func(eventType string, data any) {
		list = append(list, envelope.Envelope{Type: eventType, Data: encode(data)})
	}
	routing := l.routing(ids)
	if (l.Set != nil || l.Delete != nil) && routing == nil {
		post(envelope.TypeContextSet, context)
	}
	switch {
	case l.Text != nil:
		post(envelope.TypeText, map[string]string{"text": *l.Text})
	case l.Event != "":
		data := l.Data
		if data == nil {
			data = jsontext.Value("{}")
		}
		post(l.Event, data)
	case routing != nil:
		post(envelope.TypePacket, packet{Routing: routing, Updates: context, Body: or(l.Body, "")})
	}
	return list
}

// routing is what a packet of this line would carry, or nil if it is none.
func (l *Line) routing(ids func(string) string) *routing {
	switch {
	case l.Finish != nil:
		return &routing{Kind: RoutingFinish, Tool: or(l.Tool, ""), Reason: *l.Finish}
	case l.Handoff != nil:
		return &routing{Kind: RoutingHandoff, Tool: or(l.Tool, ""), Reason: l.Reason, Target: ids(*l.Handoff)}
	case l.Tool != nil:
		return &routing{Kind: RoutingHandoff, Tool: *l.Tool, Reason: l.Reason}
	case l.Body != nil:
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

func encode(data any) []byte {
	// Only strings and raw values that were read from JSON go in.
	raw, err := json.Marshal(data, json.Deterministic(true), jsontext.PreserveRawStrings(true))
	if err != nil {
		return []byte("{}")
	}
	return raw
}

func or(s *string, fallback string) string {
	if s == nil {
		return fallback
	}
	return *s
}

// names resolves a participant's name to its id.
func (s *Script) names() func(string) string {
	return func(name string) string {
		if i := slices.IndexFunc(s.Participants, func(p Participant) bool { return p.Name == name }); i >= 0 {
			return s.Participants[i].ID
		}
		return name
	}
}
