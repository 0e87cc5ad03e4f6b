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

// ofRuns are the types of events from which a list of runs is made. Each has an index
// entry of its own, so that no log is read for them.
var ofRuns = map[string]bool{
	branch.BranchRunStarted: true, branch.BranchRunCompleted: true,
	branch.BackgroundOperationStarted: true, branch.BackgroundOperationStatus: true,
	branch.ToolCallBackgroundTaskStarted: true, branch.ToolCallBackgroundTaskCompleted: true,
	branch.ToolCallBackgroundTaskCancelled: true, branch.ToolCallBackgroundTaskFaulted: true,
}

// RunEvent is an event that a run is shown by. A large one has no data: it is
// read from the log.
type RunEvent struct {
	Seq  uint64     `json:"seq"`
	Type string     `json:"type"`
	Time time.Time  `json:"time"`
	Data branch.Raw `json:"data,omitzero"`
	// Agent, of a run's start, is the identity whose producer took it.
	Agent string `json:"agent,omitzero"`
}

// largeRunEvent is how many bytes of a payload an index entry holds.
const largeRunEvent = 8 << 10

// RunEventsPrefix begins the keys of the entries of a branch's runs, or of one
// run.
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

// runEvent is the entry of an event of a run, under the run that began what it
// is about.
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

// maxRunID bounds a run's id as part of a key; those that servers mint have 32
// digits.
const maxRunID = 128

// openTask is a task of tools that may outlive its run.
type openTask struct {
	Task  uint64    `json:"task"`
	Run   string    `json:"run"`
	Agent string    `json:"agent,omitzero"` // the identity that began it
	At    time.Time `json:"at"`
}

// openTasks is how many tasks are remembered; one that was forgotten ends in the
// run that is active then.
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

// task is a task that is remembered to have begun, or nil.
func (s *State) task(id string) *openTask {
	hash := hashOf(id)
	for i := range s.tasks {
		if s.tasks[i].Task == hash {
			return &s.tasks[i]
		}
	}
	return nil
}

// runOfTask is the run in which a task began, or the active one.
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
