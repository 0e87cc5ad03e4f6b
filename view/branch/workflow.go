package branch

import (
	"cmp"
	"maps"
	"slices"
)

// Workflows are the graphs of a stream's workflows, by name.
type Workflows struct {
	byName map[string]*Workflow
}

// Workflow is one workflow as its events draw it.
type Workflow struct {
	Name    string
	State   ItemState
	Nodes   map[string]*WorkflowNode
	Edges   []WorkflowEdge // in the order of their first traversal
	Layers  map[int64]ItemState
	Log     []string // the last diagnostics
	Elapsed string   // the duration, as sent
}

// WorkflowNode is one agent of a workflow.
type WorkflowNode struct {
	ID       string
	Name     string
	State    ItemState
	Layer    int64
	Progress float64
	Text     string // why it failed or was skipped
	Skipped  bool
}

// WorkflowEdge is a traversed edge.
type WorkflowEdge struct {
	From, To  string
	Condition string
}

// workflowLog is how many diagnostics a workflow keeps.
const workflowLog = 256

// Named returns a workflow, or nil.
func (w *Workflows) Named(name string) *Workflow { return w.byName[name] }

// All lists the workflows by name.
func (w *Workflows) All() []*Workflow {
	return slices.SortedFunc(maps.Values(w.byName), func(a, b *Workflow) int { return cmp.Compare(a.Name, b.Name) })
}

func (w *Workflows) apply(e Event) {
	var p struct {
		Name      string  `json:"workflowName"`
		Agent     string  `json:"agentId"`
		AgentName string  `json:"agentName"`
		Layer     *int64  `json:"layerIndex"`
		From      string  `json:"fromNodeId"`
		To        string  `json:"toNodeId"`
		Condition string  `json:"conditionDescription"`
		Success   bool    `json:"success"`
		Progress  float64 `json:"progress"`
		Failure   string  `json:"errorMessage"`
		Why       string  `json:"reason"`
		Says      string  `json:"message"`
		Duration  string  `json:"duration"`
	}
	if !read(e.Data, &p) || p.Name == "" {
		return
	}
	flow := w.flow(p.Name)
	switch e.Type {
	case WorkflowStarted:
		flow.State = Running
	case WorkflowLayerStarted, WorkflowLayerCompleted:
		if p.Layer != nil {
			flow.Layers[*p.Layer] = map[string]ItemState{WorkflowLayerStarted: Running, WorkflowLayerCompleted: Complete}[e.Type]
		}
	case WorkflowAgentStarted, WorkflowAgentCompleted, WorkflowAgentSkipped:
		if p.Agent == "" {
			return
		}
		n := flow.node(p.Agent)
		if p.AgentName != "" {
			n.Name = p.AgentName
		}
		if p.Layer != nil {
			n.Layer = *p.Layer
		}
		switch e.Type {
		case WorkflowAgentStarted:
			n.State = Running
		case WorkflowAgentSkipped:
			n.State, n.Skipped, n.Text = Complete, true, p.Why
		default:
			n.Progress, n.Text = max(n.Progress, p.Progress), p.Failure
			if n.State = Complete; !p.Success {
				n.State = Faulted
			}
		}
	case WorkflowEdgeTraversed:
		flow.traverse(WorkflowEdge{p.From, p.To, p.Condition})
	case WorkflowDiagnostic:
		flow.Log = append(flow.Log, p.Says)
		if extra := len(flow.Log) - workflowLog; extra > 0 {
			flow.Log = slices.Delete(flow.Log, 0, extra)
		}
	case WorkflowCompleted:
		flow.Elapsed = p.Duration
		if flow.State = Complete; !p.Success {
			flow.State = Faulted
		}
	}
}

func (w *Workflows) flow(name string) *Workflow {
	if w.byName == nil {
		w.byName = map[string]*Workflow{}
	}
	if w.byName[name] == nil {
		w.byName[name] = &Workflow{Name: name, State: Running, Nodes: map[string]*WorkflowNode{}, Layers: map[int64]ItemState{}}
	}
	return w.byName[name]
}

func (f *Workflow) node(id string) *WorkflowNode {
	if f.Nodes[id] == nil {
		f.Nodes[id] = &WorkflowNode{ID: id}
	}
	return f.Nodes[id]
}

// traverse records an edge once, with the nodes at its ends.
func (f *Workflow) traverse(edge WorkflowEdge) {
	if edge.From == "" || edge.To == "" {
		return
	}
	f.node(edge.From)
	f.node(edge.To)
	if !slices.ContainsFunc(f.Edges, func(known WorkflowEdge) bool { return known.From == edge.From && known.To == edge.To }) {
		f.Edges = append(f.Edges, edge)
	}
}
