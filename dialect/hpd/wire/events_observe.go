package wire

import (
	"github.com/parley-hub/parley/view/branch"
)

// Events of this file: diagnostics.
type (
	// CollapsedToolsVisible lists the tools that a model sees.
	CollapsedToolsVisible struct {
		AgentName             string   `json:"agentName"`
		Iteration             int64    `json:"iteration"`
		VisibleToolNames      []string `json:"visibleToolNames"`
		ExpandedToolHarnesses []string `json:"expandedToolHarnesses"`
		ExpandedSkills        []string `json:"expandedSkills"`
		TotalToolCount        int64    `json:"totalToolCount"`
		Extra
	}

	// ContainerExpanded reports an opened container.
	ContainerExpanded struct {
		ContainerName     string   `json:"containerName"`
		ContainerType     *string  `json:"containerType,omitzero"`
		UnlockedFunctions []string `json:"unlockedFunctions"`
		Iteration         int64    `json:"iteration"`
		Extra
	}

	// CollapsingState counts open containers.
	CollapsingState struct {
		AgentName                  string `json:"agentName"`
		Iteration                  int64  `json:"iteration"`
		ExpandedToolHarnessesCount int64  `json:"expandedToolHarnessesCount"`
		ExpandedSkillsCount        int64  `json:"expandedSkillsCount"`
		Extra
	}

	// PermissionCheck reports a permission that was looked up.
	PermissionCheck struct {
		FunctionName string   `json:"functionName"`
		IsApproved   bool     `json:"isApproved"`
		DenialReason *string  `json:"denialReason,omitzero"`
		AgentName    string   `json:"agentName"`
		Iteration    int64    `json:"iteration"`
		Duration     Duration `json:"duration"`
		Extra
	}

	// IterationStart begins an iteration.
	IterationStart struct {
		AgentName               string `json:"agentName"`
		Iteration               int64  `json:"iteration"`
		MaxIterations           int64  `json:"maxIterations"`
		CurrentMessageCount     int64  `json:"currentMessageCount"`
		HistoryMessageCount     int64  `json:"historyMessageCount"`
		TurnHistoryMessageCount int64  `json:"turnHistoryMessageCount"`
		CompletedFunctionsCount int64  `json:"completedFunctionsCount"`
		Extra
	}

	// Checkpoint reports a checkpoint.
	Checkpoint struct {
		Operation    CheckpointOperation `json:"operation,omitzero"`
		Duration     *Duration           `json:"duration,omitzero"`
		Iteration    *int64              `json:"iteration,omitzero"`
		WriteCount   *int64              `json:"writeCount,omitzero"`
		SizeBytes    *int64              `json:"sizeBytes,omitzero"`
		MessageCount *int64              `json:"messageCount,omitzero"`
		Success      *bool               `json:"success,omitzero"`
		ErrorMessage *string             `json:"errorMessage,omitzero"`
		Extra
	}

	// InternalParallelToolExecution reports a batch of tools.
	InternalParallelToolExecution struct {
		AgentName             string    `json:"agentName"`
		Iteration             int64     `json:"iteration"`
		ToolCount             int64     `json:"toolCount"`
		ParallelBatchSize     int64     `json:"parallelBatchSize"`
		ApprovedCount         int64     `json:"approvedCount"`
		DeniedCount           int64     `json:"deniedCount"`
		Duration              Duration  `json:"duration"`
		SemaphoreWaitDuration *Duration `json:"semaphoreWaitDuration,omitzero"`
		IsParallel            bool      `json:"isParallel"`
		Extra
	}

	// DeltaSendingActivated reports that only new messages are sent.
	DeltaSendingActivated struct {
		AgentName        string `json:"agentName"`
		MessageCountSent int64  `json:"messageCountSent"`
		Extra
	}

	// NestedAgentInvoked reports a child agent.
	NestedAgentInvoked struct {
		OrchestratorName string `json:"orchestratorName"`
		ChildAgentName   string `json:"childAgentName"`
		NestingDepth     int64  `json:"nestingDepth"`
		Extra
	}

	// DocumentProcessed reports a document that was read.
	DocumentProcessed struct {
		AgentName    string   `json:"agentName"`
		DocumentPath string   `json:"documentPath"`
		SizeBytes    int64    `json:"sizeBytes"`
		Duration     Duration `json:"duration"`
		Extra
	}

	// InternalMessagePrepared reports what goes to the model.
	InternalMessagePrepared struct {
		AgentName         string `json:"agentName"`
		Iteration         int64  `json:"iteration"`
		FinalMessageCount int64  `json:"finalMessageCount"`
		Extra
	}

	// RequestEventProcessed reports a request event that was processed.
	RequestEventProcessed struct {
		AgentName        string `json:"agentName"`
		ProcessedType    string `json:"eventType"`
		RequiresResponse bool   `json:"requiresResponse"`
		Extra
	}

	// AgentDecision reports what the loop does next.
	AgentDecision struct {
		AgentName               string `json:"agentName"`
		DecisionType            string `json:"decisionType"`
		Iteration               int64  `json:"iteration"`
		ConsecutiveFailures     int64  `json:"consecutiveFailures"`
		CompletedFunctionsCount int64  `json:"completedFunctionsCount"`
		Extra
	}

	// AgentCompletion ends the loop.
	AgentCompletion struct {
		AgentName       string   `json:"agentName"`
		TotalIterations int64    `json:"totalIterations"`
		Duration        Duration `json:"duration"`
		Extra
	}

	// IterationContextSnapshot shows the context of a model call.
	IterationContextSnapshot struct {
		AgentName           string           `json:"agentName"`
		Iteration           int64            `json:"iteration"`
		TotalMessageCount   int64            `json:"totalMessageCount"`
		ContextMessageCount int64            `json:"contextMessageCount"`
		ContextMessages     []ContextMessage `json:"contextMessages"`
		Instructions        *string          `json:"instructions,omitzero"`
		ToolCount           int64            `json:"toolCount"`
		Tools               []ContextTool    `json:"tools"`
		Extra
	}

	// MiddlewareStateSnapshot shows the middleware state.
	MiddlewareStateSnapshot struct {
		AgentName      string            `json:"agentName"`
		Iteration      int64             `json:"iteration"`
		Phase          string            `json:"phase"`
		BatchID        *string           `json:"batchId,omitzero"`
		FunctionCallID *string           `json:"functionCallId,omitzero"`
		ToolCallIndex  *int64            `json:"toolCallIndex,omitzero"`
		StateCount     int64             `json:"stateCount"`
		States         []MiddlewareState `json:"states"`
		Extra
	}

	// MiddlewareStateChanged shows the changes of the middleware state.
	MiddlewareStateChanged struct {
		AgentName      string             `json:"agentName"`
		Iteration      int64              `json:"iteration"`
		Phase          string             `json:"phase"`
		BatchID        *string            `json:"batchId,omitzero"`
		FunctionCallID *string            `json:"functionCallId,omitzero"`
		ToolCallIndex  *int64             `json:"toolCallIndex,omitzero"`
		ChangeCount    int64              `json:"changeCount"`
		Changes        []MiddlewareChange `json:"changes"`
		Extra
	}

	// EventDropped reports an event that an interruption discarded.
	EventDropped struct {
		DroppedEventFlowID    string `json:"droppedEventFlowId"`
		DroppedEventType      string `json:"droppedEventType"`
		DroppedSequenceNumber int64  `json:"droppedSequenceNumber"`
		Extra
	}

	// MiddlewarePipelineStart is used by older clients only, and has no payload of
	// its own.
	MiddlewarePipelineStart struct {
		Extra
	}

	// MiddlewarePipelineEnd is used by older clients only, and has no payload of
	// its own.
	MiddlewarePipelineEnd struct {
		Extra
	}

	// StreamGap tells a resumed reader that its position no longer exists.
	StreamGap struct {
		Reason string `json:"reason"`
		After  string `json:"after"`
		Extra
	}
)

// EventType returns the name on the wire.
func (CollapsedToolsVisible) EventType() string { return branch.CollapsedToolsVisible }

// EventType returns the name on the wire.
func (ContainerExpanded) EventType() string { return branch.ContainerExpanded }

// EventType returns the name on the wire.
func (CollapsingState) EventType() string { return branch.CollapsingState }

// EventType returns the name on the wire.
func (PermissionCheck) EventType() string { return branch.PermissionCheck }

// EventType returns the name on the wire.
func (IterationStart) EventType() string { return branch.IterationStart }

// EventType returns the name on the wire.
func (Checkpoint) EventType() string { return branch.Checkpoint }

// EventType returns the name on the wire.
func (InternalParallelToolExecution) EventType() string { return branch.InternalParallelToolExecution }

// EventType returns the name on the wire.
func (DeltaSendingActivated) EventType() string { return branch.DeltaSendingActivated }

// EventType returns the name on the wire.
func (NestedAgentInvoked) EventType() string { return branch.NestedAgentInvoked }

// EventType returns the name on the wire.
func (DocumentProcessed) EventType() string { return branch.DocumentProcessed }

// EventType returns the name on the wire.
func (InternalMessagePrepared) EventType() string { return branch.InternalMessagePrepared }

// EventType returns the name on the wire.
func (RequestEventProcessed) EventType() string { return branch.RequestEventProcessed }

// EventType returns the name on the wire.
func (AgentDecision) EventType() string { return branch.AgentDecision }

// EventType returns the name on the wire.
func (AgentCompletion) EventType() string { return branch.AgentCompletion }

// EventType returns the name on the wire.
func (IterationContextSnapshot) EventType() string { return branch.IterationContextSnapshot }

// EventType returns the name on the wire.
func (MiddlewareStateSnapshot) EventType() string { return branch.MiddlewareStateSnapshot }

// EventType returns the name on the wire.
func (MiddlewareStateChanged) EventType() string { return branch.MiddlewareStateChanged }

// EventType returns the name on the wire.
func (EventDropped) EventType() string { return branch.EventDropped }

// EventType returns the name on the wire.
func (MiddlewarePipelineStart) EventType() string { return branch.MiddlewarePipelineStart }

// EventType returns the name on the wire.
func (MiddlewarePipelineEnd) EventType() string { return branch.MiddlewarePipelineEnd }

// EventType returns the name on the wire.
func (StreamGap) EventType() string { return branch.StreamGap }
