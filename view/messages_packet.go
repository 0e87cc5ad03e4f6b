package view

import (
	"strings"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/value"
)

// The kinds of a packet's routing that are more than text.
const (
	routingHandoff = "handoff"
	routingFinish  = "finish"
)

// packet adds what was said, then where the turn went, then what was set.
func (p *projector) packet(e *envelope.Envelope) {
	data := object(e.Data)
	routing, _ := data.At("routing").(*value.Map)
	switch routing.At("kind") {
	case routingHandoff:
		p.handoff(e, data, routing)
	case routingFinish:
		p.finish(e, data, routing)
	default:
		p.body(e, data)
	}
	updates, _ := data.At("context_updates").(*value.Map)
	p.context(e, "/context", updates)
}

// body adds the text beside the routing, if there is any.
func (p *projector) body(e *envelope.Envelope, data *value.Map) {
	if text := str(data, "body"); text != "" {
		p.say(e, text, nil)
	}
}

// handoff adds a handoff: as a call if the participant made it, else as text.
func (p *projector) handoff(e *envelope.Envelope, data, routing *value.Map) {
	tool, target := str(routing, "tool"), str(routing, "target")
	if p.isOwn(e) && tool != "" {
		p.body(e, data)
		parameters := value.New()
		setIf(parameters, "reason", str(routing, "reason"))
		done := "Handed off."
		if target != "" {
			parameters.Set("target", p.in.name(target))
			done = "Handed off to " + p.in.name(target) + "."
		}
		id := callID(e)
		p.call(e, id, tool, parameters)
		p.answer(e, id, tool, done, true, nil)
		return
	}
	details := value.New()
	for _, key := range []string{"tool", "reason", "target"} {
		setIf(details, key, str(routing, key))
	}
	// The adapter's own text for packets, if it has one.
	text, ok := p.in.render(e)
	if !ok {
		text = strings.TrimSpace("[Handed off via " + tool + "] " + str(routing, "reason"))
	}
	p.say(e, text, value.New().Set("handoff", details))
}

// finish adds the end of a conversation: the participant's own is its final result.
func (p *projector) finish(e *envelope.Envelope, data, routing *value.Map) {
	details := value.New()
	for _, key := range []string{"tool", "reason", "summary"} {
		setIf(details, key, str(routing, key))
	}
	text := str(data, "body")
	if text == "" {
		text = str(routing, "summary")
	}
	if text == "" {
		text = strings.TrimSpace("[Finished] " + str(routing, "reason"))
	}
	if p.isOwn(e) {
		p.put(e, "", message.Envelope{
			Type: message.TypeFinalResult, Role: message.RoleAssistant, Content: text, Payload: details,
		})
		return
	}
	p.say(e, text, value.New().Set("finish", details))
}

// callID returns the id of the call that an envelope stands for.
func callID(e *envelope.Envelope) string {
	if e.ID == "" {
		return ""
	}
	return "call_" + e.ID
}

func str(m *value.Map, key string) string {
	s, _ := m.At(key).(string)
	return s
}

func setIf(m *value.Map, key, text string) {
	if text != "" {
		m.Set(key, text)
	}
}
