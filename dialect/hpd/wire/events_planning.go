package wire

import (
	"time"

	"github.com/parley-hub/parley/view/branch"
)

// Events of this file: plans, schemas and structured output.
type (
	// PlanModeActivated reports that an agent is in plan mode.
	PlanModeActivated struct {
		AgentName string `json:"agentName"`
		Extra
	}

	// PlanUpdated has a plan.
	PlanUpdated struct {
		PlanID         string     `json:"planId"`
		ConversationID string     `json:"conversationId"`
		UpdateType     PlanUpdate `json:"updateType,omitzero"`
		Plan           Raw        `json:"plan" object:"true"`
		Explanation    *string    `json:"explanation,omitzero"`
		UpdatedAt      time.Time  `json:"updatedAt,omitzero"`
		Extra
	}

	// SchemaChanged reports that stored state has another shape.
	SchemaChanged struct {
		OldSignature *string  `json:"oldSignature,omitzero"`
		NewSignature string   `json:"newSignature"`
		RemovedTypes []string `json:"removedTypes"`
		AddedTypes   []string `json:"addedTypes"`
		IsUpgrade    bool     `json:"isUpgrade"`
		Extra
	}

	// StructuredOutputStart begins a structured output.
	StructuredOutputStart struct {
		MessageID      string `json:"messageId" need:"true"`
		OutputTypeName string `json:"outputTypeName"`
		OutputMode     string `json:"outputMode"`
		Extra
	}

	// StructuredOutputPartial reports a part that parsed.
	StructuredOutputPartial struct {
		MessageID             string `json:"messageId" need:"true"`
		OutputTypeName        string `json:"outputTypeName"`
		ParseAttempt          int64  `json:"parseAttempt"`
		AccumulatedJSONLength int64  `json:"accumulatedJsonLength"`
		Extra
	}

	// StructuredOutputComplete ends a structured output.
	StructuredOutputComplete struct {
		MessageID          string   `json:"messageId" need:"true"`
		OutputTypeName     string   `json:"outputTypeName"`
		TotalParseAttempts int64    `json:"totalParseAttempts"`
		FinalJSONLength    int64    `json:"finalJsonLength"`
		Duration           Duration `json:"duration"`
		Extra
	}

	// StructuredOutputError reports a structured output that does not parse.
	StructuredOutputError struct {
		RawJSON          string `json:"rawJson"`
		ErrorMessage     string `json:"errorMessage"`
		ExpectedTypeName string `json:"expectedTypeName"`
		Extra
	}
)

// EventType returns the name on the wire.
func (PlanModeActivated) EventType() string { return branch.PlanModeActivated }

// EventType returns the name on the wire.
func (PlanUpdated) EventType() string { return branch.PlanUpdated }

// EventType returns the name on the wire.
func (SchemaChanged) EventType() string { return branch.SchemaChanged }

// EventType returns the name on the wire.
func (StructuredOutputStart) EventType() string { return branch.StructuredOutputStart }

// EventType returns the name on the wire.
func (StructuredOutputPartial) EventType() string { return branch.StructuredOutputPartial }

// EventType returns the name on the wire.
func (StructuredOutputComplete) EventType() string { return branch.StructuredOutputComplete }

// EventType returns the name on the wire.
func (StructuredOutputError) EventType() string { return branch.StructuredOutputError }
