package message

import (
	"strings"

	"github.com/parley-hub/parley/message/value"
)

// Coalesce normalizes a list and merges neighbours of one role into multimodal
// parts, for vendors that want roles to alternate. The result is for a request
// and is never stored.
func Coalesce(list any) ([]Envelope, error) {
	envelopes, err := NormalizeAll(list)
	if err != nil {
		return nil, err
	}
	return CoalesceEnvelopes(envelopes), nil
}

// CoalesceEnvelopes is like Coalesce, for envelopes that are normalized already.
// Envelopes without a neighbour of their role are returned as they are.
func CoalesceEnvelopes(envelopes []Envelope) []Envelope {
	merged := make([]Envelope, 0, len(envelopes))
	for start := 0; start < len(envelopes); {
		end := start + 1
		for end < len(envelopes) && envelopes[end].Role == envelopes[start].Role {
			end++
		}
		if end == start+1 {
			merged = append(merged, envelopes[start])
		} else {
			merged = append(merged, merge(envelopes[start:end]))
		}
		start = end
	}
	return merged
}

// merge makes one envelope of a run. It keeps the first one's metadata, and no
// ids and dates.
func merge(run []Envelope) Envelope {
	parts := []any{}
	for _, e := range run {
		parts = append(parts, e.parts()...)
	}
	var texts []string
	for _, part := range parts {
		m := part.(*value.Map)
		if text, ok := value.NonEmptyString(m.At("content")); ok && m.At("type") == string(TypeText) {
			texts = append(texts, text)
		}
	}
	return Envelope{
		Type:     TypeMultimodalPart,
		Role:     run[0].Role,
		Content:  strings.Join(texts, "\n\n"),
		Payload:  value.New().Set("parts", parts),
		Metadata: run[0].Metadata.Clone(),
	}
}

// parts returns the parts of an envelope in a merge: its own parts, without
// further recursion, or the envelope itself.
func (e Envelope) parts() []any {
	own, ok := value.Values(e.Payload.At("parts"))
	if e.Type != TypeMultimodalPart || !ok {
		return []any{e.Canonical()}
	}
	parts := []any{}
	for _, part := range own {
		if value.IsContainer(part) {
			parts = append(parts, value.StringKeys(part))
		}
	}
	return parts
}
