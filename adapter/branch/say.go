package branch

import (
	"slices"
	"time"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/jsonbuf"
	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/view/branch"
)

// Say returns the drafts of a message in a branch. For the agent of the active run
// it is the answer, for any other member a user's message. It begins no run.
func (*Adapter) Say(m *channel.Metadata, s channel.State, sender string, msg message.Envelope) ([]channel.Draft, error) {
	state, ok := s.(*State)
	if !ok {
		return nil, fault.New(fault.Internal, "the branch has no state")
	}
	// Admits accepts every sender, because the dialect marks what it accepts.
	if !slices.Contains(state.Members, sender) {
		return nil, fault.New(fault.AccessDenied, "'%s' is not a member of branch %q; its members post by HPD's routes", sender, state.Branch)
	}
	text, err := channel.SaidText(msg)
	if err != nil {
		return nil, err
	}
	chat := branch.ChatMessage{MessageID: msg.ID, Role: branch.RoleUser, Contents: []branch.Content{branch.Text(text)}}
	if name := channel.SaidName(msg); name != "" {
		chat.AuthorName = &name
	}
	if at, err := time.Parse(time.DateTime, msg.CreatedAt); err == nil {
		chat.CreatedAt = at
	}
	ext := branch.Ext{Server: true}
	answers := state.hasTurn(sender)
	if answers {
		chat.Role, ext = branch.RoleAssistant, branch.Ext{Flow: state.Run.Turn}
	}
	events, err := branch.Expand(&chat)
	if err != nil {
		return nil, err
	}
	if answers { // producers stream: only the server frames a message that was not streamed
		events = events[1 : len(events)-1]
	}
	drafts := make([]channel.Draft, len(events))
	for i, e := range events {
		drafts[i].Envelope = envelope.Envelope{Type: branch.LogType(e.Type), Data: e.Data, Ext: ext.Bytes()}
	}
	return drafts, nil
}

// hasTurn reports whether an identity is the agent of the active run and has the
// turn.
func (s *State) hasTurn(agent string) bool {
	return s.Run != nil && s.Run.Agent == agent && s.Run.Turn != "" && !s.Run.TurnEnded
}

// Work returns the draft of a step of a task as an event of a background task. The
// agent of the active run begins tasks, and ends its own, also after the run.
func (*Adapter) Work(_ *channel.Metadata, s channel.State, sender string, step *channel.Item) ([]channel.Draft, error) {
	state, ok := s.(*State)
	if !ok {
		return nil, fault.New(fault.Internal, "the branch has no state")
	}
	begun := state.task(step.ID)
	if begun != nil && begun.Agent != sender {
		return nil, fault.New(fault.AccessDenied, "task %.100q belongs to another agent", step.ID)
	}
	ext := branch.Ext{Server: true}
	switch {
	case state.hasTurn(sender):
		ext = branch.Ext{Flow: state.Run.Turn}
	case begun == nil || !channel.WorkEnded(step.State):
		return nil, fault.New(fault.Conflict, "no run of '%s' is active on branch %q: nothing is begun there", sender, state.Branch).Because(fault.NoRun)
	}
	name, data, err := workEvent(step, begun)
	if err != nil {
		return nil, err
	}
	draft := channel.Draft{Envelope: envelope.Envelope{Type: branch.LogType(name), Data: data, Ext: ext.Bytes()}}
	if name == branch.ToolProgress {
		draft.Where = channel.Live
	}
	return []channel.Draft{draft}, nil
}

// workEvent returns the event of a step. HPD has no member for a task's result or
// the reason of its cancellation: these are in a member of our own.
func workEvent(step *channel.Item, begun *openTask) (name string, data []byte, err error) {
	at := step.Envelope.CreatedAt.UTC()
	b := (&jsonbuf.Buffer{}).Open('{')
	if step.State == channel.WorkWorking || step.State == channel.WorkNeedsInput {
		data, err = b.Key("callId").String(step.ID).Key("name").String(taskTool).Key("message").String(step.Text).Close('}').Result()
		return branch.ToolProgress, data, err
	}
	title := taskTool
	if step.State == channel.WorkSubmitted && step.Text != "" {
		title = step.Text
	}
	b.Key("taskId").String(step.ID).Key("name").String(title)
	b.Key("invocation").Open('{').Key("agentName").String(step.Name).Key("functionCallId").String(step.ID).Key("functionName").String(taskTool).Close('}')
	remark := func() {
		if step.Text != "" {
			b.Key("parley.text").String(step.Text)
		}
	}
	date := func(member string) { b.Key(member).String(at.Format(time.RFC3339Nano)) }
	switch step.State {
	case channel.WorkSubmitted:
		name = branch.ToolCallBackgroundTaskStarted
		date("startedAt")
	case channel.WorkCompleted:
		name = branch.ToolCallBackgroundTaskCompleted
		date("completedAt")
		took := time.Duration(0)
		if begun != nil {
			took = at.Sub(begun.At)
		}
		b.Key("durationMilliseconds").Int(int(took.Milliseconds()))
		remark()
	case channel.WorkCanceled:
		name = branch.ToolCallBackgroundTaskCancelled
		date("cancelledAt")
		remark()
	default:
		name = branch.ToolCallBackgroundTaskFaulted
		date("faultedAt")
		b.Key("exceptionType").String(step.State).Key("errorMessage").String(step.Text)
	}
	data, err = b.Close('}').Result()
	return name, data, err
}

// taskTool is the name of the function that a task counts as a call of.
const taskTool = "task"
