package wire

import (
	"time"

	"github.com/parley-hub/parley/view/branch"
)

// Events of this file: requests and their answers.
type (
	// AgentRequestStarted reports an open request.
	AgentRequestStarted struct {
		RequestID                 string            `json:"requestId" need:"true"`
		SourceName                string            `json:"sourceName"`
		RequestEventType          string            `json:"requestEventType"`
		ExpectedResponseEventType string            `json:"expectedResponseEventType"`
		ResponsePolicy            ResponsePolicy    `json:"responsePolicy,omitzero"`
		Target                    *Target           `json:"target,omitzero"`
		Visibility                RequestVisibility `json:"visibility,omitzero"`
		StartedAt                 time.Time         `json:"startedAt,omitzero"`
		Extra
	}

	// AgentRequestResolved reports an answer.
	AgentRequestResolved struct {
		RequestID         string    `json:"requestId" need:"true"`
		SourceName        string    `json:"sourceName"`
		RequestEventType  string    `json:"requestEventType"`
		ResponseEventType string    `json:"responseEventType"`
		ResponderID       *string   `json:"responderId,omitzero"`
		ResponderGroup    *string   `json:"responderGroup,omitzero"`
		ResolvedAt        time.Time `json:"resolvedAt,omitzero"`
		Extra
	}

	// AgentRequestExpired reports that nobody answered in time.
	AgentRequestExpired struct {
		RequestID        string    `json:"requestId" need:"true"`
		SourceName       string    `json:"sourceName"`
		RequestEventType string    `json:"requestEventType"`
		Timeout          Duration  `json:"timeout"`
		ExpiredAt        time.Time `json:"expiredAt,omitzero"`
		Extra
	}

	// AgentRequestCancelled reports that an answer is no longer needed.
	AgentRequestCancelled struct {
		RequestID        string    `json:"requestId" need:"true"`
		SourceName       string    `json:"sourceName"`
		RequestEventType string    `json:"requestEventType"`
		Reason           *string   `json:"reason,omitzero"`
		CancelledAt      time.Time `json:"cancelledAt,omitzero"`
		Extra
	}

	// AgentResponseRejected reports an answer that was not accepted.
	AgentResponseRejected struct {
		RequestID         string        `json:"requestId" need:"true"`
		ResponseEventType string        `json:"responseEventType"`
		Status            RespondStatus `json:"status,omitzero"`
		Reason            *string       `json:"reason,omitzero"`
		ResponderID       *string       `json:"responderId,omitzero"`
		ResponderGroup    *string       `json:"responderGroup,omitzero"`
		RejectedAt        time.Time     `json:"rejectedAt,omitzero"`
		Extra
	}

	// PermissionRequest asks whether a function may run.
	PermissionRequest struct {
		PermissionID   string            `json:"permissionId" need:"true"`
		SourceName     string            `json:"sourceName"`
		FunctionName   string            `json:"functionName"`
		Description    *string           `json:"description,omitzero"`
		CallID         string            `json:"callId"`
		Arguments      Raw               `json:"arguments,omitzero" object:"true"`
		ResponsePolicy ResponsePolicy    `json:"responsePolicy,omitzero"`
		Target         *Target           `json:"target,omitzero"`
		Visibility     RequestVisibility `json:"visibility,omitzero"`
		Extra
	}

	// PermissionResponse answers a PermissionRequest.
	PermissionResponse struct {
		PermissionID   string           `json:"permissionId" need:"true"`
		SourceName     string           `json:"sourceName"`
		Approved       bool             `json:"approved"`
		Reason         *string          `json:"reason,omitzero"`
		Choice         PermissionChoice `json:"choice,omitzero"`
		ResponderID    *string          `json:"responderId,omitzero"`
		ResponderGroup *string          `json:"responderGroup,omitzero"`
		Capabilities   []string         `json:"capabilities,omitzero"`
		Extra
	}

	// PermissionApproved reports that a permission was granted.
	PermissionApproved struct {
		PermissionID string `json:"permissionId" need:"true"`
		SourceName   string `json:"sourceName"`
		Extra
	}

	// PermissionDenied reports that a permission was denied.
	PermissionDenied struct {
		PermissionID string `json:"permissionId" need:"true"`
		SourceName   string `json:"sourceName"`
		CallID       string `json:"callId"`
		Reason       string `json:"reason"`
		Extra
	}

	// ContinuationRequest asks whether the loop may continue.
	ContinuationRequest struct {
		ContinuationID   string            `json:"continuationId" need:"true"`
		SourceName       string            `json:"sourceName"`
		CurrentIteration int64             `json:"currentIteration"`
		MaxIterations    int64             `json:"maxIterations"`
		ResponsePolicy   ResponsePolicy    `json:"responsePolicy,omitzero"`
		Target           *Target           `json:"target,omitzero"`
		Visibility       RequestVisibility `json:"visibility,omitzero"`
		Extra
	}

	// ContinuationResponse answers a ContinuationRequest.
	ContinuationResponse struct {
		ContinuationID  string   `json:"continuationId" need:"true"`
		SourceName      string   `json:"sourceName"`
		Approved        bool     `json:"approved"`
		ExtensionAmount *int64   `json:"extensionAmount,omitzero"`
		ResponderID     *string  `json:"responderId,omitzero"`
		ResponderGroup  *string  `json:"responderGroup,omitzero"`
		Capabilities    []string `json:"capabilities,omitzero"`
		Extra
	}

	// ClarificationRequest asks a person something.
	ClarificationRequest struct {
		RequestID      string            `json:"requestId" need:"true"`
		SourceName     string            `json:"sourceName"`
		Question       string            `json:"question"`
		AgentName      *string           `json:"agentName,omitzero"`
		Options        []string          `json:"options,omitzero"`
		ResponsePolicy ResponsePolicy    `json:"responsePolicy,omitzero"`
		Target         *Target           `json:"target,omitzero"`
		Visibility     RequestVisibility `json:"visibility,omitzero"`
		Extra
	}

	// ClarificationResponse answers a ClarificationRequest.
	ClarificationResponse struct {
		RequestID      string   `json:"requestId" need:"true"`
		SourceName     string   `json:"sourceName"`
		Question       string   `json:"question"`
		Answer         string   `json:"answer"`
		ResponderID    *string  `json:"responderId,omitzero"`
		ResponderGroup *string  `json:"responderGroup,omitzero"`
		Capabilities   []string `json:"capabilities,omitzero"`
		Extra
	}

	// ClientToolInvokeRequest asks a client to run a tool of its own.
	ClientToolInvokeRequest struct {
		RequestID      string            `json:"requestId" need:"true"`
		ToolName       string            `json:"toolName" need:"true"`
		CallID         string            `json:"callId"`
		Arguments      Raw               `json:"arguments" object:"true"`
		Description    *string           `json:"description,omitzero"`
		SourceName     *string           `json:"sourceName,omitzero"`
		ResponsePolicy ResponsePolicy    `json:"responsePolicy,omitzero"`
		Target         *Target           `json:"target,omitzero"`
		Visibility     RequestVisibility `json:"visibility,omitzero"`
		Extra
	}

	// ClientToolInvokeResponse answers a ClientToolInvokeRequest.
	ClientToolInvokeResponse struct {
		RequestID      string              `json:"requestId" need:"true"`
		Content        []ToolResultContent `json:"content"`
		Success        bool                `json:"success"`
		ErrorMessage   *string             `json:"errorMessage,omitzero"`
		Augmentation   *Augmentation       `json:"augmentation,omitzero"`
		ResponderID    *string             `json:"responderId,omitzero"`
		ResponderGroup *string             `json:"responderGroup,omitzero"`
		Capabilities   []string            `json:"capabilities,omitzero"`
		Extra
	}

	// ClientToolGroupsRegistered reports which client tools a run knows.
	ClientToolGroupsRegistered struct {
		RegisteredToolHarnesses []string `json:"registeredToolHarnesses"`
		TotalTools              int64    `json:"totalTools"`
		Extra
	}
)

// EventType returns the name on the wire.
func (AgentRequestStarted) EventType() string { return branch.AgentRequestStarted }

// EventType returns the name on the wire.
func (AgentRequestResolved) EventType() string { return branch.AgentRequestResolved }

// EventType returns the name on the wire.
func (AgentRequestExpired) EventType() string { return branch.AgentRequestExpired }

// EventType returns the name on the wire.
func (AgentRequestCancelled) EventType() string { return branch.AgentRequestCancelled }

// EventType returns the name on the wire.
func (AgentResponseRejected) EventType() string { return branch.AgentResponseRejected }

// EventType returns the name on the wire.
func (PermissionRequest) EventType() string { return branch.PermissionRequest }

// EventType returns the name on the wire.
func (PermissionResponse) EventType() string { return branch.PermissionResponse }

// EventType returns the name on the wire.
func (PermissionApproved) EventType() string { return branch.PermissionApproved }

// EventType returns the name on the wire.
func (PermissionDenied) EventType() string { return branch.PermissionDenied }

// EventType returns the name on the wire.
func (ContinuationRequest) EventType() string { return branch.ContinuationRequest }

// EventType returns the name on the wire.
func (ContinuationResponse) EventType() string { return branch.ContinuationResponse }

// EventType returns the name on the wire.
func (ClarificationRequest) EventType() string { return branch.ClarificationRequest }

// EventType returns the name on the wire.
func (ClarificationResponse) EventType() string { return branch.ClarificationResponse }

// EventType returns the name on the wire.
func (ClientToolInvokeRequest) EventType() string { return branch.ClientToolInvokeRequest }

// EventType returns the name on the wire.
func (ClientToolInvokeResponse) EventType() string { return branch.ClientToolInvokeResponse }

// EventType returns the name on the wire.
func (ClientToolGroupsRegistered) EventType() string { return branch.ClientToolGroupsRegistered }
