package program

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/adapter/turn"
	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/fault"
)

// version is the version of the turn's form.
const version = 1

// turnForm is what a program reads.
type turnForm struct {
	Version  int           `json:"version"`
	Agent    participant   `json:"agent"`
	Channel  *channelForm  `json:"channel,omitempty"`
	Trigger  *triggerForm  `json:"trigger,omitempty"`
	System   string        `json:"system"`
	Input    string        `json:"input"`
	Messages []messageForm `json:"messages"`
	Tools    []toolForm    `json:"tools"`
}

type participant struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

type channelForm struct {
	ID           string        `json:"id"`
	Type         string        `json:"type"`
	Participants []participant `json:"participants"`
}

type triggerForm struct {
	ID     string      `json:"id"`
	Type   string      `json:"type"`
	Sender participant `json:"sender"`
	Depth  int         `json:"depth"`
}

type messageForm struct {
	Role   agent.Role `json:"role"`
	Text   string     `json:"text"`
	Calls  []callForm `json:"calls,omitempty"`
	CallID string     `json:"call_id,omitempty"`
}

type callForm struct {
	ID        string         `json:"id,omitempty"`
	Name      string         `json:"name"`
	Arguments jsontext.Value `json:"arguments,omitempty"`
}

type toolForm struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Parameters  jsontext.Value `json:"parameters,omitempty"`
}

// encodeTurn writes a prompt as a program reads it, followed by a newline.
func encodeTurn(p *agent.Prompt) ([]byte, error) {
	form := turnForm{Version: version, System: p.System, Input: p.Input(), Messages: []messageForm{}, Tools: []toolForm{}}
	if t := p.Turn; t != nil {
		if t.Agent != nil {
			self := t.Agent.Self()
			form.Agent = participant{self.ID, self.Name}
		}
		if t.Channel != nil {
			form.Channel = &channelForm{ID: t.Channel.ID, Type: t.Channel.Manifest.Type, Participants: []participant{}}
			for _, id := range t.Channel.IDs() {
				form.Channel.Participants = append(form.Channel.Participants, participant{id, t.Name(id)})
			}
		}
		if e := t.Trigger; e != nil {
			form.Trigger = &triggerForm{ID: e.ID, Type: e.Type, Sender: participant{e.Sender, t.Name(e.Sender)}, Depth: e.Depth}
		}
	}
	for _, m := range p.Messages {
		entry := messageForm{Role: m.Role, Text: m.Text, CallID: m.CallID}
		for _, c := range m.Calls {
			entry.Calls = append(entry.Calls, callForm{ID: c.ID, Name: c.Name, Arguments: arguments(c.Arguments)})
		}
		form.Messages = append(form.Messages, entry)
	}
	for _, tool := range p.Tools {
		form.Tools = append(form.Tools, toolForm{Name: tool.Name, Description: tool.Description, Parameters: tool.Parameters})
	}
	raw, err := json.Marshal(form)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the turn cannot be written as JSON: %v", err)
	}
	return append(raw, '\n'), nil
}

// arguments returns a call's arguments where they are an object, as programs
// give them.
func arguments(text string) jsontext.Value {
	if v := jsontext.Value(text); v.IsValid() && v.Kind() == '{' {
		return v
	}
	return nil
}

// answerForm is what a program prints.
type answerForm struct {
	Text    string       `json:"text"`
	Calls   []callForm   `json:"calls"`
	Handoff *handoffForm `json:"handoff"`
	Finish  *finishForm  `json:"finish"`
}

type handoffForm struct {
	Target string `json:"target"`
	Reason string `json:"reason,omitempty"`
}

type finishForm struct {
	Summary string `json:"summary,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// decodeAnswer reads what a program printed. A handoff or finish is a call of
// the tool of that name, after all other calls.
func decodeAnswer(raw []byte, p *agent.Prompt) (*agent.Response, error) {
	var form answerForm
	if err := json.Unmarshal(raw, &form, json.RejectUnknownMembers(true)); err != nil {
		return nil, fault.Wrap(fault.Invalid, err,
			`the program's output is not an answer: %v; print one JSON object such as {"text":"hello"}, or {} to stay silent (parley schema show agent-answer)`, err)
	}
	if form.Handoff != nil && form.Finish != nil {
		return nil, fault.New(fault.Invalid, "the answer has both handoff and finish; a turn ends with one of them")
	}
	response := &agent.Response{Text: form.Text}
	for i, c := range form.Calls {
		if c.Name == "" {
			return nil, fault.New(fault.Invalid, "calls[%d] has no name", i)
		}
		if kind := c.Arguments.Kind(); len(c.Arguments) > 0 && kind != '{' {
			return nil, fault.New(fault.Invalid, "the arguments of calls[%d] are not an object", i)
		}
		response.Calls = append(response.Calls, turn.Call{ID: c.ID, Name: c.Name, Arguments: string(c.Arguments)})
	}
	if form.Handoff != nil {
		return route(response, p, agent.HandoffTool, form.Handoff)
	}
	if form.Finish != nil {
		return route(response, p, agent.FinishTool, form.Finish)
	}
	return response, nil
}

func route(response *agent.Response, p *agent.Prompt, tool string, args any) (*agent.Response, error) {
	for _, known := range p.Tools {
		if known.Name != tool {
			continue
		}
		raw, err := json.Marshal(args)
		if err != nil {
			return nil, fault.Wrap(fault.Invalid, err, "%s: %v", tool, err)
		}
		response.Calls = append(response.Calls, turn.Call{Name: tool, Arguments: string(raw)})
		return response, nil
	}
	return nil, fault.New(fault.Invalid, "the answer has %s, which only a workflow channel takes; answer with text", tool)
}
