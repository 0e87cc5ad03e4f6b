package wire

import (
	"time"

	"github.com/parley-hub/parley/view/branch"
)

// Events of this file: runs and turns.
type (
	// BranchRunStarted begins a run. It is always the run's first event.
	BranchRunStarted struct {
		RuntimeRunID string    `json:"runtimeRunId" need:"true"`
		AgentID      string    `json:"agentId" need:"true"`
		StartedAt    time.Time `json:"startedAt,omitzero"`
		Extra
	}

	// BranchRunCompleted ends a run, once.
	BranchRunCompleted struct {
		RuntimeRunID string  `json:"runtimeRunId" need:"true"`
		AgentID      string  `json:"agentId"`
		Cancelled    bool    `json:"cancelled"`
		ErrorType    *string `json:"errorType,omitzero"`
		ErrorMessage *string `json:"errorMessage,omitzero"`
		Extra
	}

	// MessageTurnStarted begins a message turn.
	MessageTurnStarted struct {
		MessageTurnID     string `json:"messageTurnId" need:"true"`
		ConversationID    string `json:"conversationId"`
		AgentID           string `json:"agentId"`
		AgentName         string `json:"agentName"`
		InputMessageCount *int64 `json:"inputMessageCount,omitzero"`
		IsResume          *bool  `json:"isResume,omitzero"`
		Extra
	}

	// MessageTurnFinished ends a message turn successfully.
	MessageTurnFinished struct {
		MessageTurnID     string   `json:"messageTurnId" need:"true"`
		ConversationID    string   `json:"conversationId"`
		AgentID           string   `json:"agentId"`
		AgentName         string   `json:"agentName"`
		Duration          Duration `json:"duration"`
		Usage             *Usage   `json:"usage,omitzero"`
		Iteration         *int64   `json:"iteration,omitzero"`
		TerminationReason *string  `json:"terminationReason,omitzero"`
		TurnMessageCount  *int64   `json:"turnMessageCount,omitzero"`
		Extra
	}

	// MessageTurnError ends a message turn with an error.
	MessageTurnError struct {
		Message         string  `json:"message" need:"true"`
		MessageTurnID   *string `json:"messageTurnId,omitzero"`
		ConversationID  *string `json:"conversationId,omitzero"`
		AgentID         *string `json:"agentId,omitzero"`
		AgentName       *string `json:"agentName,omitzero"`
		ErrorType       *string `json:"errorType,omitzero"`
		Category        *string `json:"category,omitzero"`
		ErrorCode       *string `json:"errorCode,omitzero"`
		IsModelNotFound bool    `json:"isModelNotFound"`
		IsRetryable     bool    `json:"isRetryable"`
		Extra
	}

	// AgentTurnStarted begins one call of the model.
	AgentTurnStarted struct {
		Iteration int64 `json:"iteration"`
		Extra
	}

	// AgentTurnFinished ends one call of the model.
	AgentTurnFinished struct {
		Iteration int64 `json:"iteration"`
		Extra
	}

	// StateSnapshot shows the state of the loop.
	StateSnapshot struct {
		CurrentIteration      int64    `json:"currentIteration"`
		MaxIterations         int64    `json:"maxIterations"`
		IsTerminated          bool     `json:"isTerminated"`
		TerminationReason     *string  `json:"terminationReason,omitzero"`
		ConsecutiveErrorCount int64    `json:"consecutiveErrorCount"`
		CompletedFunctions    []string `json:"completedFunctions"`
		AgentName             string   `json:"agentName"`
		Extra
	}
)

// EventType returns the name on the wire.
func (BranchRunStarted) EventType() string { return branch.BranchRunStarted }

// EventType returns the name on the wire.
func (BranchRunCompleted) EventType() string { return branch.BranchRunCompleted }

// EventType returns the name on the wire.
func (MessageTurnStarted) EventType() string { return branch.MessageTurnStarted }

// EventType returns the name on the wire.
func (MessageTurnFinished) EventType() string { return branch.MessageTurnFinished }

// EventType returns the name on the wire.
func (MessageTurnError) EventType() string { return branch.MessageTurnError }

// EventType returns the name on the wire.
func (AgentTurnStarted) EventType() string { return branch.AgentTurnStarted }

// EventType returns the name on the wire.
func (AgentTurnFinished) EventType() string { return branch.AgentTurnFinished }

// EventType returns the name on the wire.
func (StateSnapshot) EventType() string { return branch.StateSnapshot }
