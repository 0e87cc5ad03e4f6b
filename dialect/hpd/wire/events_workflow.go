package wire

import (
	"github.com/parley-hub/parley/view/branch"
)

// Events of this file: workflows.
type (
	// WorkflowStarted begins a workflow.
	WorkflowStarted struct {
		WorkflowName string `json:"workflowName" need:"true"`
		NodeCount    int64  `json:"nodeCount"`
		LayerCount   *int64 `json:"layerCount,omitzero"`
		Extra
	}

	// WorkflowLayerStarted begins a layer.
	WorkflowLayerStarted struct {
		WorkflowName string `json:"workflowName" need:"true"`
		LayerIndex   int64  `json:"layerIndex"`
		NodeCount    int64  `json:"nodeCount"`
		Extra
	}

	// WorkflowAgentStarted begins a node.
	WorkflowAgentStarted struct {
		WorkflowName string  `json:"workflowName" need:"true"`
		AgentID      string  `json:"agentId" need:"true"`
		AgentName    *string `json:"agentName,omitzero"`
		LayerIndex   *int64  `json:"layerIndex,omitzero"`
		Extra
	}

	// WorkflowEdgeTraversed follows an edge.
	WorkflowEdgeTraversed struct {
		WorkflowName         string  `json:"workflowName" need:"true"`
		FromNodeID           string  `json:"fromNodeId" need:"true"`
		ToNodeID             string  `json:"toNodeId" need:"true"`
		HasCondition         bool    `json:"hasCondition"`
		ConditionDescription *string `json:"conditionDescription,omitzero"`
		Extra
	}

	// WorkflowAgentCompleted ends a node.
	WorkflowAgentCompleted struct {
		WorkflowName string   `json:"workflowName" need:"true"`
		AgentID      string   `json:"agentId" need:"true"`
		AgentName    *string  `json:"agentName,omitzero"`
		Success      bool     `json:"success"`
		Duration     Duration `json:"duration"`
		Progress     float64  `json:"progress"`
		Outputs      Raw      `json:"outputs,omitzero" object:"true"`
		ErrorMessage *string  `json:"errorMessage,omitzero"`
		Extra
	}

	// WorkflowAgentSkipped leaves a node out.
	WorkflowAgentSkipped struct {
		WorkflowName string `json:"workflowName" need:"true"`
		AgentID      string `json:"agentId" need:"true"`
		Reason       string `json:"reason"`
		Extra
	}

	// WorkflowLayerCompleted ends a layer.
	WorkflowLayerCompleted struct {
		WorkflowName    string   `json:"workflowName" need:"true"`
		LayerIndex      int64    `json:"layerIndex"`
		Duration        Duration `json:"duration"`
		SuccessfulNodes int64    `json:"successfulNodes"`
		Extra
	}

	// WorkflowDiagnostic is a workflow's log line.
	WorkflowDiagnostic struct {
		WorkflowName string   `json:"workflowName" need:"true"`
		Level        LogLevel `json:"level,omitzero"`
		Source       string   `json:"source"`
		Message      string   `json:"message"`
		NodeID       *string  `json:"nodeId,omitzero"`
		Extra
	}

	// WorkflowCompleted ends a workflow.
	WorkflowCompleted struct {
		WorkflowName    string   `json:"workflowName" need:"true"`
		Duration        Duration `json:"duration"`
		SuccessfulNodes int64    `json:"successfulNodes"`
		FailedNodes     int64    `json:"failedNodes"`
		SkippedNodes    int64    `json:"skippedNodes"`
		Success         bool     `json:"success"`
		Extra
	}
)

// EventType returns the name on the wire.
func (WorkflowStarted) EventType() string { return branch.WorkflowStarted }

// EventType returns the name on the wire.
func (WorkflowLayerStarted) EventType() string { return branch.WorkflowLayerStarted }

// EventType returns the name on the wire.
func (WorkflowAgentStarted) EventType() string { return branch.WorkflowAgentStarted }

// EventType returns the name on the wire.
func (WorkflowEdgeTraversed) EventType() string { return branch.WorkflowEdgeTraversed }

// EventType returns the name on the wire.
func (WorkflowAgentCompleted) EventType() string { return branch.WorkflowAgentCompleted }

// EventType returns the name on the wire.
func (WorkflowAgentSkipped) EventType() string { return branch.WorkflowAgentSkipped }

// EventType returns the name on the wire.
func (WorkflowLayerCompleted) EventType() string { return branch.WorkflowLayerCompleted }

// EventType returns the name on the wire.
func (WorkflowDiagnostic) EventType() string { return branch.WorkflowDiagnostic }

// EventType returns the name on the wire.
func (WorkflowCompleted) EventType() string { return branch.WorkflowCompleted }
