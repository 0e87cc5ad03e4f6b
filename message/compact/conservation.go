package compact

import (
	"math"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/value"
)

// stats count a group of items and their content's bytes.
type stats struct {
	items int
	bytes int
}

func (s stats) canonical() *value.Map {
	return value.New().Set("item_count", value.Int(s.items)).Set("byte_count", value.Int(s.bytes))
}

func statsOf(envelopes []message.Envelope) stats {
	s := stats{items: len(envelopes)}
	for _, e := range envelopes {
		s.bytes += contentBytes(e.Content)
	}
	return s
}

// statsOfItems counts items of any shape: one without content counts whole.
func statsOfItems(items []any) stats {
	s := stats{items: len(items)}
	for _, item := range items {
		if m, ok := item.(*value.Map); ok && m.Has("content") {
			item = m.At("content")
		}
		s.bytes += contentBytes(item)
	}
	return s
}

func contentBytes(content any) int {
	if text, ok := content.(string); ok {
		return len(text)
	}
	return value.PHPSize(content)
}

// conservation compares the sizes before and after.
type conservation struct {
	policy                                  Policy
	original, compacted, retained, archived stats
}

func (c conservation) conserved() int {
	return c.compacted.bytes + c.retained.bytes + c.archived.bytes
}

func (c conservation) required() int64 {
	return value.Truncate(math.Ceil(float64(c.original.bytes) * c.policy.MinimumConservedByteRatio))
}

func (c conservation) passed() bool {
	return !c.policy.ConservationEnabled || int64(c.conserved()) >= c.required()
}

func (c conservation) failedClosed() bool {
	return c.policy.ConservationEnabled && c.policy.FailOnConservationFailure && !c.passed()
}

func (c conservation) ratio() float64 {
	if c.original.bytes == 0 {
		return 1
	}
	return float64(c.conserved()) / float64(c.original.bytes)
}

// metadata describes a compaction, after the metadata that is given.
func (c conservation) metadata(about *value.Map) *value.Map {
	return about.Clone().
		Set("policy", c.policy.Canonical()).
		Set("provenance", value.New().
			Set("original", c.original.canonical()).
			Set("compacted", c.compacted.canonical()).
			Set("retained", c.retained.canonical()).
			Set("archived", c.archived.canonical())).
		Set("summarizer", value.New().
			Set("provider", c.policy.SummaryProvider).
			Set("model", c.policy.SummaryModel)).
		Set("conservation", value.New().
			Set("enabled", c.policy.ConservationEnabled).
			Set("minimum_conserved_byte_ratio", value.Float(c.policy.MinimumConservedByteRatio)).
			Set("required_byte_count", value.Int(c.required())).
			Set("conserved_byte_count", value.Int(c.conserved())).
			Set("conserved_byte_ratio", value.Float(c.ratio())).
			Set("passed", c.passed()).
			Set("failed_closed", c.failedClosed()))
}
