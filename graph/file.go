package graph

import (
	"cmp"
	"errors"
	"fmt"
	"maps"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// File is a graph file: the graph's object as JSON or YAML, and, beside its
// own keys, optionally who takes part:
//
//	participants: [triage, digger, scribe]   # or names with their ids:
//	participants: [triage: agt-1, digger: agt-2]
//	initial_speaker: triage
//	transitions:
//	  - when: {name: from_speaker, args: {agent_id: triage}}
//	    then: {name: agent, args: {agent_id: digger}}
//
// Where names have ids, the graph may use either.
type File struct {
	Graph        *Graph // with ids in place of names
	Participants Participants

	written *Graph            // with names
	names   map[string]string // to their ids
}

// Participant is an id and a name; the name is the id if no other is given.
type Participant struct {
	ID   string
	Name string
}

// Participants are in speaking order; the first is the creator.
type Participants []Participant

// ParseFile reads a graph file with a registry; nil is the default one.
func ParseFile(data []byte, r *Registry) (*File, error) {
	if r == nil {
		r = Default()
	}
	raw, err := toJSON(data)
	if err != nil {
		return nil, err
	}
	g, err := r.Load(raw)
	if err != nil {
		return nil, err
	}
	var extra struct {
		Participants Participants `json:"participants"`
	}
	if err := json.Unmarshal(raw, &extra); err != nil {
		return nil, scriptError(err)
	}
	if err := extra.Participants.check(); err != nil {
		return nil, err
	}
	f := &File{Graph: g, Participants: extra.Participants, written: g, names: extra.Participants.byName()}
	if len(f.names) > 0 {
		if f.Graph, err = g.WithNames(f.names); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// For returns the file with the script's participants, if the script lists any.
// The graph may still use the file's names; where the script uses the same
// name, the script's id counts.
func (f *File) For(s *Script) (*File, error) {
	if len(s.Participants) == 0 {
		return f, nil
	}
	played := &File{Participants: s.Participants, written: cmp.Or(f.written, f.Graph), names: map[string]string{}}
	maps.Copy(played.names, f.names)
	maps.Copy(played.names, s.Participants.byName())
	var err error
	played.Graph, err = played.written.WithNames(played.names)
	return played, err
}

// Simulate plays a script on the file's graph. Participants that the script
// does not list are the file's.
func (f *File) Simulate(s *Script) (*Trace, error) {
	played, err := f.For(s)
	if err != nil {
		return nil, err
	}
	return simulate(played.Graph, played.Participants.IDs(), resolver(played.Participants.byName()), s)
}

// IDs lists the participants by id.
func (ps Participants) IDs() []string {
	ids := make([]string, len(ps))
	for i, p := range ps {
		ids[i] = p.ID
	}
	return ids
}

// Names maps ids to names, for drawing.
func (ps Participants) Names() map[string]string {
	names := make(map[string]string, len(ps))
	for _, p := range ps {
		names[p.ID] = p.Name
	}
	return names
}

func (ps Participants) byName() map[string]string {
	ids := make(map[string]string, len(ps))
	for _, p := range ps {
		ids[p.Name] = p.ID
	}
	return ids
}

// check refuses a name that is given two ids.
func (ps Participants) check() error {
	ids := make(map[string]string, len(ps))
	for _, p := range ps {
		if id, ok := ids[p.Name]; ok && id != p.ID {
			return refuse("participants", "the name '%s' is given to '%s' and to '%s'; give each a name of its own", p.Name, id, p.ID)
		}
		ids[p.Name] = p.ID
	}
	return nil
}

// UnmarshalJSONFrom reads "id" or {"name": "id"}.
func (p *Participant) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	switch raw.Kind() {
	case jsontext.KindString:
		p.ID = textOf(raw)
		p.Name = p.ID
	case jsontext.KindBeginObject:
		o, err := members("participants", "a participant", raw)
		if err != nil || len(o.list) != 1 || o.list[0].value.Kind() != jsontext.KindString {
			return refuse("participants", "write a participant as its id, or as name: id")
		}
		p.Name, p.ID = o.list[0].name, textOf(o.list[0].value)
	default:
		return refuse("participants", "write a participant as its id, or as name: id; not as %s", kindOf(raw))
	}
	if p.ID == "" || p.Name == "" {
		return refuse("participants", "a participant without id or name")
	}
	return nil
}

// scriptError says what was wrong with a file in its own words.
func scriptError(err error) error {
	if ours, ok := errors.AsType[*Error](err); ok {
		return ours
	}
	if semantic, ok := errors.AsType[*json.SemanticError](err); ok {
		if errors.Is(err, json.ErrUnknownName) || semantic.GoType == nil {
			return fmt.Errorf("graph: %s is not a key that is known here", semantic.JSONPointer)
		}
		return fmt.Errorf("graph: %s must be %s", semantic.JSONPointer, goKind(semantic.GoType))
	}
	return fmt.Errorf("graph: %w", err)
}
