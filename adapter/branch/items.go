package branch

import (
	"bytes"
	"strconv"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/value"
	"github.com/parley-hub/parley/view/branch"
)

// ItemReader returns a reader that combines events into items. It holds the
// messages and calls that are not finished.
func (*Adapter) ItemReader(*channel.Metadata) channel.ItemReader { return &itemReader{} }

// maxUnfinished is how many messages, and how many calls, a reader holds. Above it,
// the oldest message counts as finished and the oldest call is dropped.
const maxUnfinished = 256

type itemReader struct {
	texts []*unfinished
	calls []*unfinished
}

// unfinished is a text or a call between its start and its end.
type unfinished struct {
	id, role, author string
	parts            int    // finished texts of the message
	started          bool   // a text of the message is being written
	text             []byte // or the arguments of a call
}

func find(list []*unfinished, id string) *unfinished {
	for _, u := range list {
		if u.id == id {
			return u
		}
	}
	return nil
}

func without(list []*unfinished, gone *unfinished) []*unfinished {
	kept := list[:0]
	for _, u := range list {
		if u != gone {
			kept = append(kept, u)
		}
	}
	return kept
}

// payload has the members that a reader uses of the events of messages.
type payload struct {
	Message string         `json:"messageId"`
	Role    string         `json:"role"`
	Author  string         `json:"authorName"`
	Text    string         `json:"text"`
	Call    string         `json:"callId"`
	Name    string         `json:"name"`
	Args    string         `json:"argsJson"`
	Result  branch.Result  `json:"result"`
	Content branch.Content `json:"content"`
	Error   string         `json:"message"`
	Task    string         `json:"taskId"`
	Failure string         `json:"errorMessage"`
	Remark  string         `json:"parley.text"`
}

// Read appends the items of the next event.
func (r *itemReader) Read(dst []channel.Item, e *envelope.Envelope) []channel.Item {
	name, ok := branch.WireType(e.Type)
	if !ok {
		return channel.ReadOther(dst, e)
	}
	item := channel.Item{Envelope: e, Speaker: e.Sender}
	var p payload
	if name == branch.TextDelta && p.plainDelta(e.Data) {
		return append(dst, r.delta(item, &p))
	}
	if json.Unmarshal(e.Data, &p) != nil {
		return append(dst, item)
	}
	switch name {
	case branch.MessageStarted, branch.TextMessageStart:
		if p.Message == "" {
			return append(dst, item)
		}
		return r.begin(dst, e, name, &p)
	case branch.TextDelta:
		item = r.delta(item, &p)
	case branch.TextMessageEnd:
		if u := find(r.texts, p.Message); u != nil && u.started {
			return append(dst, u.finish(e))
		}
		return dst
	case branch.MessageCompleted:
		u := find(r.texts, p.Message)
		if u == nil {
			return dst
		}
		r.texts = without(r.texts, u)
		if u.started {
			dst = append(dst, u.finish(e))
		}
		return dst
	case branch.ContentAdded:
		u := r.textOf(p.Message)
		item.Kind, item.ID, item.Name = channel.ItemMessage, u.partID(), u.author
		item.Message = &message.Envelope{Type: message.TypeText, Role: u.role, Content: contentText(&p.Content)}
		u.parts++
	case branch.ToolCallStart:
		r.calls = appendBounded(without(r.calls, find(r.calls, p.Call)), &unfinished{id: p.Call, author: p.Name})
		return dst
	case branch.ToolCallArgs:
		if c := find(r.calls, p.Call); c != nil {
			c.text = []byte(p.Args)
		}
		return dst
	case branch.ToolCallEnd:
		c := find(r.calls, p.Call)
		if c == nil {
			return append(dst, item)
		}
		item.Kind, item.ID, item.Message = channel.ItemToolCall, p.Call, callOf(c)
	case branch.ToolCallResult:
		tool := p.Name
		if c := find(r.calls, p.Call); c != nil {
			tool, r.calls = c.author, without(r.calls, c)
		}
		item.Kind, item.ID, item.Message = channel.ItemToolResult, p.Call, resultOf(p.Call, tool, &p.Result)
	default:
		return r.other(dst, item, name, &p)
	}
	return append(dst, item)
}

var (
	deltaHead   = []byte(`{"text":"`)
	deltaMiddle = []byte(`","messageId":"`)
	deltaTail   = []byte(`"}`)
)

// plainDelta reads a delta in the form that the dialect writes, which nearly all
// events of a branch have. It returns false if the delta must be decoded.
func (p *payload) plainDelta(data []byte) bool {
	rest, head := bytes.CutPrefix(data, deltaHead)
	text, rest, middle := bytes.Cut(rest, deltaMiddle)
	id, tail := bytes.CutSuffix(rest, deltaTail)
	if !head || !middle || !tail || !channel.WithoutEscapes(text) || !channel.WithoutEscapes(id) {
		return false
	}
	p.Text, p.Message = string(text), string(id)
	return true
}

// delta adds a piece to its message.
func (r *itemReader) delta(item channel.Item, p *payload) channel.Item {
	u := r.textOf(p.Message)
	item.Kind, item.ID, item.Name, item.Text, item.At = channel.ItemDelta, u.partID(), u.author, p.Text, len(u.text)
	u.text, u.started = append(u.text, p.Text...), true
	return item
}

// other reads events that are not pieces of messages.
func (r *itemReader) other(dst []channel.Item, item channel.Item, name string, p *payload) []channel.Item {
	switch name {
	case branch.BranchRunStarted:
		item.Kind, item.State = channel.ItemTurn, channel.TurnStarted
		if ext := branch.ParseExt(item.Envelope.Ext); ext.Asked { // otherwise a producer has the turn
			item.To = ext.Agent
		}
	case branch.BranchRunCompleted:
		// An unfinished text of an ended run is complete.
		for _, u := range r.texts {
			if u.started {
				dst = append(dst, u.finish(item.Envelope))
			}
		}
		r.texts, r.calls = nil, nil
		item.Kind, item.State = channel.ItemTurn, channel.TurnFinished
	case branch.MessageTurnError:
		item.Kind, item.Message = channel.ItemMessage, &message.Envelope{Type: message.TypeError, Role: message.RoleAssistant, Content: p.Error}
	case branch.ToolCallBackgroundTaskStarted:
		item.Kind, item.ID, item.State, item.Text = channel.ItemWork, p.Task, channel.WorkSubmitted, p.Name
	case branch.ToolCallBackgroundTaskCompleted:
		item.Kind, item.ID, item.State, item.Text = channel.ItemWork, p.Task, channel.WorkCompleted, p.Remark
	case branch.ToolCallBackgroundTaskCancelled:
		item.Kind, item.ID, item.State, item.Text = channel.ItemWork, p.Task, channel.WorkCanceled, p.Remark
	case branch.ToolCallBackgroundTaskFaulted:
		item.Kind, item.ID, item.State, item.Text = channel.ItemWork, p.Task, channel.WorkFailed, p.Failure
	case branch.MessageTurnStarted, branch.MessageTurnFinished, branch.ReasoningMessageStart, branch.ReasoningDelta, branch.ReasoningMessageEnd:
		return dst // part of a run that is shown, or not a message
	}
	return append(dst, item)
}

func (r *itemReader) begin(dst []channel.Item, e *envelope.Envelope, name string, p *payload) []channel.Item {
	u := r.textOf(p.Message)
	if p.Role != "" {
		u.role = p.Role
	}
	if p.Author != "" {
		u.author = p.Author
	}
	if name == branch.TextMessageStart {
		if u.started {
			dst = append(dst, u.finish(e))
		}
		u.started = true
	}
	return dst
}

// textOf returns the message with an id. It begins the message if necessary.
func (r *itemReader) textOf(id string) *unfinished {
	u := find(r.texts, id)
	if u == nil {
		u = &unfinished{id: id, role: branch.RoleAssistant}
		r.texts = appendBounded(r.texts, u)
	}
	return u
}

// appendBounded adds an entry, and drops the oldest one above the bound.
func appendBounded(list []*unfinished, u *unfinished) []*unfinished {
	if len(list) >= maxUnfinished {
		list = append(list[:0], list[1:]...)
	}
	return append(list, u)
}

// partID returns an id that distinguishes the texts of one message.
func (u *unfinished) partID() string {
	if u.parts == 0 {
		return u.id
	}
	return u.id + "/" + strconv.Itoa(u.parts)
}

// finish returns the text so far as a message.
func (u *unfinished) finish(e *envelope.Envelope) channel.Item {
	item := channel.Item{
		Kind: channel.ItemMessage, Envelope: e, Speaker: e.Sender, Name: u.author, ID: u.partID(),
		Message: &message.Envelope{Type: message.TypeText, Role: u.role, Content: string(u.text)},
	}
	u.text, u.started = nil, false
	u.parts++
	return item
}

// callOf returns a call as a canonical message.
func callOf(c *unfinished) *message.Envelope {
	parameters := value.New()
	if v, err := value.Decode(c.text); err == nil {
		parameters = value.MapOrEmpty(v)
	}
	return &message.Envelope{
		Type: message.TypeToolCall, Role: message.RoleAssistant, Content: "",
		Payload:  value.New().Set("tool_name", c.author).Set("parameters", parameters),
		Metadata: value.New().Set("tool_call_id", c.id),
	}
}

// resultOf returns a result as a canonical message.
func resultOf(call, tool string, r *branch.Result) *message.Envelope {
	return &message.Envelope{
		Type: message.TypeToolResult, Role: message.RoleTool, Content: r.Display(),
		Payload:  value.New().Set("tool_name", tool).Set("success", true),
		Metadata: value.New().Set("tool_call_id", call),
	}
}

// contentText returns a content as text; a content that is not text is named.
func contentText(c *branch.Content) string {
	if c.Text != nil {
		return *c.Text
	}
	parts := []string{c.Type}
	for _, s := range []*string{c.MediaType, c.URI} {
		if s != nil {
			parts = append(parts, *s)
		}
	}
	return channel.Attachment(parts...)
}
