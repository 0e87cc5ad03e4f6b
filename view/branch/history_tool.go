package branch

import (
	"github.com/go-json-experiment/json"
)

// tool takes the four events of a call. A call is part of its message once it
// is fully specified; its result is a message of its own.
func (h *History) tool(e Event) {
	var p struct {
		Call    string  `json:"callId"`
		Name    string  `json:"name"`
		Message string  `json:"messageId"`
		Args    *string `json:"argsJson"`
		Result  Result  `json:"result"`
	}
	if !read(e.Data, &p) || p.Call == "" {
		return
	}
	if h.calls == nil {
		h.calls = map[string]*call{}
	}
	switch e.Type {
	case ToolCallStart:
		c := h.call(p.Call)
		c.name, c.message, c.start = p.Name, p.Message, Raw(e.Data)
	case ToolCallArgs:
		h.call(p.Call).args = p.Args
	case ToolCallEnd:
		if c := h.calls[p.Call]; c != nil && c.start != nil {
			delete(h.calls, p.Call)
			h.called(p.Call, c, e)
		}
	case ToolCallResult:
		id := p.Message
		if id == "" {
			id = "tool-" + p.Call
		}
		h.message(id, RoleTool, e).put(Content{
			Type: FunctionResultContent, CallID: new(p.Call), Result: p.Result.value(), event: Raw(e.Data),
		})
	}
}

func (h *History) call(id string) *call {
	if h.calls[id] == nil {
		h.calls[id] = &call{}
	}
	return h.calls[id]
}

func (h *History) called(id string, c *call, e Event) {
	if c.message == "" {
		c.message = "call-" + id
	}
	content := Content{Type: FunctionCallContent, CallID: new(id), Name: new(c.name), event: c.start, args: c.args}
	if c.args != nil && Raw(*c.args).Kind() == '{' && Raw(*c.args).IsValid() {
		content.Arguments = Raw(*c.args)
	}
	h.message(c.message, RoleAssistant, e).put(content)
}

// Result is a result of a tool as events have it.
type Result struct {
	Text    *string `json:"text"`
	JSON    Raw     `json:"json"`
	Content Raw     `json:"content"`
}

// value returns the result as a content has it.
func (r *Result) value() Raw {
	switch {
	case len(r.JSON) > 0 && r.JSON.Kind() != 'n':
		return r.JSON
	case r.Text != nil:
		text, err := json.Marshal(*r.Text)
		if err != nil {
			return nil // a text that is not UTF-8 was never read
		}
		return text
	case len(r.Content) > 0 && r.Content.Kind() != 'n':
		return r.Content
	}
	return nil
}

// Display returns the text that shows a result: its text, else its value as
// JSON, else its contents.
func (r *Result) Display() string {
	switch {
	case r.Text != nil && *r.Text != "":
		return *r.Text
	case len(r.JSON) > 0 && r.JSON.Kind() != 'n':
		return string(r.JSON)
	case len(r.Content) > 0 && r.Content.Kind() != 'n':
		return string(r.Content)
	}
	return ""
}
