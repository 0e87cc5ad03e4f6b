package work

import (
	"strings"
	"unicode/utf8"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/pmap"
)

// Default limits.
const (
	// DefaultMaxWork is how much work one conversation takes.
	DefaultMaxWork = 10_000
	// MaxSpeakers bounds how many distinct speakers are counted.
	MaxSpeakers = 100_000
	// MaxText is how much of a title or preview is kept; the log has the rest.
	MaxText = 64
)

// Place is where a conversation is.
type Place struct {
	Workspace, Channel, ID string
}

// Conversation is the folded state of a thread or direct room. It is immutable.
type Conversation struct {
	Place    Place
	Messages int
	Root     string // id of the first message
	Title    string // its text, truncated
	Opener   string // its peer
	OpenedAt int64

	// Resolved is when the conversation was opened without a message; 0: it was
	// opened by its first one.
	Resolved int64

	Last     Mark // the newest message by its sender's clock
	Previous Mark // what Last was before the newest record
	Preview  string

	// Public are messages without addressee: how many of each type, and the newest of
	// them.
	Public        [4]int
	LastPublic    Mark
	PublicPreview string

	Speakers pmap.Map[struct{}]
	Works    pmap.Map[Work]
	OpenWork int

	// About the newest record: whether it opened its work, whether it is its sender's
	// first, and whether lists showed the conversation before it. They and Previous are
	// not in snapshots.
	Opened, NewSpeaker, WasListed bool

	// The states of the newest record's work before and after it; both None if it has
	// no work. They are not in snapshots either.
	Was, Now State

	// newest is the newest record without its texts, so that it is not decoded again;
	// nil: not known.
	newest *head
}

// head is a message without its texts, and the id of its record.
type head struct {
	record string
	Message
}

// readNewest returns a record without its texts, if it is the newest that was folded.
func (c *Conversation) readNewest(e *envelope.Envelope) (Message, bool) {
	if c == nil || c.newest == nil || c.newest.record != e.ID || e.ID == "" {
		return Message{}, false
	}
	return c.newest.Message, true
}

// Head is ReadHead that does not decode the newest record of a conversation again. The
// conversation may be nil.
func Head(c *Conversation, e *envelope.Envelope) (Message, bool) {
	if m, ok := c.readNewest(e); ok {
		return m, true
	}
	return ReadHead(e)
}

// listed reports whether lists show the conversation.
func (c *Conversation) listed() bool { return c.Messages > 0 || c.Resolved > 0 }

// Resolve opens a conversation without a message; an open one stays as it is.
func (c *Conversation) Resolve(at int64) *Conversation {
	next := *c
	next.begin(c)
	if !c.listed() {
		next.Resolved, next.OpenedAt, next.Last = at, at, Mark{TS: at}
	}
	return &next
}

// begin clears what is about the previous record.
func (c *Conversation) begin(before *Conversation) {
	c.Previous, c.Opened, c.NewSpeaker, c.WasListed = before.Last, false, false, before.listed()
	c.Was, c.Now, c.newest = None, None, nil
}

// Mark places a message in the order of times and ids.
type Mark struct {
	TS int64
	ID string
}

func (m Mark) before(other Mark) bool {
	return m.TS < other.TS || m.TS == other.TS && m.ID < other.ID
}

// Check checks a message against the conversation before its fold.
func (c *Conversation) Check(m *Message, maxWork int) error {
	if c.Messages == 0 && !m.Opens() {
		return refuse(fault.WorkUnknown, "a conversation begins with a say or a capability")
	}
	if m.Work == "" {
		if !m.Opens() {
			return fault.New(fault.Invalid, "receipts and traces are about work; `work_id` is missing")
		}
		return nil
	}
	known, _ := c.Works.Get(m.Work)
	if _, err := Judge(known, m); err != nil {
		return err
	}
	if known.State == None && c.Works.Len() >= maxWork {
		return fault.New(fault.TooLarge, "this conversation has %d pieces of work, which is the limit; open another, or raise agh.limits.work", c.Works.Len())
	}
	return nil
}

// Fold adds a message. It is total: work that Check would refuse does not change.
func (c *Conversation) Fold(m *Message) *Conversation {
	next := *c
	mark := Mark{m.TS, m.ID}
	next.begin(c)
	if c.Messages == 0 {
		next.Root, next.Title, next.Opener, next.Preview = m.ID, Cut(m.Preview), m.From, Cut(m.Preview)
	}
	if !c.listed() {
		next.OpenedAt = m.TS
	}
	if !c.listed() || c.Last.before(mark) {
		next.Last, next.Preview = mark, Cut(m.Preview)
	}
	next.Messages++
	if m.To == "" {
		if next.publicCount() == 0 || c.LastPublic.before(mark) {
			next.LastPublic, next.PublicPreview = mark, Cut(m.Preview)
		}
		next.Public[ordinal(m.Type)]++
	}
	if _, known := c.Speakers.Get(m.From); !known && c.Speakers.Len() < MaxSpeakers {
		next.Speakers, next.NewSpeaker = c.Speakers.Set(m.From, struct{}{}), true
	}
	next.foldWork(m)
	return &next
}

func (c *Conversation) foldWork(m *Message) {
	if m.Work == "" {
		return
	}
	before, _ := c.Works.Get(m.Work)
	after, err := Judge(before, m)
	if err != nil {
		return
	}
	c.Works = c.Works.Set(m.Work, after)
	c.Was, c.Now = before.State, after.State
	if before.State == None {
		c.OpenWork++
		c.Opened = true
	}
	if after.State.Terminal() {
		c.OpenWork--
	}
}

// publicCount returns how many messages have no addressee.
func (c *Conversation) publicCount() int {
	return c.Public[0] + c.Public[1] + c.Public[2] + c.Public[3]
}

// types in the order of Conversation.Public.
var types = [...]string{TypeSay, TypeCapability, TypeReceipt, TypeTrace}

func ordinal(eventType string) int {
	for i, t := range types {
		if t == eventType {
			return i
		}
	}
	return 0
}

// Cut keeps the beginning of a text, whole characters only. It copies, so that
// a long text is not kept alive.
func Cut(s string) string {
	if len(s) <= MaxText {
		return s
	}
	end := MaxText
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return strings.Clone(s[:end])
}
