package view

import (
	"slices"
	"strings"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/value"
	"github.com/parley-hub/parley/view/branch"
)

// Messages projects a log onto a participant as canonical messages: its own
// messages are the assistant's, those of others are the user's under their
// names. Its own handoffs and tasks are tool calls with their results, those of
// others are described as text, and context variables are the system's. For a
// branch they are the messages that its events add up to, in their own roles;
// for a transcript those that it holds. They contain nothing that the
// participant may not see.
func Messages(in Input) []message.Envelope {
	p := projector{in: in, packets: rendersPackets(&in), out: []message.Envelope{}}
	for _, e := range in.Log {
		if in.visible(e) {
			p.add(e)
		}
	}
	p.branchMessages()
	return p.out
}

// rendersPackets reports whether the channel's adapter treats packets as
// speech; most do not.
func rendersPackets(in *Input) bool {
	_, ok := in.render(&envelope.Envelope{Type: envelope.TypePacket, Data: []byte(`{"body":"x"}`)})
	return ok
}

type projector struct {
	in      Input
	packets bool
	turn    int // how often somebody has spoken
	branch  branch.History
	reader  channel.ItemReader // set when one was needed
	out     []message.Envelope
}

func (p *projector) add(e *envelope.Envelope) {
	if event, ok := branch.FromEnvelope(e); ok {
		p.branch.Apply(event)
		return
	}
	switch {
	case e.Type == envelope.TypePacket:
		if p.packets {
			p.turn++
			p.packet(e)
		}
	case e.Type == envelope.TypeContextSet:
		p.context(e, "", object(e.Data))
	case envelope.IsTask(e.Type):
		p.task(e)
	default:
		if text, ok := p.in.render(e); ok {
			p.turn++
			p.say(e, text, nil)
			return
		}
		p.canonical(e)
	}
}

// canonical adds messages that the log holds in canonical form, unchanged.
func (p *projector) canonical(e *envelope.Envelope) {
	if p.reader == nil {
		p.reader = p.in.reader()
	}
	at := len(p.out)
	for _, i := range p.reader.Read(nil, e) {
		if s := i.Replaces; s != nil && s.From >= 0 && s.From <= len(p.out) && s.To <= len(p.out) {
			to := s.To
			if to < s.From {
				to = len(p.out)
			}
			p.out, at = slices.Delete(p.out, s.From, to), s.From
		}
		if i.Message != nil && i.Message.Role != "" {
			p.out = slices.Insert(p.out, at, *i.Message)
			at++
		}
	}
}

// object decodes a payload; one that is not an object is empty.
func object(data []byte) *value.Map {
	v, err := value.Decode(data)
	if err != nil {
		return nil
	}
	m, _ := v.(*value.Map)
	return m
}

func (p *projector) isOwn(e *envelope.Envelope) bool { return e.Sender == p.in.Participant }

// role returns the speaker's role, from the participant's point of view.
func (p *projector) role(e *envelope.Envelope) string {
	if p.isOwn(e) {
		return message.RoleAssistant
	}
	return message.RoleUser
}

// put adds a message of an envelope. part distinguishes several messages of one
// envelope.
func (p *projector) put(e *envelope.Envelope, part string, m message.Envelope) {
	if m.Payload == nil {
		m.Payload = value.New()
	}
	if m.Metadata == nil {
		m.Metadata = value.New()
	}
	m.Metadata.
		Set("name", p.in.name(e.Sender)).
		Set("sender_id", e.Sender).
		Set("event_type", e.Type)
	if e.Audience != nil {
		m.Metadata.Set("audience", value.Of(e.Audience))
	}
	m.Metadata.SetText("causation_id", e.Causation).SetText("trace_id", e.Trace)
	if e.Priority == envelope.Urgent {
		m.Metadata.Set("priority", string(e.Priority))
	}
	if e.ID != "" {
		m.ID = e.ID + part
	}
	if !e.CreatedAt.IsZero() {
		m.CreatedAt = message.FormatTime(e.CreatedAt)
	}
	p.out = append(p.out, m)
}

func (p *projector) say(e *envelope.Envelope, text string, metadata *value.Map) {
	p.put(e, "", message.Envelope{Type: message.TypeText, Role: p.role(e), Content: text, Metadata: metadata})
}

// call adds a call of the participant's own, and its answer if it is known.
func (p *projector) call(e *envelope.Envelope, id, tool string, parameters *value.Map) {
	p.put(e, "/call", message.Envelope{
		Type: message.TypeToolCall, Role: message.RoleAssistant, Content: "",
		Payload: value.New().
			Set("tool_name", tool).
			Set("parameters", parameters).
			Set("turn", value.Int(max(1, p.turn))),
		Metadata: value.New().Set("tool_call_id", id),
	})
}

func (p *projector) answer(e *envelope.Envelope, id, tool, text string, success bool, result any) {
	payload := value.New().Set("success", success).Set("tool_name", tool)
	switch {
	case !success:
		payload.Set("error", text)
	case result != nil:
		payload.Set("result", result)
	}
	p.put(e, "/result", message.Envelope{
		Type: message.TypeToolResult, Role: message.RoleUser, Content: text, Payload: payload,
		Metadata: value.New().Set("tool_call_id", id),
	})
}

// context describes variables that were set and deleted, in the system's role,
// because nobody said them.
func (p *projector) context(e *envelope.Envelope, part string, updates *value.Map) {
	set, _ := updates.At("set").(*value.Map)
	deleted, _ := updates.At("delete").([]any)
	if set.Len() == 0 && len(deleted) == 0 {
		return
	}
	var lines []string
	for key, v := range set.All() {
		lines = append(lines, key+" = "+jsonText(v))
	}
	for _, key := range deleted {
		lines = append(lines, value.Text(key)+" is deleted")
	}
	changed := value.New()
	if set.Len() > 0 {
		changed.Set("set", set)
	}
	if len(deleted) > 0 {
		changed.Set("delete", deleted)
	}
	p.put(e, part, message.Envelope{
		Type: message.TypeText, Role: message.RoleSystem,
		Content:  "[Context] " + strings.Join(lines, "; "),
		Metadata: value.New().Set("context", changed),
	})
}

func jsonText(v any) string {
	text, err := value.Append(nil, v)
	if err != nil {
		return "" // what was read is always writable
	}
	return string(text)
}
