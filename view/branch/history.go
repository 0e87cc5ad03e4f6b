package branch

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
)

// TurnProperty is the additional property that names a message's turn.
const TurnProperty = "hpd.messageTurnId"

// History projects a branch's durable events onto its messages and fields. The
// zero value is an empty branch. Events are applied in the order of the log.
type History struct {
	Fields Fields
	Tree   *Tree
	// State is the middleware state as it was last committed.
	State map[string]string
	// Compacted is when the messages were last compacted.
	Compacted time.Time

	order []*entry
	byID  map[string]*entry
	calls map[string]*call
	turn  string
}

// Fields describe a branch to people; an update replaces all four.
type Fields struct {
	Name        *string  `json:"name,omitzero"`
	Description *string  `json:"description,omitzero"`
	Tags        []string `json:"tags,omitzero"`
	Metadata    Raw      `json:"branchMetadata,omitzero"`
}

// entry is a message that grows.
type entry struct {
	id, role, turn string
	author         *string
	created        time.Time
	input          *string
	properties     Raw
	parts          []*part
	open           *part // the next delta of its kind is added to it
}

// put adds a content that does not grow.
func (m *entry) put(c Content) {
	m.parts, m.open = append(m.parts, &part{content: c}), nil
}

// part is a content that grows.
type part struct {
	content Content
	text    []byte
}

// call is a tool call between its start and its end.
type call struct {
	message string
	name    string
	args    *string
	start   Raw
}

// Apply takes the next event. Events that do not concern messages, and
// payloads that cannot be read, change nothing.
func (h *History) Apply(e Event) {
	switch e.Type {
	case MessageTurnStarted:
		var p struct {
			Turn string `json:"messageTurnId"`
		}
		if read(e.Data, &p) {
			h.turn = p.Turn
		}
	case MessageTurnFinished, MessageTurnError, BranchRunCompleted:
		h.turn = ""
	case MessageStarted:
		h.started(e)
	case TextMessageStart, ReasoningMessageStart:
		var p streamStart
		if read(e.Data, &p) && p.Message != "" {
			h.message(p.Message, p.Role, e)
		}
	case TextDelta, ReasoningDelta:
		h.delta(e)
	case ContentAdded:
		var p struct {
			Message string  `json:"messageId"`
			Content Content `json:"content"`
		}
		if read(e.Data, &p) && p.Message != "" {
			h.message(p.Message, RoleAssistant, e).put(p.Content)
		}
	case ToolCallStart, ToolCallArgs, ToolCallEnd, ToolCallResult:
		h.tool(e)
	case BranchCreated, BranchMetadataUpdated:
		var f Fields
		if read(e.Data, &f) {
			h.Fields = f
		}
	case BranchTreeUpdated:
		var t Tree
		if read(e.Data, &t) {
			h.Tree = &t
		}
	case BranchMiddlewareStateCommitted:
		var p struct {
			State map[string]string `json:"state"`
		}
		if read(e.Data, &p) {
			h.State = p.State
		}
	case BranchHistoryCompacted:
		h.compact(e)
	}
}

// read decodes a payload; members without a field are skipped.
func read(data []byte, into any) bool { return json.Unmarshal(data, into) == nil }

type streamStart struct {
	Message string `json:"messageId"`
	Role    string `json:"role"`
}

// message finds a message or adds it at the end.
func (h *History) message(id, role string, e Event) *entry {
	if m := h.byID[id]; m != nil {
		return m
	}
	role = cmp.Or(role, RoleAssistant)
	m := &entry{id: id, role: role, turn: h.turnOf(e), created: e.Time}
	h.add(m)
	return m
}

func (h *History) add(m *entry) {
	if h.byID == nil {
		h.byID = map[string]*entry{}
	}
	h.byID[m.id] = m
	h.order = append(h.order, m)
}

func (h *History) turnOf(e Event) string {
	if e.Flow != "" {
		return e.Flow
	}
	return h.turn
}

func (h *History) started(e Event) {
	var p struct {
		Message string    `json:"messageId"`
		Role    string    `json:"role"`
		Author  *string   `json:"authorName"`
		Created time.Time `json:"createdAt"`
		Input   *string   `json:"clientInputId"`
		Props   Raw       `json:"additionalProperties"`
	}
	if !read(e.Data, &p) || p.Message == "" {
		return
	}
	m := h.message(p.Message, p.Role, e)
	m.author, m.input, m.properties = p.Author, p.Input, p.Props
	if p.Role != "" {
		m.role = p.Role
	}
	if !p.Created.IsZero() {
		m.created = p.Created
	}
}

func (h *History) delta(e Event) {
	var p struct {
		Message   string  `json:"messageId"`
		Text      string  `json:"text"`
		Protected *string `json:"protectedData"`
	}
	if !read(e.Data, &p) || p.Message == "" {
		return
	}
	m := h.message(p.Message, RoleAssistant, e)
	kind := TextContent
	if e.Type == ReasoningDelta {
		kind = ReasoningContent
	}
	if m.open == nil || m.open.content.Type != kind || m.open.content.ProtectedData != nil {
		fresh := &part{content: Content{Type: kind}}
		if kind == TextContent && m.role == RoleUser && !m.hasText() {
			// A person's text precedes its attachments.
			m.parts = slices.Insert(m.parts, 0, fresh)
		} else {
			m.parts = append(m.parts, fresh)
		}
		m.open = fresh
	}
	m.open.text = append(m.open.text, p.Text...)
	m.open.content.ProtectedData = p.Protected
}

func (m *entry) hasText() bool {
	return slices.ContainsFunc(m.parts, func(p *part) bool { return p.content.Type == TextContent })
}

// Count returns how many messages there are.
func (h *History) Count() int { return len(h.order) }

// Messages returns the messages so far, oldest first.
func (h *History) Messages() []ChatMessage {
	all := make([]ChatMessage, len(h.order))
	for i, m := range h.order {
		all[i] = m.chat()
	}
	return all
}

// Through returns the messages up to and including one, whose index is
// returned; it returns false if there is no such message.
func (h *History) Through(messageID string) (messages []ChatMessage, index int, ok bool) {
	index = slices.IndexFunc(h.order, func(m *entry) bool { return m.id == messageID })
	if index < 0 {
		return nil, 0, false
	}
	for _, m := range h.order[:index+1] {
		messages = append(messages, m.chat())
	}
	return messages, index, true
}

func (m *entry) chat() ChatMessage {
	out := ChatMessage{
		MessageID: m.id, Role: m.role, AuthorName: m.author, CreatedAt: m.created, ClientInputID: m.input,
		Contents: make([]Content, len(m.parts)), Properties: withTurn(m.properties, m.turn),
	}
	for i, p := range m.parts {
		out.Contents[i] = p.content
		if p.content.Type == TextContent && p.content.Text == nil || p.content.Type == ReasoningContent {
			text := p.content.text() + string(p.text)
			out.Contents[i].Text = &text
		}
	}
	return out
}

// withTurn adds the turn to a message's properties, unless they name one.
func withTurn(properties Raw, turn string) Raw {
	if turn == "" {
		return properties
	}
	members := map[string]Raw{}
	if len(properties) > 0 && json.Unmarshal(properties, &members) != nil {
		return properties
	}
	if _, has := members[TurnProperty]; !has {
		members[TurnProperty] = Raw(strconv.Quote(turn))
	}
	out, err := json.Marshal(members, json.Deterministic(true))
	if err != nil {
		return properties
	}
	return out
}
