package wire

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/view/branch"
)

// Input is the input that starts a run.
type Input struct {
	Messages      []ChatMessage
	RunConfig     Raw // opaque: only for the producer
	ClientInputID *string
}

// MaxInputMessages is how many messages one input may have: each becomes at least
// two events, and with the two that begin the run a batch has 512.
const MaxInputMessages = 255

// ParseInput reads a body of the inputs route: {text, runConfig}, a USER_TEXT_INPUT
// or a USER_MESSAGES_INPUT. It ignores ids in the body in favour of those in the
// route. The caller bounds the size of the body: an input is not an event, but each
// of its contents becomes one.
func (r *Registry) ParseInput(data []byte, limits Limits) (*Input, error) {
	limits = limits.atLeast(len(data))
	if err := limits.check(data, "input"); err != nil {
		return nil, err
	}
	list, err := membersOf(data)
	if err != nil {
		return nil, err
	}
	if !hasMember(list, "type") {
		return plainInput(list)
	}
	e, err := r.Parse(data, limits)
	if err != nil {
		return nil, err
	}
	return InputOf(e)
}

func hasMember(list []member, name string) bool {
	return slices.ContainsFunc(list, func(m member) bool { return m.name == name })
}

// plainInput reads the convenience form, in which the case of member names does not
// matter.
func plainInput(list []member) (*Input, error) {
	in := &Input{}
	var text *string
	for _, m := range list {
		switch {
		case strings.EqualFold(m.name, "text"):
			if kind := m.value.Kind(); kind != '"' && kind != 'n' {
				return nil, fault.New(fault.Invalid, "`text` is %s; it is a string", KindName(kind))
			}
			if err := json.Unmarshal(m.value, &text); err != nil {
				return nil, invalid("`text`", err)
			}
		case strings.EqualFold(m.name, "runConfig") && m.value.Kind() != 'n':
			if m.value.Kind() != '{' {
				return nil, fault.New(fault.Invalid, "`runConfig` is %s; it is an object", KindName(m.value.Kind()))
			}
			in.RunConfig = m.value.Clone()
		case strings.EqualFold(m.name, "clientInputId"):
			if err := json.Unmarshal(m.value, &in.ClientInputID); err != nil {
				return nil, invalid("`clientInputId`", err)
			}
		}
	}
	if text == nil {
		return nil, fault.New(fault.Invalid, "the input has neither `type` nor `text`; send {\"text\": …} or an event such as %s", branch.UserTextInput)
	}
	return in.withText(*text)
}

func (in *Input) withText(text string) (*Input, error) {
	if strings.TrimSpace(text) == "" {
		return nil, fault.New(fault.Invalid, "`text` is blank; say something")
	}
	in.Messages = []ChatMessage{{Role: branch.RoleUser, Contents: []Content{branch.Text(text)}, ClientInputID: in.ClientInputID}}
	return in, nil
}

// InputOf returns the input in an event.
func InputOf(e *Event) (*Input, error) {
	switch p := e.Payload.(type) {
	case UserTextInput:
		return (&Input{RunConfig: p.RunConfig, ClientInputID: p.ClientInputID}).withText(p.Text)
	case UserMessagesInput:
		if len(p.Messages) == 0 {
			return nil, fault.New(fault.Invalid, "`messages` is empty; send at least one")
		}
		if len(p.Messages) > MaxInputMessages {
			return nil, fault.New(fault.TooLarge, "the input has %d messages; at most %d are taken at once", len(p.Messages), MaxInputMessages)
		}
		for i := range p.Messages {
			p.Messages[i].ClientInputID = p.ClientInputID
		}
		return &Input{Messages: p.Messages, RunConfig: p.RunConfig, ClientInputID: p.ClientInputID}, nil
	}
	return nil, fault.New(fault.Invalid, "%s is not an input; send %s or %s", e.Payload.EventType(), branch.UserTextInput, branch.UserMessagesInput)
}

// Complete gives an id to every message that has none.
func (in *Input) Complete(mint func() string) {
	for i := range in.Messages {
		if in.Messages[i].MessageID == "" {
			in.Messages[i].MessageID = mint()
		}
	}
}

// DefaultReason is the reason of an interruption that gives none.
const DefaultReason = "Interrupted by client."

// ParseInterrupt reads a body of the interrupt route: an INTERRUPTION_REQUEST,
// {reason, eventFlowId}, or nothing.
func (r *Registry) ParseInterrupt(data []byte, limits Limits) (*Event, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return interruption(&Event{Payload: InterruptionRequest{}}), nil
	}
	list, err := membersOf(data)
	if err != nil {
		return nil, err
	}
	if !hasMember(list, "type") {
		data = withType(branch.InterruptionRequest, list, data) // the short form
	}
	e, err := r.Parse(data, limits)
	if err != nil {
		return nil, err
	}
	if _, ok := e.Payload.(InterruptionRequest); !ok {
		return nil, fault.New(fault.Invalid, "%s does not interrupt; send %s", e.Payload.EventType(), branch.InterruptionRequest)
	}
	return interruption(e), nil
}

// withType returns an object without a type as an envelope with one.
func withType(name string, list []member, data []byte) []byte {
	head := []byte(`{"type":"` + name + `"`)
	if len(list) == 0 {
		return append(head, '}')
	}
	return append(append(head, ','), bytes.TrimSpace(data)[1:]...)
}

// interruption fills in the defaults.
func interruption(e *Event) *Event {
	p, _ := e.Payload.(InterruptionRequest)
	if p.Reason == nil || *p.Reason == "" {
		p.Reason = new(DefaultReason)
	}
	p.Source = cmp.Or(p.Source, FromUser)
	e.Payload = p
	return e
}

// ParseFrame reads a client's WebSocket frame: an input, an interruption or a
// response, always as an envelope.
func (r *Registry) ParseFrame(data []byte, limits Limits) (*Event, error) {
	e, err := r.Parse(data, limits.atLeast(len(data)))
	if err != nil {
		return nil, err
	}
	switch e.Payload.(type) {
	case UserTextInput, UserMessagesInput:
		_, err = InputOf(e)
		return e, err
	}
	if err := limits.withDefaults().check(data, "event"); err != nil {
		return nil, err
	}
	if _, ok := e.Payload.(InterruptionRequest); ok {
		return interruption(e), nil
	}
	if _, ok := ResponseOf(e); ok {
		return e, nil
	}
	return nil, fault.New(fault.Invalid, "%s is neither an input nor a response", e.Payload.EventType())
}
