package compact

import (
	"math"

	"github.com/parley-hub/parley/message/value"
)

// Policy says when and how a transcript is compacted. The zero value is not
// the default; see DefaultPolicy.
type Policy struct {
	Enabled                bool
	MaxMessages            int64
	RecentMessages         int64
	SummaryRole            string
	SummaryPrefix          string
	SummaryModel           string
	SummaryProvider        string
	PreserveToolBoundaries bool

	ConservationEnabled       bool
	MinimumConservedByteRatio float64
	FailOnConservationFailure bool

	OverflowArchiveEnabled   bool
	OverflowThresholdBytes   int64
	OverflowRetainedMessages int64
	OverflowRetainedBytes    int64
	OverflowArchivePointer   any
	OverflowStubRole         string
	OverflowStubPrefix       string

	// Extra holds the host's keys that have no meaning here.
	Extra *value.Map
}

// DefaultPolicy returns the policy of a host that sets nothing: no compaction.
func DefaultPolicy() Policy {
	return Policy{
		MaxMessages:               40,
		RecentMessages:            12,
		SummaryRole:               "system",
		SummaryPrefix:             "Earlier conversation summary:",
		PreserveToolBoundaries:    true,
		MinimumConservedByteRatio: 1,
		FailOnConservationFailure: true,
		OverflowArchivePointer:    value.New(),
		OverflowStubRole:          "system",
		OverflowStubPrefix:        "Earlier conversation archived without summarization.",
	}
}

// NormalizePolicy reads a policy as hosts write it. Nothing is refused: what
// is not a number counts as 0, and what is not a text as its default.
func NormalizePolicy(raw any) Policy {
	p := DefaultPolicy()
	fields := p.fields()
	for key, v := range value.MapOrEmpty(value.Of(raw)).All() {
		if set, ok := fields[key]; ok {
			set(v)
			continue
		}
		if p.Extra == nil {
			p.Extra = value.New()
		}
		p.Extra.Set(key, v)
	}
	p.MaxMessages = max(1, p.MaxMessages)
	p.RecentMessages = max(1, p.RecentMessages)
	if p.RecentMessages >= p.MaxMessages {
		p.RecentMessages = max(1, p.MaxMessages-1)
	}
	return p
}

// fields returns the setters by key.
func (p *Policy) fields() map[string]func(any) {
	return map[string]func(any){
		"enabled":                      toBool(&p.Enabled),
		"max_messages":                 toInt(&p.MaxMessages),
		"recent_messages":              toInt(&p.RecentMessages),
		"summary_role":                 toText(&p.SummaryRole),
		"summary_prefix":               toText(&p.SummaryPrefix),
		"summary_model":                toText(&p.SummaryModel),
		"summary_provider":             toText(&p.SummaryProvider),
		"preserve_tool_boundaries":     toBool(&p.PreserveToolBoundaries),
		"conservation_enabled":         toBool(&p.ConservationEnabled),
		"minimum_conserved_byte_ratio": toFloat(&p.MinimumConservedByteRatio),
		"fail_on_conservation_failure": toBool(&p.FailOnConservationFailure),
		"overflow_archive_enabled":     toBool(&p.OverflowArchiveEnabled),
		"overflow_threshold_bytes":     toInt(&p.OverflowThresholdBytes),
		"overflow_retained_messages":   toInt(&p.OverflowRetainedMessages),
		"overflow_retained_bytes":      toInt(&p.OverflowRetainedBytes),
		"overflow_archive_pointer":     toContainer(&p.OverflowArchivePointer),
		"overflow_stub_role":           toText(&p.OverflowStubRole),
		"overflow_stub_prefix":         toText(&p.OverflowStubPrefix),
	}
}

// Canonical returns the policy as a map: every known key, then the host's own.
func (p Policy) Canonical() *value.Map {
	m := value.New().
		Set("enabled", p.Enabled).
		Set("max_messages", value.Int(p.MaxMessages)).
		Set("recent_messages", value.Int(p.RecentMessages)).
		Set("summary_role", p.SummaryRole).
		Set("summary_prefix", p.SummaryPrefix).
		Set("summary_model", p.SummaryModel).
		Set("summary_provider", p.SummaryProvider).
		Set("preserve_tool_boundaries", p.PreserveToolBoundaries).
		Set("conservation_enabled", p.ConservationEnabled).
		Set("minimum_conserved_byte_ratio", value.Float(p.MinimumConservedByteRatio)).
		Set("fail_on_conservation_failure", p.FailOnConservationFailure).
		Set("overflow_archive_enabled", p.OverflowArchiveEnabled).
		Set("overflow_threshold_bytes", value.Int(p.OverflowThresholdBytes)).
		Set("overflow_retained_messages", value.Int(p.OverflowRetainedMessages)).
		Set("overflow_retained_bytes", value.Int(p.OverflowRetainedBytes)).
		Set("overflow_archive_pointer", p.OverflowArchivePointer).
		Set("overflow_stub_role", p.OverflowStubRole).
		Set("overflow_stub_prefix", p.OverflowStubPrefix)
	for key, v := range p.Extra.All() {
		m.Set(key, v)
	}
	return m
}

func toBool(field *bool) func(any) {
	return func(v any) { *field = value.Truthy(v) }
}

func toInt(field *int64) func(any) {
	return func(v any) { i, _ := number(v); *field = max(0, i) }
}

func toFloat(field *float64) func(any) {
	return func(v any) { _, f := number(v); *field = min(max(0, f), math.MaxFloat64) }
}

// number reads a number or a string that is one as a whole; the rest is 0, and
// so is the integer of an infinite number.
func number(v any) (int64, float64) {
	switch v := v.(type) {
	case value.Number:
		f := v.Float64()
		if math.IsNaN(f) {
			return 0, 0
		}
		if math.IsInf(f, 0) {
			return 0, f
		}
		if i, ok := v.Int64(); ok {
			return i, f
		}
		return value.Truncate(f), f
	case string:
		i, f, _ := value.Numeric(v)
		return i, f
	default:
		return 0, 0
	}
}

// toText keeps the default where the text is blank or none.
func toText(field *string) func(any) {
	return func(v any) {
		if s, ok := v.(string); ok && value.Trim(s) != "" {
			*field = value.Trim(s)
		}
	}
}

func toContainer(field *any) func(any) {
	return func(v any) {
		if value.Len(v) > 0 {
			*field = v
		}
	}
}
