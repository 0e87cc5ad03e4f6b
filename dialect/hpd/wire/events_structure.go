package wire

import (
	"time"

	"github.com/parley-hub/parley/view/branch"
)

// Events of this file: what the server writes about a branch and whole messages.
type (
	// BranchCreated is the first event of a branch.
	BranchCreated struct {
		Name           *string   `json:"name,omitzero"`
		Description    *string   `json:"description,omitzero"`
		Tags           []string  `json:"tags,omitzero"`
		BranchMetadata Raw       `json:"branchMetadata,omitzero"`
		CreatedAt      time.Time `json:"createdAt,omitzero"`
		Extra
	}

	// BranchForked is the first event of a fork.
	BranchForked struct {
		SourceBranchID       string            `json:"sourceBranchId" need:"true"`
		FromMessageID        string            `json:"fromMessageId" need:"true"`
		ResolvedMessageIndex int64             `json:"resolvedMessageIndex"`
		Ancestors            map[string]string `json:"ancestors,omitzero"`
		Extra
	}

	// BranchMetadataUpdated replaces a branch's four fields.
	BranchMetadataUpdated struct {
		Name           *string  `json:"name,omitzero"`
		Description    *string  `json:"description,omitzero"`
		Tags           []string `json:"tags,omitzero"`
		BranchMetadata Raw      `json:"branchMetadata,omitzero"`
		Extra
	}

	// BranchTreeUpdated replaces a branch's place in the tree.
	BranchTreeUpdated struct {
		ForkedFrom           *string  `json:"forkedFrom,omitzero"`
		ForkedAtMessageID    *string  `json:"forkedAtMessageId,omitzero"`
		ForkedAtMessageIndex *int64   `json:"forkedAtMessageIndex,omitzero"`
		SiblingIndex         int64    `json:"siblingIndex"`
		TotalSiblings        int64    `json:"totalSiblings"`
		IsOriginal           bool     `json:"isOriginal"`
		OriginalBranchID     *string  `json:"originalBranchId,omitzero"`
		PreviousSiblingID    *string  `json:"previousSiblingId,omitzero"`
		NextSiblingID        *string  `json:"nextSiblingId,omitzero"`
		ChildBranches        []string `json:"childBranches"`
		Extra
	}

	// MessageStarted opens a message that is committed whole.
	MessageStarted struct {
		MessageID            string    `json:"messageId" need:"true"`
		Role                 string    `json:"role"`
		AuthorName           *string   `json:"authorName,omitzero"`
		CreatedAt            time.Time `json:"createdAt,omitzero"`
		ClientInputID        *string   `json:"clientInputId,omitzero"`
		AdditionalProperties Raw       `json:"additionalProperties,omitzero"`
		Extra
	}

	// ContentAdded adds a content that is neither text, reasoning nor a call.
	ContentAdded struct {
		MessageID string  `json:"messageId" need:"true"`
		Content   Content `json:"content" need:"true"`
		Extra
	}

	// MessageCompleted closes a message that is committed whole.
	MessageCompleted struct {
		MessageID string `json:"messageId" need:"true"`
		Extra
	}

	// BranchMiddlewareStateCommitted replaces the middleware state.
	BranchMiddlewareStateCommitted struct {
		State map[string]string `json:"state"`
		Extra
	}

	// BranchHistoryCompacted replaces messages of the projection by others.
	BranchHistoryCompacted struct {
		CompactionID               string        `json:"compactionId"`
		ModelCompactedMessageIDs   []string      `json:"modelCompactedMessageIds"`
		DurableCompactedMessageIDs []string      `json:"durableCompactedMessageIds"`
		ReplacementMessages        []ChatMessage `json:"replacementMessages"`
		StrategyKind               string        `json:"strategyKind"`
		RetentionKind              string        `json:"retentionKind"`
		BoundaryKind               string        `json:"boundaryKind"`
		SummaryContent             *string       `json:"summaryContent,omitzero"`
		CompactedAt                time.Time     `json:"compactedAt,omitzero"`
		Extra
	}
)

// EventType returns the name on the wire.
func (BranchCreated) EventType() string { return branch.BranchCreated }

// EventType returns the name on the wire.
func (BranchForked) EventType() string { return branch.BranchForked }

// EventType returns the name on the wire.
func (BranchMetadataUpdated) EventType() string { return branch.BranchMetadataUpdated }

// EventType returns the name on the wire.
func (BranchTreeUpdated) EventType() string { return branch.BranchTreeUpdated }

// EventType returns the name on the wire.
func (MessageStarted) EventType() string { return branch.MessageStarted }

// EventType returns the name on the wire.
func (ContentAdded) EventType() string { return branch.ContentAdded }

// EventType returns the name on the wire.
func (MessageCompleted) EventType() string { return branch.MessageCompleted }

// EventType returns the name on the wire.
func (BranchMiddlewareStateCommitted) EventType() string {
	return branch.BranchMiddlewareStateCommitted
}

// EventType returns the name on the wire.
func (BranchHistoryCompacted) EventType() string { return branch.BranchHistoryCompacted }
