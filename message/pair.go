package message

import (
	"slices"

	"github.com/parley-hub/parley/message/value"
)

// Kinds of orphans.
const (
	OrphanToolCall   = "orphan_tool_call"
	OrphanToolResult = "orphan_tool_result"
)

// Events of pruning.
const (
	EventPairsValidated = "tool_pair_validated"
	EventPairsPruned    = "tool_pair_pruned"
)

// Orphan is a tool call without a result, or a result without a call.
type Orphan struct {
	Index      int
	Kind       string
	Type       Type
	ToolName   string
	ToolCallID string
}

// Canonical returns the orphan as a map.
func (o Orphan) Canonical() *value.Map {
	m := value.New().
		Set("index", value.Int(o.Index)).
		Set("kind", o.Kind).
		Set("type", string(o.Type)).
		Set("tool_name", o.ToolName)
	m.SetText("tool_call_id", o.ToolCallID)
	return m
}

// Orphans normalizes a list and finds calls and results without a partner, by
// index.
func Orphans(list any) ([]Orphan, error) {
	envelopes, err := NormalizeAll(list)
	if err != nil {
		return nil, err
	}
	return OrphansOf(envelopes), nil
}

// OrphansOf pairs each result with the oldest open call of its id, or, if it
// has none, with the oldest open call without id of the same tool.
func OrphansOf(envelopes []Envelope) []Orphan {
	orphans := []Orphan{}
	open := map[partner][]Orphan{}
	for i, e := range envelopes {
		orphan := Orphan{Index: i, Type: e.Type, ToolName: e.ToolName(), ToolCallID: e.ToolCallID()}
		key := orphan.partner()
		switch e.Type {
		case TypeToolCall:
			orphan.Kind = OrphanToolCall
			open[key] = append(open[key], orphan)
		case TypeToolResult:
			orphan.Kind = OrphanToolResult
			if len(open[key]) > 0 {
				open[key] = open[key][1:]
			} else {
				orphans = append(orphans, orphan)
			}
		}
	}
	for _, calls := range open {
		orphans = append(orphans, calls...)
	}
	slices.SortFunc(orphans, func(a, b Orphan) int { return a.Index - b.Index })
	return orphans
}

// partner is what a call and its result share. An id decides alone; the name
// of the tool counts only where there is none.
type partner struct{ id, tool string }

func (o Orphan) partner() partner {
	if o.ToolCallID != "" {
		return partner{id: o.ToolCallID}
	}
	return partner{tool: o.ToolName}
}

// Pruned is a transcript without its orphans. Messages are the originals, not
// normalized.
type Pruned struct {
	Messages []any
	Removed  []Orphan
	Event    *value.Map
}

// Prune drops orphans, so that a provider does not refuse the transcript.
func Prune(list any) (Pruned, error) {
	list = value.Of(list)
	orphans, err := Orphans(list)
	if err != nil {
		return Pruned{}, err
	}
	source, _ := value.Values(list)
	removed := make([]any, 0, len(orphans))
	indices := make([]any, 0, len(orphans))
	lost := make(map[int]bool, len(orphans))
	for _, o := range orphans {
		removed = append(removed, o.Canonical())
		indices = append(indices, value.Int(o.Index))
		lost[o.Index] = true
	}
	kept := make([]any, 0, len(source))
	for i, m := range source {
		if !lost[i] {
			kept = append(kept, m)
		}
	}
	metadata := value.New().
		Set("total_messages", value.Int(len(source))).
		Set("orphan_count", value.Int(len(orphans)))
	name := EventPairsValidated
	if len(orphans) > 0 {
		name = EventPairsPruned
		metadata.
			Set("retained_count", value.Int(len(kept))).
			Set("removed_indices", indices).
			Set("orphans", removed)
	}
	return Pruned{
		Messages: kept,
		Removed:  orphans,
		Event:    value.New().Set("type", name).Set("metadata", metadata),
	}, nil
}

// Canonical returns the outcome of pruning as a map.
func (p Pruned) Canonical() *value.Map {
	return value.New().
		Set("messages", p.Messages).
		Set("removed", value.List(p.Removed)).
		Set("events", []any{p.Event})
}
