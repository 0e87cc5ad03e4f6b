package branch

import (
	"cmp"
	"slices"
)

// Transcript is what people are shown of a branch: blocks of text, reasoning,
// tools and notices in the order of their first appearance, open prompts, and
// whether a run is active. It takes live and stored events alike; one that is
// in both is processed once. The zero value is empty.
type Transcript struct {
	Items   []*Item
	Prompts []Prompt
	// Run is the active run, if any: what a busy indicator shows.
	Run string
	// Failed is the last turn's error while no other turn has begun.
	Failed string

	Flows  Workflows
	Agents Agents
	Spans  Spans

	byKey map[itemKey]*Item
	seq   uint64 // of the last stored event
	turn  int    // counts turns
	call  int    // counts calls of the model
}

// ItemKind is what an item shows.
type ItemKind uint8

// Kinds of items.
const (
	MessageItem ItemKind = iota + 1
	ReasoningItem
	ToolItem
	ErrorItem
	NoticeItem
	TaskItem
	OperationItem
	AudioItem
	TranscriptItem // a user's speech, as recognized
)

var itemKindNames = []string{"", "message", "reasoning", "tool", "error", "notice", "task", "operation", "audio", "transcript"}

func (k ItemKind) String() string { return nameOf(itemKindNames, int(k)) }

// ItemState is how far an item is.
type ItemState uint8

// States of items.
const (
	Running ItemState = iota + 1
	Complete
	Incomplete // its turn ended before it did
	WasCancelled
	Stale // a retry made it void
	Faulted
)

var itemStateNames = []string{"", "running", "complete", "incomplete", "cancelled", "stale", "failed"}

func (s ItemState) String() string { return nameOf(itemStateNames, int(s)) }

// Item is one block of a transcript.
type Item struct {
	Kind  ItemKind
	ID    string // of the message, call, task, operation or audio flow
	State ItemState
	Role  string
	Text  string // of an error or notice, and a tool's result as text
	Name  string // of a tool or task
	// Message is the message that a tool call belongs to.
	Message string
	// Args is a tool's arguments: JSON as sent, also where it does not parse.
	Args     string
	Contents []Content // of a message, besides its text
	Segment  int64     // of audio
	Played   bool
	Heard    bool

	turn, call int
}

type itemKey struct {
	kind ItemKind
	id   string
	part int64
}

// Apply takes the next event. Unknown types and odd payloads change nothing.
func (t *Transcript) Apply(e Event) {
	if e.Seq > 0 {
		if e.Seq <= t.seq {
			return // seen before, stored or live
		}
		t.seq = e.Seq
	}
	var p itemPayload
	if !read(e.Data, &p) {
		return
	}
	t.Agents.add(e.Agent)
	t.Spans.add(e, &p)
	switch row, known := rowOf[e.Type]; {
	case !known:
	case row.Family == "text", row.Family == "reasoning":
		t.stream(e, &p)
	case row.Family == "tool call":
		t.tool(e, &p)
	case row.Family == "workflow":
		t.Flows.apply(e)
	case row.Family == "background task", row.Family == "background operation":
		t.background(e, &p)
	case row.Family == "assistant audio", row.Family == "audio transcript":
		t.audio(e, &p)
	case row.Channel == Interactive, row.Family == "request lifecycle":
		t.prompt(e, &p)
	default:
		t.lifecycle(e, &p)
	}
}

var rowOf = NewTable().rows

// itemPayload is every member that a transcript reads.
type itemPayload struct {
	Message     string  `json:"messageId"`
	Role        string  `json:"role"`
	Text        Raw     `json:"text"`
	Content     Raw     `json:"content"`
	Call        string  `json:"callId"`
	Name        string  `json:"name"`
	Args        *string `json:"argsJson"`
	Result      Raw     `json:"result"`
	Run         string  `json:"runtimeRunId"`
	Cancelled   bool    `json:"cancelled"`
	Says        Raw     `json:"message"`
	Status      Raw     `json:"status"`
	Strategy    string  `json:"strategy"`
	Why         string  `json:"reason"`
	Task        string  `json:"taskId"`
	Operation   string  `json:"operationId"`
	StatusText  string  `json:"statusMessage"`
	Failure     string  `json:"errorMessage"`
	Flow        string  `json:"outputFlowId"`
	Segment     int64   `json:"segmentSequence"`
	Played      bool    `json:"played"`
	Heard       bool    `json:"heardByUser"`
	Permission  string  `json:"permissionId"`
	Continue    string  `json:"continuationId"`
	Request     string  `json:"requestId"`
	Function    string  `json:"functionName"`
	Tool        string  `json:"toolName"`
	Question    string  `json:"question"`
	Options     Raw     `json:"options"`
	Compacted   Raw     `json:"durableCompactedMessageIds"`
	Replacement Raw     `json:"replacementMessages"`
}

func (p *itemPayload) text() string { return stringOf(p.Text) }

func stringOf(value Raw) string {
	var text string
	if value.Kind() != '"' || !read(value, &text) {
		return ""
	}
	return text
}

// item finds an item or adds it at the end.
func (t *Transcript) item(kind ItemKind, id string, part int64) *Item {
	key := itemKey{kind, id, part}
	if found := t.byKey[key]; found != nil {
		return found
	}
	if t.byKey == nil {
		t.byKey = map[itemKey]*Item{}
	}
	made := &Item{Kind: kind, ID: id, State: Running, Segment: part, turn: t.turn, call: t.call}
	t.byKey[key] = made
	t.Items = append(t.Items, made)
	return made
}

func (t *Transcript) find(kind ItemKind, id string) *Item {
	return t.byKey[itemKey{kind: kind, id: id}]
}

// note adds an item that is not changed later.
func (t *Transcript) note(kind ItemKind, text string) {
	t.Items = append(t.Items, &Item{Kind: kind, State: Complete, Text: text, turn: t.turn, call: t.call})
}

// stream takes text and reasoning, each in blocks of its own.
func (t *Transcript) stream(e Event, p *itemPayload) {
	kind := MessageItem
	if rowOf[e.Type].Family == "reasoning" {
		kind = ReasoningItem
	}
	if p.Message == "" {
		return
	}
	switch e.Type {
	case TextMessageStart, ReasoningMessageStart:
		it := t.item(kind, p.Message, 0)
		if it.State == Stale || it.State == Running && it.Text != "" {
			it.Text = "" // opened again before it was closed: another attempt
		}
		it.State, it.turn, it.call = Running, t.turn, t.call
		if p.Role != "" {
			it.Role = p.Role
		}
	case TextDelta, ReasoningDelta:
		it := t.item(kind, p.Message, 0)
		if it.State == Stale {
			it.Text, it.State = "", Running
		}
		it.Role = cmp.Or(it.Role, RoleAssistant)
		it.Text += p.text()
	case TextMessageEnd, ReasoningMessageEnd:
		if it := t.find(kind, p.Message); it != nil && it.State == Running {
			it.State = Complete
		}
	}
}

// tool takes a call's events in whatever order they come.
func (t *Transcript) tool(e Event, p *itemPayload) {
	if p.Call == "" {
		return
	}
	switch e.Type {
	case ToolCallStart:
		it := t.item(ToolItem, p.Call, 0)
		it.Name, it.Message = p.Name, p.Message
	case ToolCallArgs:
		if p.Args != nil {
			t.toolItem(p.Call).Args = *p.Args
		}
	case ToolCallResult:
		it := t.toolItem(p.Call)
		if it.Name == "" || it.Name == unnamedTool && p.Name != "" {
			it.Name = p.Name
		}
		var result Result
		read(p.Result, &result)
		it.Text, it.State = result.Display(), Complete
		t.drop(func(open *Prompt) bool { return open.Call == p.Call })
	}
}

// unnamedTool is the name of a call whose start was not seen.
const unnamedTool = "tool"

func (t *Transcript) toolItem(call string) *Item {
	it := t.item(ToolItem, call, 0)
	it.Name = cmp.Or(it.Name, unnamedTool)
	return it
}

// lifecycle takes runs, turns, whole messages, retries and notices.
func (t *Transcript) lifecycle(e Event, p *itemPayload) {
	switch e.Type {
	case BranchRunStarted:
		t.Run = p.Run
	case BranchRunCompleted:
		t.Run = ""
		state := Incomplete
		if p.Cancelled {
			state = WasCancelled
		}
		t.closeOpen(state)
		t.Prompts = nil
	case MessageTurnStarted:
		t.turn++
		t.call++
		t.Failed = ""
	case AgentTurnStarted:
		t.call++
	case MessageTurnError:
		t.Failed = stringOf(p.Says)
		t.note(ErrorItem, t.Failed)
		t.closeOpen(Incomplete)
	case ModelCallRetry:
		t.retry()
	case Compaction:
		t.note(NoticeItem, notice(p))
	case MessageStarted:
		if p.Message != "" {
			it := t.item(MessageItem, p.Message, 0)
			it.State = Running
			if p.Role != "" {
				it.Role = p.Role
			}
		}
	case MessageCompleted:
		if it := t.find(MessageItem, p.Message); it != nil {
			it.State = Complete
		}
	case ContentAdded:
		var c Content
		if p.Message != "" && read(p.Content, &c) {
			it := t.item(MessageItem, p.Message, 0)
			it.Role = cmp.Or(it.Role, RoleAssistant)
			it.Contents = append(it.Contents, c)
		}
	case BranchHistoryCompacted:
		t.compact(p)
	}
}

// notice says what compaction did.
func notice(p *itemPayload) string {
	text := "Compaction " + stringOf(p.Status)
	if p.Strategy != "" {
		text += " (" + p.Strategy + ")"
	}
	if p.Why != "" {
		text += ": " + p.Why
	}
	return text
}

// retry voids what the failed call of the model has shown.
func (t *Transcript) retry() {
	for _, it := range t.Items {
		streamed := it.Kind == ReasoningItem || it.Kind == MessageItem && it.Role != RoleUser
		if streamed && it.turn == t.turn && (it.State == Running || it.call == t.call && it.State == Complete) {
			it.Text, it.State = "", Stale
		}
	}
	t.call++
}

// closeOpen ends all items that still run.
func (t *Transcript) closeOpen(state ItemState) {
	for _, it := range t.Items {
		if it.State == Running && it.Kind != TaskItem {
			it.State = state
		}
	}
}

// compact removes messages with all that belongs to them and shows the
// replacements where the first of them was.
func (t *Transcript) compact(p *itemPayload) {
	var ids []string
	var replacements []ChatMessage
	if !read(p.Compacted, &ids) {
		return
	}
	read(p.Replacement, &replacements)
	removed := map[string]bool{}
	for _, id := range ids {
		removed[id] = id != ""
	}
	gone := func(it *Item) bool {
		switch it.Kind {
		case MessageItem, ReasoningItem:
			return removed[it.ID]
		case ToolItem:
			return removed[it.Message] || removed["tool-"+it.ID]
		}
		return false
	}
	if !slices.ContainsFunc(ids, func(id string) bool { return id != "" }) {
		return
	}
	at := slices.IndexFunc(t.Items, gone)
	if at < 0 {
		at = len(t.Items)
	}
	kept := slices.Clone(t.Items[:at])
	for i := range replacements {
		m := replacement(&replacements[i], "", i)
		it := &Item{Kind: MessageItem, ID: m.id, Role: m.role, State: Complete, turn: t.turn, call: t.call}
		for _, part := range m.parts {
			if part.content.Type == TextContent {
				it.Text += part.content.text()
			} else {
				it.Contents = append(it.Contents, part.content)
			}
		}
		kept = append(kept, it)
	}
	for _, it := range t.Items[at:] {
		if !gone(it) {
			kept = append(kept, it)
		}
	}
	t.Items = kept
	for key, it := range t.byKey {
		if gone(it) {
			delete(t.byKey, key)
		}
	}
}
