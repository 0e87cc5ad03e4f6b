package compact

import (
	"context"
	"errors"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/value"
)

// How a compaction ended.
const (
	StatusSkipped   = "skipped"
	StatusCompacted = "compacted"
	StatusFailed    = "failed"
	StatusArchived  = "archived"
)

// Events of a compaction.
const (
	EventStarted   = "compaction_started"
	EventCompleted = "compaction_completed"
	EventFailed    = "compaction_failed"
	EventArchived  = "compaction_overflow_archived"
)

var (
	errSummary      = errors.New("Summary must be a non-empty string.")   //nolint:staticcheck // the contract's text
	errConservation = errors.New("Compaction conservation check failed.") //nolint:staticcheck // the contract's text
)

// Summarizer writes the summary of messages: it returns the text, or a map
// with summary and, optionally, archived_items. The second argument says what
// is compacted and what stays.
type Summarizer func(ctx context.Context, messages []message.Envelope, about *value.Map) (any, error)

// Result is a compacted transcript, or the original one with the reason why it
// was left alone.
type Result struct {
	Messages     []message.Envelope
	Status       string
	Metadata     *value.Map // of the compaction, with its status
	Events       []any
	ArchiveItems []any // nil unless archived
}

// Canonical returns the result as a map.
func (r Result) Canonical() *value.Map {
	m := value.New().
		Set("messages", value.List(r.Messages)).
		Set("metadata", value.New().Set("compaction", r.Metadata)).
		Set("events", r.Events)
	if r.ArchiveItems != nil {
		m.Set("archive_items", r.ArchiveItems)
	}
	return m
}

// Compact applies the policy. The only error is a message that cannot be
// normalized; a summarizer's failure is a result.
func Compact(ctx context.Context, messages any, policy Policy, summarize Summarizer) (Result, error) {
	messages = value.Of(messages)
	envelopes, err := message.NormalizeAll(messages)
	if err != nil {
		return Result{}, err
	}
	source := rawItems(messages)
	if policy.OverflowArchiveEnabled && policy.OverflowThresholdBytes > 0 &&
		int64(value.PHPSize(source)) > policy.OverflowThresholdBytes {
		return archive(source, envelopes, policy), nil
	}

	original := statsOf(envelopes)
	cut := 0
	if policy.Enabled && int64(len(envelopes)) > policy.MaxMessages {
		cut, _ = boundary(len(envelopes), policy, typesOf(envelopes))
	}
	if cut <= 0 {
		about := conservation{policy: policy, original: original, retained: original}.metadata(nil)
		return finish(envelopes, StatusSkipped, about, nil), nil
	}
	return compactAt(ctx, envelopes, cut, policy, original, summarize), nil
}

func compactAt(ctx context.Context, envelopes []message.Envelope, cut int, policy Policy, original stats, summarize Summarizer) Result {
	retained := envelopes[cut:]
	about := value.New().
		Set("policy", policy.Canonical()).
		Set("total_messages", value.Int(len(envelopes))).
		Set("compact_count", value.Int(cut)).
		Set("retained_count", value.Int(len(retained))).
		Set("boundary", value.New().
			Set("compact_until", value.Int(cut-1)).
			Set("retain_from", value.Int(cut)))
	started := event(EventStarted, about)
	conserved := conservation{policy: policy, original: original, retained: statsOf(retained)}

	fail := func(failure error, metadata *value.Map) Result {
		metadata.Set("error", failure.Error())
		return finish(envelopes, StatusFailed, metadata, []any{started, event(EventFailed, metadata)})
	}
	text, archived, err := summary(ctx, summarize, envelopes[:cut], about)
	if err != nil {
		return fail(err, conserved.metadata(about))
	}
	head := summaryMessage(text, cut, len(retained), policy)
	conserved.compacted = statsOf([]message.Envelope{head})
	conserved.archived = statsOfItems(archived)
	metadata := conserved.metadata(about).Set("summary_message", head.Canonical())
	if conserved.failedClosed() {
		return fail(errConservation, metadata)
	}
	compacted := append([]message.Envelope{head}, retained...)
	return finish(compacted, StatusCompacted, metadata, []any{started, event(EventCompleted, metadata)})
}

// summary asks the summarizer and parses its answer.
func summary(ctx context.Context, summarize Summarizer, messages []message.Envelope, about *value.Map) (text string, archived []any, err error) {
	answer, err := summarize(ctx, messages, about)
	if err != nil {
		return "", nil, err
	}
	answer = value.Of(answer)
	if m, ok := answer.(*value.Map); ok && m.Has("summary") {
		archived, _ = value.Values(m.At("archived_items"))
		answer = m.At("summary")
	}
	text, _ = answer.(string)
	if text = value.Trim(text); text == "" {
		return "", nil, errSummary
	}
	return text, archived, nil
}

func summaryMessage(text string, compacted, retained int, policy Policy) message.Envelope {
	metadata := value.New().Set("agents_api_compaction", value.New().
		Set("compacted_message_count", value.Int(compacted)).
		Set("retained_message_count", value.Int(retained)).
		Set("summary_provider", policy.SummaryProvider).
		Set("summary_model", policy.SummaryModel))
	// The role of a policy is never blank, so this cannot be refused.
	e, _ := message.Text(policy.SummaryRole, policy.SummaryPrefix+"\n\n"+text, metadata)
	return e
}

func finish(messages []message.Envelope, status string, metadata *value.Map, events []any) Result {
	if events == nil {
		events = []any{}
	}
	return Result{
		Messages: messages,
		Status:   status,
		Metadata: metadata.Clone().Set("status", status),
		Events:   events,
	}
}

func event(name string, metadata *value.Map) *value.Map {
	return value.New().Set("type", name).Set("metadata", metadata)
}
