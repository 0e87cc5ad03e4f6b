package runner

import (
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/adapter/turn"
	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/provider"
	"github.com/parley-hub/parley/message/value"
)

// said is what a reply consisted of, to be sent back as it was.
type said []message.Envelope

// conversation makes the canonical messages of a prompt.
func conversation(p *agent.Prompt) ([]message.Envelope, error) {
	var list []message.Envelope
	add := func(e message.Envelope, err error) error {
		list = append(list, e)
		return err
	}
	if p.System != "" {
		if err := add(message.Text(message.RoleSystem, p.System, nil)); err != nil {
			return nil, fault.Wrap(fault.Invalid, err, "the instructions are not a message: %v", err)
		}
	}
	tools := map[string]string{} // by call id
	for i, m := range p.Messages {
		var err error
		switch m.Role {
		case agent.ToolResult:
			// Results of failed tools begin with these words.
			payload := value.New().Set("success", !strings.HasPrefix(m.Text, "Error: "))
			err = add(message.ToolResult(m.Text, tools[m.CallID], payload, value.New().Set("tool_call_id", m.CallID)))
		case agent.Assistant:
			for _, c := range m.Calls {
				tools[c.ID] = c.Name
			}
			var spoken []message.Envelope
			spoken, err = assistant(m)
			list = append(list, spoken...)
		default:
			err = add(message.Text(message.RoleUser, content(m), nil))
		}
		if err != nil {
			return nil, fault.Wrap(fault.Invalid, err, "message %d of the prompt: %v", i, err)
		}
	}
	return list, nil
}

// content returns a message's text, or its view's own content as JSON.
func content(m agent.Message) string {
	if m.Text != "" || m.Content == nil {
		return m.Text
	}
	raw, err := json.Marshal(m.Content, json.Deterministic(true))
	if err != nil {
		return ""
	}
	return string(raw)
}

// assistant returns what the model said: verbatim where it is known, because
// providers want signatures and reasoning back, else made from its parts.
func assistant(m agent.Message) ([]message.Envelope, error) {
	if verbatim, ok := m.Verbatim.(said); ok {
		return renumbered(verbatim, m.Calls), nil
	}
	var list []message.Envelope
	if text := content(m); text != "" {
		e, err := message.Text(message.RoleAssistant, text, nil)
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	for _, c := range m.Calls {
		args, _ := provider.ParseArguments(c.Arguments)
		e, err := message.ToolCall("", c.Name, args, 1, value.New().Set("tool_call_id", c.ID))
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}

// renumbered gives calls the ids that the round knows them by.
func renumbered(verbatim said, calls []turn.Call) []message.Envelope {
	list := make([]message.Envelope, 0, len(verbatim))
	next := 0
	for _, e := range verbatim {
		if e.Type == message.TypeToolCall && next < len(calls) {
			if id := calls[next].ID; id != e.ToolCallID() {
				e.Metadata = e.Metadata.Clone().Set("tool_call_id", id)
			}
			next++
		}
		list = append(list, e)
	}
	return list
}

// offered returns the tools in the provider's form.
func offered(tools []*agent.Tool) ([]provider.Tool, error) {
	list := make([]provider.Tool, 0, len(tools))
	for _, tool := range tools {
		t := provider.Tool{Name: tool.Name, Description: tool.Description}
		if len(tool.Parameters) > 0 {
			v, err := value.Decode(tool.Parameters)
			if err != nil {
				return nil, fault.Wrap(fault.Invalid, err, "the parameters of the tool '%s' are not JSON: %v", tool.Name, err)
			}
			schema, ok := value.AsMap(v)
			if !ok {
				return nil, fault.New(fault.Invalid, "the parameters of the tool '%s' are not an object", tool.Name)
			}
			t.Parameters = schema
		}
		list = append(list, t)
	}
	return list, nil
}

// response turns a reply into the agent's response.
func response(reply provider.Reply, secret Secret) (*agent.Response, error) {
	r := &agent.Response{Verbatim: said(reply.Messages)}
	for _, e := range reply.Messages {
		switch e.Type {
		case message.TypeToolCall:
			args, err := value.Append(nil, e.Payload.At("parameters"))
			if text, ok := e.Payload.At("arguments_text").(string); ok {
				args, err = []byte(text), nil // not JSON: the tool says so to the model
			}
			if err != nil {
				return nil, fault.Wrap(fault.Invalid, err, "the model's call of '%s' cannot be written: %v", e.ToolName(), err)
			}
			r.Calls = append(r.Calls, turn.Call{
				ID: secret.Scrub(e.ToolCallID()), Name: secret.Scrub(e.ToolName()), Arguments: secret.Scrub(string(args)),
			})
		case message.TypeText, message.TypeFinalResult, message.TypeMultimodalPart:
			r.Text += text(e)
		}
	}
	r.Text = secret.Scrub(r.Text) // as a whole: parts of it may be parts of the key
	return r, nil
}

// text returns the readable text of a message.
func text(e message.Envelope) string {
	if s, ok := e.Text(); ok {
		return s
	}
	blocks, _ := value.Values(e.Content)
	all := ""
	for _, b := range blocks {
		if block, ok := value.AsMap(b); ok {
			s, _ := block.At("text").(string)
			all += s
		}
	}
	return all
}
