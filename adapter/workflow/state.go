package workflow

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/adapter/internal/ag2"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/graph"
	"github.com/parley-hub/parley/internal/jsonbuf"
)

// State is the position of the channel in its graph. It is immutable; successors
// share the graph, the order and the variables.
type State struct {
	Graph       *graph.Graph
	Facts       graph.Facts
	Supervisors []string
}

// begin reads the knobs, in the documented order of errors.
func (a Adapter) begin(m *channel.Metadata) (*State, error) {
	raw, err := ag2.Knob(m, "graph")
	if err != nil {
		return nil, err
	}
	if raw.Kind() != '{' {
		return nil, ag2.Refuse("workflow needs the knob graph: a transition graph as a JSON object, not as text or anything else")
	}
	g, err := a.load(raw)
	if err != nil {
		return nil, ag2.Refuse("invalid workflow graph: %v", err)
	}
	if !m.Has(g.InitialSpeaker()) {
		return nil, ag2.Refuse("workflow's initial_speaker '%s' is not in participants", g.InitialSpeaker())
	}
	vars, err := a.initialVars(m)
	if err != nil {
		return nil, err
	}
	supervisors, err := readSupervisors(m)
	if err != nil {
		return nil, err
	}
	return &State{Graph: g, Facts: g.Start(m.IDs(), m.Creator, vars), Supervisors: supervisors}, nil
}

func (a Adapter) load(raw []byte) (*graph.Graph, error) {
	if a.graphs == nil {
		return graph.Load(raw)
	}
	return a.graphs.Load(raw)
}

func (a Adapter) initialVars(m *channel.Metadata) (graph.Vars, error) {
	raw, err := ag2.Knob(m, "context_vars")
	if err != nil || raw == nil {
		return graph.Vars{}, err
	}
	vars, err := graph.ParseVars(raw)
	if err != nil {
		return graph.Vars{}, ag2.Refuse("workflow's knob context_vars is an object of keys and values: %v", err)
	}
	if vars.Size() > a.limit() {
		return graph.Vars{}, ag2.Refuse("workflow keeps at most %d bytes of context_vars, not %d", a.limit(), vars.Size())
	}
	return vars, nil
}

func (a Adapter) limit() int {
	if a.maxContext <= 0 {
		return DefaultMaxContext
	}
	return a.maxContext
}

func readSupervisors(m *channel.Metadata) ([]string, error) {
	raw, err := ag2.Knob(m, "supervisors")
	if err != nil || raw == nil {
		return nil, err
	}
	var list []string
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, ag2.Refuse("workflow's knob supervisors is a list of agent ids, not %.40s", raw)
	}
	for i, agent := range list {
		p, ok := m.Participant(agent)
		if !ok {
			return nil, ag2.Refuse("workflow's supervisor '%s' is not in participants", agent)
		}
		list[i] = p.Agent // the participant's own string, so that none is stored twice
	}
	return slices.Clip(list), nil
}

// Codec encodes the state in AG2's form, followed by the supervisors if there are
// any. Version 2 bounds the evaluation of a turn (graph.MaxSteps, graph.MaxNumber).
func (a Adapter) Codec() channel.Codec { return ag2.Codec(2, write, a.read) }

func write(s *State, b *jsonbuf.Buffer) {
	f := &s.Facts
	b.Open('{')
	b.Key("participant_order").Strings(f.Order)
	b.Key("expected_next_speaker")
	if f.Ended {
		b.Null()
	} else {
		b.String(f.Expected)
	}
	b.Key("last_speaker_id").Optional(f.LastSpeaker)
	b.Key("last_envelope_id").Optional(f.LastEnvelope)
	b.Key("turn_count").Int(f.Turns)
	b.Key("pending_close_reason").String(f.Closing)
	b.Key("creator_id").String(f.Creator)
	b.Key("graph_data").Object([]byte(s.Graph.Source()))
	b.Key("context_vars").Open('{')
	for key, value := range f.Vars.All() {
		b.Key(key).Value([]byte(value))
	}
	b.Close('}')
	if len(s.Supervisors) > 0 {
		b.Key("supervisors").Strings(s.Supervisors)
	}
	b.Close('}')
}

func (a Adapter) read(data []byte) (*State, error) {
	var raw struct {
		Order        []string       `json:"participant_order"`
		Expected     *string        `json:"expected_next_speaker"`
		LastSpeaker  string         `json:"last_speaker_id"`
		LastEnvelope string         `json:"last_envelope_id"`
		Turns        int            `json:"turn_count"`
		Closing      string         `json:"pending_close_reason"`
		Creator      string         `json:"creator_id"`
		Graph        jsontext.Value `json:"graph_data"`
		Vars         jsontext.Value `json:"context_vars"`
		Supervisors  []string       `json:"supervisors"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, err
	}
	g, err := a.load(raw.Graph)
	if err != nil {
		return nil, fmt.Errorf("graph_data: %w", err)
	}
	s := &State{Graph: g, Supervisors: raw.Supervisors, Facts: graph.Facts{
		Order: raw.Order, Creator: raw.Creator, Ended: raw.Expected == nil, Closing: raw.Closing,
		LastSpeaker: raw.LastSpeaker, LastEnvelope: raw.LastEnvelope, Turns: raw.Turns,
	}}
	if raw.Expected != nil {
		s.Facts.Expected = *raw.Expected
	}
	if raw.Vars != nil {
		if s.Facts.Vars, err = graph.ParseVars(raw.Vars); err != nil {
			return nil, err
		}
	}
	return s, nil
}
