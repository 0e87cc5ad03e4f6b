package branch

import (
	"slices"
	"strings"
)

// Prompt is a request that waits for an answer. It is not part of the
// transcript.
type Prompt struct {
	ID   string
	Type string
	Call string // the tool call that waits, if any
	// Text is what is asked: a function's or tool's name, or a question.
	Text    string
	Options []string
}

// prompt takes requests and what ends them. Answers show nothing.
func (t *Transcript) prompt(e Event, p *itemPayload) {
	id := p.Request
	switch {
	case p.Permission != "":
		id = p.Permission
	case p.Continue != "":
		id = p.Continue
	}
	if id == "" {
		return
	}
	switch e.Type {
	case PermissionRequest, ContinuationRequest, ClarificationRequest, ClientToolInvokeRequest:
		made := Prompt{ID: id, Type: e.Type, Call: p.Call, Text: p.Function + p.Tool + p.Question}
		read(p.Options, &made.Options)
		if !slices.ContainsFunc(t.Prompts, func(open Prompt) bool { return open.ID == id }) {
			t.Prompts = append(t.Prompts, made)
		}
	case PermissionApproved, PermissionDenied, AgentRequestResolved, AgentRequestExpired, AgentRequestCancelled:
		t.drop(func(open *Prompt) bool { return open.ID == id })
	}
}

func (t *Transcript) drop(answered func(*Prompt) bool) {
	t.Prompts = slices.DeleteFunc(t.Prompts, func(p Prompt) bool { return answered(&p) })
}

// background takes tasks by their id, and operations by theirs or their run's.
func (t *Transcript) background(e Event, p *itemPayload) {
	if rowOf[e.Type].Family == "background operation" {
		id := p.Operation
		if id == "" {
			id = t.operation()
		}
		it := t.item(OperationItem, id, 0)
		status := operationStatus(p.Status)
		it.Name = status
		if p.StatusText != "" {
			it.Text = p.StatusText
		}
		switch strings.ToLower(status) {
		case "completed":
			it.State = Complete
		case "failed":
			it.State = Faulted
		case "cancelled":
			it.State = WasCancelled
		}
		return
	}
	if p.Task == "" {
		return
	}
	it := t.item(TaskItem, p.Task, 0)
	if p.Name != "" {
		it.Name = p.Name
	}
	switch e.Type {
	case ToolCallBackgroundTaskCompleted:
		it.State = Complete
	case ToolCallBackgroundTaskCancelled:
		it.State = WasCancelled
	case ToolCallBackgroundTaskFaulted:
		it.State, it.Text = Faulted, p.Failure
	}
}

// operation returns the id of the operation that a status without one is about:
// the newest that runs, else the run's.
func (t *Transcript) operation() string {
	for _, it := range slices.Backward(t.Items) {
		if it.Kind == OperationItem && it.State == Running {
			return it.ID
		}
	}
	return t.Run
}

func operationStatus(value Raw) string {
	var wrapped struct {
		Value string `json:"value"`
	}
	if value.Kind() == '{' && read(value, &wrapped) {
		return wrapped.Value
	}
	return stringOf(value)
}

// audio takes spoken output by flow and segment, and a user's recognized
// speech by message.
func (t *Transcript) audio(e Event, p *itemPayload) {
	if rowOf[e.Type].Family == "audio transcript" {
		if p.Message == "" {
			return
		}
		it := t.item(TranscriptItem, p.Message, 0)
		it.Role = RoleUser
		switch e.Type {
		case UserAudioTranscriptDelta:
			it.Text += p.text()
		case UserAudioTranscriptCompleted:
			it.Text, it.State = p.text(), Complete
		case UserAudioTranscriptFailed:
			it.State = Faulted
		}
		return
	}
	if p.Flow == "" {
		return
	}
	it := t.item(AudioItem, p.Flow, p.Segment)
	playback := strings.HasPrefix(e.Type, "ASSISTANT_AUDIO_PLAYBACK_")
	if playback {
		it.Played, it.Heard = it.Played || p.Played, it.Heard || p.Heard
	}
	switch e.Type {
	case AssistantAudioOutputStreamCompleted, AssistantAudioOutputCompleted, AssistantAudioPlaybackCompleted:
		it.State = Complete
	case AssistantAudioOutputSegmentFailed, AssistantAudioOutputFailed, AssistantAudioPlaybackFailed:
		it.State = Faulted
	case AssistantAudioPlaybackInterrupted:
		it.State = WasCancelled
	}
}
