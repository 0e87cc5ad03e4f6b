package hpd

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/message/value"
	"github.com/parley-hub/parley/request"
	"github.com/parley-hub/parley/view/branch"
)

// Written returns the events that show an item of another dialect's channel to
// HPD's clients. Name resolves an identity's id. As is the reader, whose own
// messages are shown as a user's.
func Written(i *channel.Item, kind, as string, name func(id string) string) []wire.Payload {
	speaker := speakerOf(i, name)
	switch i.Kind {
	case channel.ItemMessage:
		return messageEvents(i, speaker, as)
	case channel.ItemToolCall:
		args, err := value.Append(nil, i.Message.Payload.At("parameters"))
		if err != nil {
			args = []byte("{}") // these arguments were parsed before, so they can be encoded
		}
		return []wire.Payload{
			wire.ToolCallStart{CallID: callID(i), Name: i.Message.ToolName(), MessageID: "call-" + callID(i)},
			wire.ToolCallArgs{CallID: callID(i), ArgsJSON: string(args)},
			wire.ToolCallEnd{CallID: callID(i)},
		}
	case channel.ItemToolResult:
		return []wire.Payload{wire.ToolCallResult{CallID: callID(i), Result: wire.ToolResult{Text: new(said(i))}, Name: new(i.Message.ToolName())}}
	case channel.ItemWork:
		return []wire.Payload{workEvent(i, speaker)}
	case channel.ItemRequest:
		return requestEvents(i, speaker)
	case channel.ItemAnswer:
		switch i.Envelope.Type {
		case envelope.TypeRequestExpired:
			return []wire.Payload{wire.AgentRequestExpired{RequestID: i.ID, SourceName: speaker, ExpiredAt: i.Envelope.CreatedAt.UTC()}}
		case envelope.TypeRequestCancelled:
			return []wire.Payload{wire.AgentRequestCancelled{RequestID: i.ID, SourceName: speaker, Reason: &i.Text, CancelledAt: i.Envelope.CreatedAt.UTC()}}
		}
		asked, answered := branch.ClarificationRequest, branch.ClarificationResponse
		if request.Approves(i.Text) || request.Denies(i.Text) {
			asked, answered = branch.PermissionRequest, branch.PermissionResponse
		}
		return []wire.Payload{wire.AgentRequestResolved{
			RequestID: i.ID, SourceName: speaker, RequestEventType: asked, ResponseEventType: answered, ResponderID: new(speaker), ResolvedAt: i.Envelope.CreatedAt.UTC(),
		}}
	case channel.ItemTurn:
		return []wire.Payload{turnEvent(i, kind, speaker, name)}
	case channel.ItemEnd:
		return []wire.Payload{wire.WorkflowDiagnostic{WorkflowName: kind, Level: wire.Information, Source: i.Kind.String(), Message: i.Text}, wire.WorkflowCompleted{WorkflowName: kind, Success: true}}
	case channel.ItemExpectation:
		return diagnostic(kind, wire.Warning, i.Kind.String(), i.Text+" was not met")
	case channel.ItemJoined, channel.ItemLeft:
		text := speaker + " " + i.Kind.String()
		if i.Text != "" {
			text += ": " + i.Text
		}
		return diagnostic(kind, wire.Information, "members", text)
	case channel.ItemDelta:
		return []wire.Payload{wire.TextDelta{MessageID: liveID(i), Text: i.Text}}
	}
	return diagnostic(kind, wire.Information, i.Envelope.Type, i.Text)
}

func diagnostic(kind string, level wire.LogLevel, source, text string) []wire.Payload {
	return []wire.Payload{wire.WorkflowDiagnostic{WorkflowName: kind, Level: level, Source: source, Message: text}}
}

// speakerOf returns the name under which an item's speaker is shown.
func speakerOf(i *channel.Item, name func(string) string) string {
	if i.Name != "" || i.Speaker == "" {
		return i.Name
	}
	if known := name(i.Speaker); known != "" {
		return known
	}
	return i.Speaker
}

func callID(i *channel.Item) string {
	if i.ID != "" {
		return i.ID
	}
	return i.Envelope.ID
}

// said returns a message's content as text.
func said(i *channel.Item) string {
	text, err := channel.SaidText(*i.Message)
	if err != nil {
		text, _ = i.Message.Text()
	}
	return text
}

// liveID returns the id of a message that is being written.
func liveID(i *channel.Item) string { return "live-" + i.Speaker + "-" + i.ID }

// messageEvents returns the events of a whole message. Its id is that of the
// envelope, which is the same in every reading; one envelope may hold several
// messages.
func messageEvents(i *channel.Item, speaker, as string) []wire.Payload {
	id, role := i.Envelope.ID, i.Message.Role
	if role == "" {
		role = branch.RoleAssistant
		if i.Speaker == as {
			role = branch.RoleUser
		}
	}
	started := wire.MessageStarted{MessageID: id, Role: role, CreatedAt: i.Envelope.CreatedAt.UTC()}
	if speaker != "" {
		started.AuthorName = &speaker
	}
	return []wire.Payload{
		started,
		wire.TextMessageStart{MessageID: id, Role: role},
		wire.TextDelta{MessageID: id, Text: said(i)},
		wire.TextMessageEnd{MessageID: id},
		wire.MessageCompleted{MessageID: id},
	}
}

// rename gives the messages after an envelope's first one ids of their own.
func rename(payloads []wire.Payload, n int) []wire.Payload {
	suffix := "/" + strconv.Itoa(n)
	for at, p := range payloads {
		switch p := p.(type) {
		case wire.MessageStarted:
			p.MessageID += suffix
			payloads[at] = p
		case wire.TextMessageStart:
			p.MessageID += suffix
			payloads[at] = p
		case wire.TextDelta:
			p.MessageID += suffix
			payloads[at] = p
		case wire.TextMessageEnd:
			p.MessageID += suffix
			payloads[at] = p
		case wire.MessageCompleted:
			p.MessageID += suffix
			payloads[at] = p
		}
	}
	return payloads
}

// requestEvents returns the events of a request: that it is open, and its question.
func requestEvents(i *channel.Item, asker string) []wire.Payload {
	r := request.Request{Title: i.Text}
	if json.Unmarshal(i.Envelope.Data, &r) != nil {
		r = request.Request{Title: i.Text}
	}
	r.ID = i.ID
	event := wire.Event{Payload: requestEvent(&r, asker)}
	q, _ := wire.RequestOf(&event)
	return []wire.Payload{wire.AgentRequestStarted{
		RequestID: q.RequestID, SourceName: asker, RequestEventType: q.Type, ExpectedResponseEventType: q.Expects,
		ResponsePolicy: q.Policy, Visibility: q.Visibility, StartedAt: i.Envelope.CreatedAt.UTC(),
	}, event.Payload}
}

// workEvent returns a step of work as an event of a background task.
func workEvent(i *channel.Item, speaker string) wire.Payload {
	id, at := callID(i), i.Envelope.CreatedAt.UTC()
	by := wire.Invocation{AgentName: speaker, FunctionCallID: id, FunctionName: "task"}
	switch i.State {
	case channel.WorkSubmitted:
		return wire.ToolCallBackgroundTaskStarted{TaskID: id, Name: i.Text, Invocation: by, StartedAt: at}
	case channel.WorkCompleted:
		return wire.ToolCallBackgroundTaskCompleted{TaskID: id, Name: i.Text, Invocation: by, CompletedAt: at}
	case channel.WorkCanceled:
		return wire.ToolCallBackgroundTaskCancelled{TaskID: id, Name: i.Text, Invocation: by, CancelledAt: at}
	case channel.WorkFailed, channel.WorkExpired:
		return wire.ToolCallBackgroundTaskFaulted{TaskID: id, Name: "task", Invocation: by, FaultedAt: at, ExceptionType: i.State, ErrorMessage: i.Text}
	}
	text := i.State
	if i.Text != "" {
		text += ": " + i.Text
	}
	return wire.ToolProgress{CallID: id, Name: new("task"), Message: &text}
}

// turnEvent returns a turn as an event of a workflow.
func turnEvent(i *channel.Item, kind, speaker string, name func(string) string) wire.Payload {
	var reason *string
	if i.Text != "" {
		reason = &i.Text
	}
	to := speaker
	if i.To != "" {
		to = speakerOf(&channel.Item{Speaker: i.To}, name)
	}
	switch i.State {
	case channel.TurnPassed:
		return wire.WorkflowEdgeTraversed{WorkflowName: kind, FromNodeID: speaker, ToNodeID: to, HasCondition: reason != nil, ConditionDescription: reason}
	case channel.TurnStarted:
		return wire.WorkflowAgentStarted{WorkflowName: kind, AgentID: to, AgentName: &to}
	}
	return wire.WorkflowAgentCompleted{WorkflowName: kind, AgentID: speaker, AgentName: &speaker, Success: true, Progress: 1}
}

// perEnvelope is the maximum number of events for one envelope. An event's number
// is the log's sequence times this, plus the event's place.
const perEnvelope = 1000

// shownEvents returns the numbered events of an envelope. If there are too many,
// the last event says so.
func (f *foreign) shownEvents(items []channel.Item, as string) []wire.Event {
	var events []wire.Event
	messages, left := 0, 0
	for n := range items {
		i := &items[n]
		payloads := Written(i, f.meta.Manifest.Type, as, f.name)
		if i.Kind == channel.ItemMessage {
			if messages++; messages > 1 {
				payloads = rename(payloads, messages)
			}
		}
		if len(events)+len(payloads) >= perEnvelope-1 {
			left++
			continue
		}
		for _, p := range payloads {
			events = append(events, f.event(i, p))
		}
	}
	if left > 0 {
		i := &items[len(items)-1]
		text := fmt.Sprintf("%d more items of this record are not shown", left)
		events = append(events, f.event(i, diagnostic(f.meta.Manifest.Type, wire.Warning, i.Envelope.Type, text)[0]))
	}
	for n := range events {
		e := items[0].Envelope
		if e.ID != "" {
			events[n].EventID = e.ID + "." + strconv.Itoa(n+1)
			events[n].SequenceNumber = e.Seq*perEnvelope + uint64(n+1)
		}
	}
	return events
}

// event returns a payload with the base fields that the envelope has.
func (f *foreign) event(i *channel.Item, p wire.Payload) wire.Event {
	e := i.Envelope
	event := wire.Event{Payload: p}
	event.Scope = wire.Scope{Session: f.meta.ID, Branch: wire.MainBranch}
	event.TraceID = traceOf(e.Trace)
	event.Timestamp = wire.FormatTime(e.CreatedAt)
	if speaker := speakerOf(i, f.name); speaker != "" {
		id := cmp.Or(i.Speaker, speaker)
		event.Metadata = branch.RootAgent(id, speaker)
	}
	return event
}

// traceOf returns a W3C trace id, or that of a traceparent, or "" for any other
// text.
func traceOf(traceparent string) string {
	const from, to = 3, 35
	if len(traceparent) == to-from && !strings.ContainsFunc(traceparent, func(r rune) bool { return !strings.ContainsRune("0123456789abcdef", r) }) {
		return traceparent
	}
	if len(traceparent) < to || traceparent[2] != '-' {
		return ""
	}
	return traceparent[from:to]
}
