package wire

import (
	"github.com/parley-hub/parley/view/branch"
)

// Events of this file: what a client sends to start or stop a run.
type (
	// UserTextInput is a user's text; it becomes one message.
	UserTextInput struct {
		Text          string  `json:"text" need:"true"`
		AgentID       *string `json:"agentId,omitzero"`
		RunConfig     Raw     `json:"runConfig,omitzero" object:"true"`
		RuntimeRunID  *string `json:"runtimeRunId,omitzero"`
		ClientInputID *string `json:"clientInputId,omitzero"`
		Extra
	}

	// UserMessagesInput is a list of messages.
	UserMessagesInput struct {
		Messages      []ChatMessage `json:"messages"`
		AgentID       *string       `json:"agentId,omitzero"`
		RunConfig     Raw           `json:"runConfig,omitzero" object:"true"`
		RuntimeRunID  *string       `json:"runtimeRunId,omitzero"`
		ClientInputID *string       `json:"clientInputId,omitzero"`
		Delivery      Delivery      `json:"delivery,omitzero"`
		Extra
	}

	// InterruptionRequest asks for the active run to stop.
	InterruptionRequest struct {
		Reason  *string            `json:"reason,omitzero"`
		Source  InterruptionSource `json:"source,omitzero"`
		AgentID *string            `json:"agentId,omitzero"`
		Extra
	}

	// InterruptionHandled reports that a run was asked to stop.
	InterruptionHandled struct {
		Reason string             `json:"reason"`
		Source InterruptionSource `json:"source,omitzero"`
		Extra
	}
)

// EventType returns the name on the wire.
func (UserTextInput) EventType() string { return branch.UserTextInput }

// EventType returns the name on the wire.
func (UserMessagesInput) EventType() string { return branch.UserMessagesInput }

// EventType returns the name on the wire.
func (InterruptionRequest) EventType() string { return branch.InterruptionRequest }

// EventType returns the name on the wire.
func (InterruptionHandled) EventType() string { return branch.InterruptionHandled }
