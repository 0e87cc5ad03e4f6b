package compact

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/value"
)

const (
	archiveStrategy = "deterministic_overflow_archive"
	archivePrefix   = "agents-api-overflow-"
	unsplittable    = "overflow_input_unsplittable"
)

// rawItems returns the messages as they came, each through the string-key filter.
func rawItems(messages any) []any {
	list, _ := value.Values(messages)
	items := make([]any, 0, len(list))
	for _, m := range list {
		items = append(items, value.StringKeys(m))
	}
	return items
}

// archive splits input that is too large into a stub, what stays, and the
// originals of what does not, without asking a model.
func archive(source []any, envelopes []message.Envelope, policy Policy) Result {
	n := len(envelopes)
	cut := overflowCut(envelopes, policy)
	totalBytes := value.PHPSize(source)
	if cut <= 0 {
		return finish(envelopes, StatusSkipped, value.New().
			Set("policy", policy.Canonical()).
			Set("reason", unsplittable).
			Set("total_messages", value.Int(n)).
			Set("total_bytes", value.Int(totalBytes)), nil)
	}
	items := source[:cut]
	id := archivePrefix + shortHash(items)
	about := value.New().
		Set("strategy", archiveStrategy).
		Set("archive_id", id).
		Set("archive_pointer", policy.OverflowArchivePointer).
		Set("archive_count", value.Int(cut)).
		Set("retained_count", value.Int(n-cut)).
		Set("total_messages", value.Int(n)).
		Set("total_bytes", value.Int(totalBytes)).
		Set("boundary", value.New().
			Set("archive_until", value.Int(cut-1)).
			Set("retain_from", value.Int(cut))).
		Set("policy", policy.Canonical())
	// The role of a policy is never blank, so this cannot be refused.
	stub, _ := message.Text(policy.OverflowStubRole,
		policy.OverflowStubPrefix+"\n\nArchive ID: "+id+"\nArchived messages: "+strconv.Itoa(cut),
		value.New().Set("agents_api_compaction_archive", about))
	result := finish(append([]message.Envelope{stub}, envelopes[cut:]...), StatusArchived, about,
		[]any{event(EventArchived, about)})
	result.ArchiveItems = items
	return result
}

// overflowCut keeps the wanted number of messages, fewer if they are too
// large, and never separates a call from its result.
func overflowCut(envelopes []message.Envelope, policy Policy) int {
	n := len(envelopes)
	retain := cmp.Or(policy.OverflowRetainedMessages, policy.RecentMessages)
	cut := n - int(min(int64(n), retain))
	if policy.OverflowRetainedBytes > 0 {
		cut = fit(envelopes, cut, policy.OverflowRetainedBytes)
	}
	if policy.PreserveToolBoundaries {
		cut, _ = safe(cut, n, typesOf(envelopes))
	}
	return cut
}

// fit moves the cut forwards until the rest, written as a list, is no larger
// than limit or one message is left.
func fit(envelopes []message.Envelope, cut int, limit int64) int {
	size := len("[]")
	for _, e := range envelopes[cut:] {
		size += value.PHPSize(e.Canonical()) + len(",")
	}
	for ; cut < len(envelopes)-1 && int64(size-len(",")) > limit; cut++ {
		size -= value.PHPSize(envelopes[cut].Canonical()) + len(",")
	}
	return cut
}

// shortHash returns the first 16 hex digits over a value's text.
func shortHash(v any) string {
	text, _ := value.AppendPHP(nil, v)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])[:16]
}
