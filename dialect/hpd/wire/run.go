package wire

import "time"

// Run is the JSON body of a run.
type Run struct {
	RuntimeRunID        string               `json:"runtimeRunId"`
	AgentID             string               `json:"agentId"`
	SessionID           string               `json:"sessionId"`
	BranchID            string               `json:"branchId"`
	Status              string               `json:"status"`
	StartedAt           time.Time            `json:"startedAt"`
	CompletedAt         time.Time            `json:"completedAt,omitzero"`
	Error               *RunError            `json:"error,omitzero"`
	BackgroundOperation *BackgroundOperation `json:"backgroundOperation,omitzero"`
	BackgroundTasks     []BackgroundTask     `json:"backgroundTasks"`
}

// Statuses of runs.
const (
	RunActive    = "active"
	RunCompleted = "completed"
	RunCancelled = "cancelled"
	RunFailed    = "failed"
)

// Error types of runs that the server ends itself.
const (
	RuntimeLost = "RuntimeLost"
	NoProducer  = "NoProducer"
)

// RunError is why a run failed.
type RunError struct {
	Type    *string `json:"type,omitzero"`
	Message *string `json:"message,omitzero"`
}

// BackgroundOperation is a run's latest operation at its provider.
type BackgroundOperation struct {
	Status            OperationStatus `json:"status"`
	OperationID       *string         `json:"operationId,omitzero"`
	StatusMessage     *string         `json:"statusMessage,omitzero"`
	ContinuationToken *string         `json:"continuationToken,omitzero"`
}

// BackgroundTask is a task that outlives its tool call.
type BackgroundTask struct {
	TaskID       string    `json:"taskId"`
	Name         string    `json:"name"`
	Status       string    `json:"status"` // started, completed, cancelled or faulted
	StartedAt    time.Time `json:"startedAt,omitzero"`
	CompletedAt  time.Time `json:"completedAt,omitzero"`
	CancelledAt  time.Time `json:"cancelledAt,omitzero"`
	FaultedAt    time.Time `json:"faultedAt,omitzero"`
	ErrorType    *string   `json:"errorType,omitzero"`
	ErrorMessage *string   `json:"errorMessage,omitzero"`
}

// InputAccepted is the body of a 202 response of the inputs route.
type InputAccepted struct {
	RuntimeRunID string    `json:"runtimeRunId"`
	StartedAt    time.Time `json:"startedAt"`
}

// RespondResult is the result of an answer to a request.
type RespondResult struct {
	Status    RespondStatus `json:"status"`
	RequestID string        `json:"requestId"`
	Message   *string       `json:"message,omitzero"`
	Accepted  bool          `json:"accepted"`
}

// Bodies between the hub and remote producers.
type (
	// WorkInput is an input for a producer: the event input of its stream.
	WorkInput struct {
		RuntimeRunID  string        `json:"runtimeRunId"`
		SessionID     string        `json:"sessionId"`
		BranchID      string        `json:"branchId"`
		MessageTurnID string        `json:"messageTurnId"`
		Messages      []ChatMessage `json:"messages"`
		RunConfig     Raw           `json:"runConfig,omitzero"`
		Resumed       bool          `json:"resumed"`
	}
	// WorkInterrupt asks a producer to stop: the event interrupt of its stream.
	WorkInterrupt struct {
		RuntimeRunID string  `json:"runtimeRunId"`
		Reason       string  `json:"reason"`
		EventFlowID  *string `json:"eventFlowId,omitzero"`
	}
	// Published is the body of a 202 response of POST …/events.
	Published struct {
		Accepted int `json:"accepted"`
	}
	// Asked is the body of a 202 response of POST …/requests.
	Asked struct {
		RequestID string `json:"requestId"`
	}
	// CompleteRun is the body of POST …/complete.
	CompleteRun struct {
		Status string         `json:"status"`
		Error  *CompleteError `json:"error,omitzero"`
	}
	// Completed is the body of a 200 response of POST …/complete.
	Completed struct {
		Status string `json:"status"`
	}
	// CompleteError is why a producer fails its run.
	CompleteError struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	// OpenRequest is a request that waits for an answer.
	OpenRequest struct {
		RequestID    string         `json:"requestId"`
		RuntimeRunID string         `json:"runtimeRunId"`
		Request      Raw            `json:"request"` // the request's envelope
		Policy       ResponsePolicy `json:"responsePolicy"`
		AskedAt      time.Time      `json:"askedAt"`
		DueAt        time.Time      `json:"dueAt,omitzero"`
	}
)
