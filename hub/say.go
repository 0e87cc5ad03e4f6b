package hub

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/value"
)

// Saying is a message for a channel, from a sender that may use another dialect.
type Saying struct {
	Channel string
	Sender  string // an identity's id
	// Message is what is said. The hub gives it an id and a date, if it has none.
	Message message.Envelope
	// Work, if it is not nil, is sent instead of a message: an event of a task of the
	// sender. Adapters without a form for work refuse it.
	Work *envelope.Envelope
	// Key is an idempotency key: another saying of the sender with the same key has the
	// answer of the first, whatever its content.
	Key string
	// Origin is where it came from. An id that the channel, or its home, has received from
	// that dialect before is a repeat, whoever sends it. Hops is how often it had crossed
	// before, and is stored as one more.
	Origin envelope.Origin

	// What the sender chooses besides, as in an envelope.
	Audience  []string
	To        string
	Causation string
	Task      string
	Trace     string
	Priority  envelope.Priority
	Depth     int
}

// Say posts a message to a channel in the form of its adapter. Its envelopes are stored as
// one batch, and checked as AdmitAll checks them: turns, visibility and limits are the
// adapter's. The answer has the id of the last of them, which has the origin's id.
func (h *Hub) Say(ctx context.Context, s Saying, by *Caller) *Pending {
	first := s.envelope(envelope.Envelope{Type: envelope.TypeText, Data: []byte("{}")}, 0, 1)
	p, err := h.newSaying(ctx, &s, first, by)
	if err != nil {
		refusal := refused(err)
		h.tellRefusal(refusal, first)
		return refusal
	}
	pending := p.admit(ctx)
	h.tellRefusal(pending, p.refused)
	return pending
}

func (h *Hub) newSaying(ctx context.Context, s *Saying, first *envelope.Envelope, by *Caller) (*post, error) {
	if s.Origin.Dialect == hubMade || s.Origin.Dialect == "" {
		return nil, fault.New(fault.Invalid, "origin has no dialect; name the dialect in which the message came in")
	}
	if s.Origin.Hops < 0 || s.Origin.Hops >= h.opts.MaxHops {
		return nil, fault.New(fault.Protocol, "%s has crossed between dialects %d times, which is the limit (bridge.max_hops); check for a loop between bridges",
			s.Message.ID, s.Origin.Hops).Because(fault.TooManyHops)
	}
	if err := h.bound(first, by); err != nil {
		return nil, err
	}
	sender, err := h.sender(first, by)
	if err != nil {
		return nil, err
	}
	if err := h.prepare(&s.Message); err != nil {
		return nil, err
	}
	if err := h.nameCause(ctx, s); err != nil {
		return nil, err
	}
	// The arbiter and the checks that do not depend on the channel's state see the first
	// envelope before it is made.
	return &post{hub: h, list: []*envelope.Envelope{first}, by: by, sender: sender, kind: postSay, refused: first, saying: s}, nil
}

// prepare gives a message an id and a date.
func (h *Hub) prepare(msg *message.Envelope) error {
	now := h.now().UTC()
	msg.Type = cmp.Or(msg.Type, message.TypeText)
	if msg.CreatedAt == "" {
		msg.CreatedAt = message.FormatTime(now)
	}
	if msg.ID == "" {
		id, err := h.minter.Mint(now, "")
		if err != nil {
			return unavailable(err)
		}
		msg.ID = id
	}
	return nil
}

// envelope is the nth of some drafts with what the sender chose.
func (s *Saying) envelope(draft envelope.Envelope, n, of int) *envelope.Envelope {
	e := draft.Clone()
	e.Channel, e.Sender = s.Channel, s.Sender
	e.Origin = envelope.Origin{Dialect: s.Origin.Dialect, Hops: s.Origin.Hops + 1}
	last := n == of-1
	if last {
		e.Origin.ID = s.Origin.ID
	}
	e.Audience, e.Trace, e.Depth = slices.Clone(s.Audience), s.Trace, s.Depth
	set := func(field *string, value string) {
		if value != "" {
			*field = value
		}
	}
	set(&e.To, s.To)
	set(&e.Causation, s.Causation)
	set(&e.Task, s.Task)
	if s.Priority != "" {
		e.Priority = s.Priority
	}
	if s.Key != "" {
		e.Key = s.Key
		if !last {
			e.Key += "/" + strconv.Itoa(n)
		}
	}
	return e
}

// sayIn makes the envelopes of what is said, and offers them to the channel, which
// is locked.
func (h *Hub) sayIn(ctx context.Context, ch *loadedChannel, p *post) (*Pending, error) {
	if err := h.accepts(ch, ch.meta, p.list[0]); err != nil {
		return nil, err
	}
	drafts, err := h.drafts(ctx, ch, p.saying)
	if err != nil {
		return nil, err
	}
	if len(drafts) == 1 && drafts[0].Where == channel.Live {
		return &Pending{id: p.saying.Message.ID, done: closedChan}, h.sendLive(ctx, ch, p.saying.envelope(drafts[0].Envelope, 0, 1), nil)
	}
	if len(drafts) == 0 || len(drafts) > MaxAdmitAll {
		return nil, fault.New(fault.TooLarge, "the message becomes %d envelopes; 1 to %d are stored together", len(drafts), MaxAdmitAll)
	}
	list := make([]*envelope.Envelope, len(drafts))
	for i := range drafts {
		list[i] = p.saying.envelope(drafts[i].Envelope, i, len(drafts))
	}
	if _, culprit, err := h.boundAll(list, p.by); err != nil {
		p.refused = culprit
		return nil, err
	}
	p.list = list
	return h.admitAllTo(ctx, ch, p)
}

// drafts are the envelopes of what is said, in the form of the channel's adapter.
func (h *Hub) drafts(ctx context.Context, ch *loadedChannel, s *Saying) ([]channel.Draft, error) {
	if s.Work != nil {
		worker, ok := ch.adapter.(channel.Worker)
		if !ok {
			return nil, fault.New(fault.Protocol, "a %s holds no tasks; say a text", ch.meta.Manifest.Type)
		}
		step := s.Work.Clone()
		step.Sender = s.Sender
		return worker.Work(ch.meta, ch.state, s.Sender, h.workStep(step, h.now().UTC()))
	}
	speaker, ok := ch.adapter.(channel.Speaker)
	if !ok {
		return nil, fault.New(fault.Protocol, "a %s takes no messages from other dialects; use the dialect that opened it", ch.meta.Manifest.Type)
	}
	msg := s.Message
	if err := h.nameSpeaker(ctx, ch, s.Sender, &msg); err != nil {
		return nil, err
	}
	return speaker.Say(ch.meta, ch.state, s.Sender, msg)
}

// nameSpeaker adds to a message the name that its sender has in the channel, or in the one
// that knows its members' names, unless the dialect has set it. If members have no names
// of their own, it is the registered one.
func (h *Hub) nameSpeaker(ctx context.Context, ch *loadedChannel, sender string, msg *message.Envelope) error {
	if channel.SaidName(*msg) != "" {
		return nil
	}
	a, m, s := ch.adapter, ch.meta, ch.state
	from, err := h.namesOf(ctx, a, m)
	if err != nil {
		return fault.IgnoreNotFound(err)
	}
	if from != "" {
		of, err := h.snapshot(ctx, from, 0)
		if err != nil {
			return fault.IgnoreNotFound(err)
		}
		a, m, s = of.adapter, of.meta, of.state
	}
	name := h.Name(sender)
	if namer, ok := a.(channel.MemberNamer); ok {
		if name, ok = namer.MemberName(m, s, sender); !ok {
			return nil
		}
	}
	annotate(msg, "name", name)
	return nil
}

// annotate sets a member of a message's metadata, which may be shared.
func annotate(msg *message.Envelope, key, text string) {
	metadata := value.New()
	if msg.Metadata != nil {
		metadata = msg.Metadata.Clone()
	}
	msg.Metadata = metadata.Set(key, text)
}

// nameCause adds to a message the id that the channel's dialect has for the message that
// it answers, if that is a message of the channel.
func (h *Hub) nameCause(ctx context.Context, s *Saying) error {
	id, _, _ := strings.Cut(s.Causation, ".") // one of several that an envelope is shown as
	if !envelope.ValidID(id) {
		return nil
	}
	a, err := h.keyAdapter(ctx, s.Channel)
	namer, ok := a.(channel.MessageNamer)
	if err != nil || !ok {
		return err
	}
	cause, err := h.findByID(ctx, s.Channel, id)
	if err != nil || cause == nil {
		return err
	}
	if known := namer.MessageID(cause); known != "" {
		annotate(&s.Message, "cause", known)
	}
	return nil
}

// namesOf is the channel that knows the names of another's members, if that does
// not itself: the one that lends them, or the one that it is part of.
func (h *Hub) namesOf(ctx context.Context, a channel.Adapter, m *channel.Metadata) (string, error) {
	if m.MembersOf != "" {
		return m.MembersOf, nil
	}
	if part, ok := a.(channel.Part); ok {
		return h.Named(ctx, HomeOf(m.ID), part.WholeType(), part.WholeName(m))
	}
	return "", nil
}

// originClaim is the claim of the id that something had where it came in; empty:
// it had none.
func originClaim(e *envelope.Envelope) string {
	if e.Origin.ID == "" || e.Origin.Hops == 0 {
		return ""
	}
	scope := HomeOf(e.Channel)
	scope = cmp.Or(scope, e.Channel)
	return schema.OriginClaim(scope, e.Origin.Dialect, e.Origin.ID)
}

// repeatedSaying answers what was said before, by its key or by its origin.
func (p *post) repeatedSaying(ctx context.Context) *Pending {
	h, last := p.hub, p.list[len(p.list)-1]
	var names []string
	if p.saying.Key != "" {
		a, err := h.keyAdapter(ctx, last.Channel)
		if err != nil {
			return refused(err)
		}
		names = append(names, keyClaim(a, last))
	}
	if name := originClaim(last); name != "" {
		names = append(names, name)
	}
	for _, name := range names {
		state, err := h.journal.Claim(ctx, h.shardOf(last.Channel), name)
		if err != nil {
			return refused(unavailable(err))
		}
		answer := h.repeatOf(state, func() *Pending { return p.repost(ctx) }, func(ctx context.Context) (*Pending, error) {
			return h.holderOf(ctx, state.Ordered)
		})
		if answer != nil {
			return answer
		}
	}
	return p.returned(ctx, last)
}

// returned answers what has come back to the channel in which it was said first:
// the id that it had in its origin is one of this log's.
func (p *post) returned(ctx context.Context, e *envelope.Envelope) *Pending {
	if !envelope.ValidID(e.Origin.ID) {
		return nil
	}
	first, err := p.hub.findByID(ctx, e.Channel, e.Origin.ID)
	if err != nil {
		return refused(err)
	}
	if first == nil {
		return nil
	}
	return &Pending{id: first.ID, seq: first.Seq, channel: e.Channel, repeated: true, done: closedChan}
}

// findByID finds an envelope of a history, or nil. Ids of a log ascend.
func (h *Hub) findByID(ctx context.Context, channelID, id string) (*envelope.Envelope, error) {
	length, err := h.Length(ctx, channelID)
	if err != nil {
		return nil, err
	}
	for low, high := uint64(1), length; low <= high; {
		middle := low + (high-low)/2
		e, err := h.envelopeAt(ctx, channelID, middle)
		switch {
		case err != nil:
			return nil, err
		case e.ID == id:
			return e, nil
		case e.ID < id:
			low = middle + 1
		default:
			high = middle - 1
		}
	}
	return nil, nil
}

// holderOf is the answer to whoever took a claim.
func (h *Hub) holderOf(ctx context.Context, first *journal.Claimed) (*Pending, error) {
	page, err := h.journal.Read(ctx, first.Log, journal.ReadOptions{From: first.Seq, To: first.Seq})
	if err != nil {
		return nil, unavailable(err)
	}
	if len(page.Entries) == 0 {
		return nil, fault.New(fault.Unavailable, "what was said first is gone; try again")
	}
	posted, err := readPosted(first.Log, page.Entries[0])
	if err != nil {
		return nil, err
	}
	return &Pending{id: posted.ID, seq: posted.Seq, channel: posted.Channel, repeated: true, done: closedChan}, nil
}

// Onward is the origin under which a dialect forwards an envelope: its own origin, or its
// id.
func Onward(e *envelope.Envelope, dialect string) envelope.Origin {
	if e.Origin.ID != "" && e.Origin.Dialect != hubMade {
		return e.Origin
	}
	return envelope.Origin{Dialect: dialect, ID: e.ID, Hops: e.Origin.Hops}
}

// CameFrom reports whether an envelope came from a dialect, so that it is not sent back
// there.
func CameFrom(e *envelope.Envelope, dialect string) bool { return e.Origin.Dialect == dialect }
