package branch

import (
	"cmp"
	"time"

	"github.com/parley-hub/parley/internal/jsonbuf"
)

// Condensed is a short form of a part of a branch's log: applied to a History,
// its events have the same effect as all events from From through To. Deltas
// of one message are merged, and events that do not concern messages are left
// out, so that its size is that of the messages, however many deltas they had.
type Condensed struct {
	From   uint64       `json:"from"`
	To     uint64       `json:"to"`
	Events []ShortEvent `json:"events"`
}

// ShortEvent is the part of an event that a History reads.
type ShortEvent struct {
	Type string    `json:"type"`
	Time time.Time `json:"time"`
	Flow string    `json:"flow,omitzero"`
	Data Raw       `json:"data"`
}

// Apply takes the events of a condensed part.
func (c *Condensed) Apply(h *History) {
	for _, e := range c.Events {
		h.Apply(Event{Type: e.Type, Time: e.Time, Flow: e.Flow, Data: e.Data})
	}
}

// ofMessages are the events that a History reads.
var ofMessages = map[string]bool{
	MessageTurnStarted: true, MessageTurnFinished: true, MessageTurnError: true, BranchRunCompleted: true,
	MessageStarted: true, TextMessageStart: true, ReasoningMessageStart: true, TextDelta: true, ReasoningDelta: true, ContentAdded: true,
	ToolCallStart: true, ToolCallArgs: true, ToolCallEnd: true, ToolCallResult: true,
	BranchCreated: true, BranchMetadataUpdated: true, BranchTreeUpdated: true, BranchMiddlewareStateCommitted: true, BranchHistoryCompacted: true,
}

// Condenser makes a condensed part from consecutive events of a log. The zero
// value is empty.
type Condenser struct {
	from, to uint64
	size     int
	list     []condensing
	open     map[string]int // the last deltas of messages, by message
}

// condensing is an event, or the consecutive deltas of a message.
type condensing struct {
	ShortEvent
	message   string
	text      []byte // of deltas
	protected *string
}

// shortRoom is about how many bytes an event has besides its data.
const shortRoom = 128

// Add takes the next event of the log.
func (c *Condenser) Add(e Event) {
	c.from = cmp.Or(c.from, e.Seq)
	c.to = e.Seq
	if !ofMessages[e.Type] {
		return
	}
	if e.Type == TextDelta || e.Type == ReasoningDelta {
		c.delta(e)
		return
	}
	c.open = nil // the next events may concern any message
	c.put(condensing{ShortEvent: ShortEvent{e.Type, e.Time, e.Flow, e.Data}}, len(e.Data))
}

func (c *Condenser) put(x condensing, size int) {
	c.list = append(c.list, x)
	c.size += size + shortRoom
}

func (c *Condenser) delta(e Event) {
	var p struct {
		Message   string  `json:"messageId"`
		Text      string  `json:"text"`
		Protected *string `json:"protectedData"`
	}
	if !read(e.Data, &p) || p.Message == "" {
		return
	}
	if i, ok := c.open[p.Message]; ok && c.list[i].Type == e.Type && c.list[i].protected == nil {
		x := &c.list[i]
		x.text, x.protected = append(x.text, p.Text...), p.Protected
		c.size += len(p.Text)
		return
	}
	if c.open == nil {
		c.open = map[string]int{}
	}
	c.open[p.Message] = len(c.list)
	c.put(condensing{ShortEvent: ShortEvent{e.Type, e.Time, e.Flow, nil}, message: p.Message, text: []byte(p.Text), protected: p.Protected}, len(p.Text))
}

// Size returns about how many bytes the part has so far.
func (c *Condenser) Size() int { return c.size }

// Take returns the part and begins a new one.
func (c *Condenser) Take() (Condensed, error) {
	out := Condensed{From: c.from, To: c.to, Events: make([]ShortEvent, len(c.list))}
	for i := range c.list {
		x := &c.list[i]
		out.Events[i] = x.ShortEvent
		if x.Data != nil {
			continue
		}
		b := (&jsonbuf.Buffer{}).Open('{').Key("messageId").String(x.message).Key("text").String(string(x.text))
		if x.protected != nil {
			b.Key("protectedData").String(*x.protected)
		}
		data, err := b.Close('}').Result()
		if err != nil {
			return Condensed{}, err
		}
		out.Events[i].Data = data
	}
	*c = Condenser{}
	return out, nil
}
