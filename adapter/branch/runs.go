package branch

import (
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/view/branch"
)

// ofRuns are the types of events from which a list of runs is made. Each event has
// an index entry of its own, so that the list needs no log.
var ofRuns = map[string]bool{
	branch.BranchRunStarted: true, branch.BranchRunCompleted: true,
	branch.BackgroundOperationStarted: true, branch.BackgroundOperationStatus: true,
	branch.ToolCallBackgroundTaskStarted: true, branch.ToolCallBackgroundTaskCompleted: true,
	branch.ToolCallBackgroundTaskCancelled: true, branch.ToolCallBackgroundTaskFaulted: true,
}

// RunEvent is an event from which a run is shown. A large event has no data here:
// it is read from the log.
type RunEvent struct {
	Seq  uint64     `json:"seq"`
	Type string     `json:"type"`
	Time time.Time  `json:"time"`
	Data branch.Raw `json:"data,omitzero"`
	// Agent is set for a run's start: the identity whose producer took the run.
	Agent string `json:"agent,omitzero"`
}

// largeRunEvent is the size of the largest payload in an index entry.
const largeRunEvent = 8 << 10

// RunEventsPrefix returns the prefix of the keys of a branch's runs, or of one run.
func RunEventsPrefix(channelID, run string) string {
	prefix := "runs/" + channelID + "/"
	if run != "" {
		prefix += run + "/"
	}
	return prefix
}

// ParseRunEvent reads an index entry.
func ParseRunEvent(data []byte) (RunEvent, error) {
	var e RunEvent
	err := json.Unmarshal(data, &e)
	return e, err
}

// runEvent returns the index entry of an event of a run. The event of a task is
// listed under the run in which the task began.
func runEvent(m *channel.Metadata, s *State, name string, e *envelope.Envelope) []channel.IndexEntry {
	run, _ := member(e.Data, "runtimeRunId")
	if name != branch.BranchRunStarted && name != branch.BranchRunCompleted {
		run = s.runOfTask(e.Data)
	}
	event, ok := branch.FromEnvelope(e)
	if run == "" || !ok || len(run) > maxRunID {
		return nil
	}
	value := RunEvent{Seq: e.Seq, Type: name, Time: event.Time, Agent: branch.ParseExt(e.Ext).Agent}
	if len(e.Data) <= largeRunEvent {
		value.Data = e.Data
	}
	return entry(RunEventsPrefix(m.ID, run)+fmt.Sprintf("%016x", e.Seq), value, false)
}

// maxRunID bounds a run's id as part of a key; ids that servers mint have 32
// digits.
const maxRunID = 128

// openTask is a task of a tool call that may outlive its run.
type openTask struct {
	Task  uint64    `json:"task"`
	Run   string    `json:"run"`
	Agent string    `json:"agent,omitzero"` // the identity that began it
	At    time.Time `json:"at"`
}

// openTasks is how many tasks are kept; a dropped task ends in the run that is
// active then.
const openTasks = 256

func (s *State) taskStarted(e *envelope.Envelope) {
	id, _ := member(e.Data, "taskId")
	if s.Run == nil || id == "" {
		return
	}
	task := openTask{hashOf(id), s.Run.ID, e.Sender, e.CreatedAt}
	s.tasks = slices.DeleteFunc(slices.Clone(s.tasks), func(o openTask) bool { return o.Task == task.Task })
	s.tasks = append(s.tasks, task)
	if extra := len(s.tasks) - openTasks; extra > 0 {
		s.tasks = slices.Delete(s.tasks, 0, extra)
	}
}

// task returns a task that has begun, or nil if it is unknown.
func (s *State) task(id string) *openTask {
	hash := hashOf(id)
	for i := range s.tasks {
		if s.tasks[i].Task == hash {
			return &s.tasks[i]
		}
	}
	return nil
}

// runOfTask returns the run in which a task began, or the active one.
func (s *State) runOfTask(data []byte) string {
	if id, _ := member(data, "taskId"); id != "" {
		if task := s.task(id); task != nil {
			return task.Run
		}
	}
	if s.Run == nil {
		return ""
	}
	return s.Run.ID
}
