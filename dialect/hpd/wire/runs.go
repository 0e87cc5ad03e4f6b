package wire

import (
	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/view/branch"
)

// Runs projects a branch's history onto its runs, in the order of their start.
// The zero value is empty.
type Runs struct {
	Scope  Scope
	runs   []*Run
	active *Run
	ofTask map[string]*Run
}

// Apply applies the next event of the history.
func (r *Runs) Apply(e branch.Event) {
	switch e.Type {
	case branch.BranchRunStarted:
		var p BranchRunStarted
		if json.Unmarshal(e.Data, &p) != nil {
			return
		}
		if p.StartedAt.IsZero() {
			p.StartedAt = e.Time
		}
		r.active = &Run{
			RuntimeRunID: p.RuntimeRunID, AgentID: p.AgentID, SessionID: r.Scope.Session, BranchID: r.Scope.Branch,
			Status: RunActive, StartedAt: p.StartedAt, BackgroundTasks: []BackgroundTask{},
		}
		r.runs = append(r.runs, r.active)
	case branch.BranchRunCompleted:
		r.completed(e)
	case branch.BackgroundOperationStarted:
		var p BackgroundOperationStarted
		if r.active != nil && json.Unmarshal(e.Data, &p) == nil {
			r.active.BackgroundOperation = &BackgroundOperation{Status: p.Status, OperationID: p.OperationID, ContinuationToken: &p.ContinuationToken}
		}
	case branch.BackgroundOperationStatus:
		var p BackgroundOperationStatus
		if r.active != nil && json.Unmarshal(e.Data, &p) == nil {
			r.operation(&p)
		}
	case branch.ToolCallBackgroundTaskStarted, branch.ToolCallBackgroundTaskCompleted, branch.ToolCallBackgroundTaskCancelled, branch.ToolCallBackgroundTaskFaulted:
		r.task(e)
	}
}

// completed derives the status: failed if there is an error, otherwise cancelled if
// the event says so.
func (r *Runs) completed(e branch.Event) {
	var p BranchRunCompleted
	if r.active == nil || json.Unmarshal(e.Data, &p) != nil || p.RuntimeRunID != r.active.RuntimeRunID {
		return
	}
	run := r.active
	r.active = nil
	run.CompletedAt = e.Time
	switch {
	case p.ErrorType != nil:
		run.Status = RunFailed
		run.Error = &RunError{Type: p.ErrorType, Message: p.ErrorMessage}
	case p.Cancelled:
		run.Status = RunCancelled
	default:
		run.Status = RunCompleted
	}
}

func (r *Runs) operation(p *BackgroundOperationStatus) {
	latest := r.active.BackgroundOperation
	if latest == nil {
		latest = &BackgroundOperation{}
		r.active.BackgroundOperation = latest
	}
	latest.Status = p.Status
	if p.StatusMessage != nil {
		latest.StatusMessage = p.StatusMessage
	}
	if p.ContinuationToken != nil {
		latest.ContinuationToken = p.ContinuationToken
	}
}

// task applies an event of a task, also one that comes after its run.
func (r *Runs) task(e branch.Event) {
	var p ToolCallBackgroundTaskFaulted // all four begin alike
	if json.Unmarshal(e.Data, &p) != nil || p.TaskID == "" {
		return
	}
	run := r.ofTask[p.TaskID]
	if run == nil {
		if run = r.active; run == nil {
			return
		}
		if r.ofTask == nil {
			r.ofTask = map[string]*Run{}
		}
		r.ofTask[p.TaskID] = run
		run.BackgroundTasks = append(run.BackgroundTasks, BackgroundTask{TaskID: p.TaskID, Name: p.Name})
	}
	for i := range run.BackgroundTasks {
		if task := &run.BackgroundTasks[i]; task.TaskID == p.TaskID {
			task.apply(e, &p)
		}
	}
}

func (t *BackgroundTask) apply(e branch.Event, faulted *ToolCallBackgroundTaskFaulted) {
	switch e.Type {
	case branch.ToolCallBackgroundTaskStarted:
		var p ToolCallBackgroundTaskStarted
		if json.Unmarshal(e.Data, &p) == nil {
			t.Status, t.StartedAt = "started", p.StartedAt
		}
	case branch.ToolCallBackgroundTaskCompleted:
		var p ToolCallBackgroundTaskCompleted
		if json.Unmarshal(e.Data, &p) == nil {
			t.Status, t.CompletedAt = "completed", p.CompletedAt
		}
	case branch.ToolCallBackgroundTaskCancelled:
		var p ToolCallBackgroundTaskCancelled
		if json.Unmarshal(e.Data, &p) == nil {
			t.Status, t.CancelledAt = "cancelled", p.CancelledAt
		}
	case branch.ToolCallBackgroundTaskFaulted:
		t.Status, t.FaultedAt = "faulted", faulted.FaultedAt
		t.ErrorType, t.ErrorMessage = &faulted.ExceptionType, &faulted.ErrorMessage
	}
}

// All lists the runs; the active one, if any, is the last.
func (r *Runs) All() []Run {
	all := make([]Run, len(r.runs))
	for i, run := range r.runs {
		all[i] = *run
	}
	return all
}
