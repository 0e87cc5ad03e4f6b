package wire

import (
	"time"

	"github.com/parley-hub/parley/view/branch"
)

// Events of this file: tools and background work.
type (
	// ToolCallStart begins a call.
	ToolCallStart struct {
		CallID          string   `json:"callId" need:"true"`
		Name            string   `json:"name" need:"true"`
		MessageID       string   `json:"messageId"`
		ToolHarnessName *string  `json:"toolHarnessName,omitzero"`
		CallType        CallType `json:"callType,omitzero"`
		Extra
	}

	// ToolCallArgs has a call's whole arguments, as JSON text.
	ToolCallArgs struct {
		CallID   string `json:"callId" need:"true"`
		ArgsJSON string `json:"argsJson" need:"true"`
		Extra
	}

	// ToolCallEnd reports that a call is fully specified; its result may come later.
	ToolCallEnd struct {
		CallID string `json:"callId" need:"true"`
		Extra
	}

	// ToolCallResult has a call's result.
	ToolCallResult struct {
		CallID          string     `json:"callId" need:"true"`
		Result          ToolResult `json:"result"`
		ToolHarnessName *string    `json:"toolHarnessName,omitzero"`
		CallType        CallType   `json:"callType,omitzero"`
		Name            *string    `json:"name,omitzero"`
		MessageID       *string    `json:"messageId,omitzero"`
		Extra
	}

	// ToolProgress reports how far a tool's function is.
	ToolProgress struct {
		CallID          string   `json:"callId" need:"true"`
		Name            *string  `json:"name,omitzero"`
		Message         *string  `json:"message,omitzero"`
		PercentComplete *float64 `json:"percentComplete,omitzero"`
		Extra
	}

	// ToolCallBackgroundTaskStarted begins a task that outlives its call.
	ToolCallBackgroundTaskStarted struct {
		TaskID     string     `json:"taskId" need:"true"`
		Name       string     `json:"name"`
		Invocation Invocation `json:"invocation"`
		StartedAt  time.Time  `json:"startedAt,omitzero"`
		Extra
	}

	// ToolCallBackgroundTaskCompleted ends a task successfully.
	ToolCallBackgroundTaskCompleted struct {
		TaskID               string     `json:"taskId" need:"true"`
		Name                 string     `json:"name"`
		Invocation           Invocation `json:"invocation"`
		CompletedAt          time.Time  `json:"completedAt,omitzero"`
		DurationMilliseconds float64    `json:"durationMilliseconds"`
		Extra
	}

	// ToolCallBackgroundTaskCancelled ends a task that was cancelled.
	ToolCallBackgroundTaskCancelled struct {
		TaskID      string     `json:"taskId" need:"true"`
		Name        string     `json:"name"`
		Invocation  Invocation `json:"invocation"`
		CancelledAt time.Time  `json:"cancelledAt,omitzero"`
		Extra
	}

	// ToolCallBackgroundTaskFaulted ends a task that failed.
	ToolCallBackgroundTaskFaulted struct {
		TaskID        string     `json:"taskId" need:"true"`
		Name          string     `json:"name"`
		Invocation    Invocation `json:"invocation"`
		FaultedAt     time.Time  `json:"faultedAt,omitzero"`
		ExceptionType string     `json:"exceptionType"`
		ErrorMessage  string     `json:"errorMessage"`
		Extra
	}

	// BackgroundOperationStarted begins an operation at the provider.
	BackgroundOperationStarted struct {
		ContinuationToken string          `json:"continuationToken"`
		Status            OperationStatus `json:"status,omitzero"`
		OperationID       *string         `json:"operationId,omitzero"`
		Extra
	}

	// BackgroundOperationStatus reports the status of an operation at the provider.
	BackgroundOperationStatus struct {
		Status            OperationStatus `json:"status,omitzero" need:"true"`
		ContinuationToken *string         `json:"continuationToken,omitzero"`
		StatusMessage     *string         `json:"statusMessage,omitzero"`
		Extra
	}
)

// EventType returns the name on the wire.
func (ToolCallStart) EventType() string { return branch.ToolCallStart }

// EventType returns the name on the wire.
func (ToolCallArgs) EventType() string { return branch.ToolCallArgs }

// EventType returns the name on the wire.
func (ToolCallEnd) EventType() string { return branch.ToolCallEnd }

// EventType returns the name on the wire.
func (ToolCallResult) EventType() string { return branch.ToolCallResult }

// EventType returns the name on the wire.
func (ToolProgress) EventType() string { return branch.ToolProgress }

// EventType returns the name on the wire.
func (ToolCallBackgroundTaskStarted) EventType() string { return branch.ToolCallBackgroundTaskStarted }

// EventType returns the name on the wire.
func (ToolCallBackgroundTaskCompleted) EventType() string {
	return branch.ToolCallBackgroundTaskCompleted
}

// EventType returns the name on the wire.
func (ToolCallBackgroundTaskCancelled) EventType() string {
	return branch.ToolCallBackgroundTaskCancelled
}

// EventType returns the name on the wire.
func (ToolCallBackgroundTaskFaulted) EventType() string { return branch.ToolCallBackgroundTaskFaulted }

// EventType returns the name on the wire.
func (BackgroundOperationStarted) EventType() string { return branch.BackgroundOperationStarted }

// EventType returns the name on the wire.
func (BackgroundOperationStatus) EventType() string { return branch.BackgroundOperationStatus }
