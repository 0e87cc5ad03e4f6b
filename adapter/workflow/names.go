package workflow

import (
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// NameKnobs replaces the names in a graph and among supervisors by ids. Everything
// else stays byte for byte the same. Knobs that ValidateCreate refuses also stay
// the same: ValidateCreate says why.
func (a Adapter) NameKnobs(knobs []byte, id func(name string) string) []byte {
	var top map[string]jsontext.Value
	if json.Unmarshal(knobs, &top) != nil {
		return knobs
	}
	changed := false
	if raw, ok := top["graph"]; ok {
		if named, ok := a.nameGraph(raw, id); ok {
			top["graph"], changed = named, true
		}
	}
	var supervisors []string
	if raw, ok := top["supervisors"]; ok && json.Unmarshal(raw, &supervisors) == nil {
		ids := make([]string, len(supervisors))
		for i, name := range supervisors {
			ids[i] = id(name)
		}
		if !slices.Equal(ids, supervisors) {
			if named, err := json.Marshal(ids); err == nil {
				top["supervisors"], changed = named, true
			}
		}
	}
	if !changed {
		return knobs
	}
	named, err := json.Marshal(top, json.Deterministic(true))
	if err != nil {
		return knobs
	}
	return named
}

func (a Adapter) nameGraph(raw jsontext.Value, id func(string) string) (jsontext.Value, bool) {
	g, err := a.load(raw)
	if err != nil {
		return nil, false
	}
	named, err := g.MapAgents(id)
	if err != nil || named == g {
		return nil, false
	}
	return jsontext.Value(named.Source()), true
}
