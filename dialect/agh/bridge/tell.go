package bridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/internal/jsonbuf"
)

// member is a peer that channels name.
type member struct {
	b  *Bridge
	id string // of its identity
	Peer

	mu     sync.Mutex
	inbox  *hub.Inbox // while it is told
	ended  func()
	resume time.Time // when what it says of itself was last compared

	rooms   map[string]bool // direct rooms in which it said something
	hearing bool
}

// endpoint describes where a peer reads.
type endpoint struct {
	*hub.Inbox
	name string
}

// Describe says that it reads over AGH.
func (e endpoint) Describe() (dialect, address string) { return wire.Dialect, e.name }

// came begins to tell a peer that is present.
func (m *member) came() {
	if _, present := m.b.cfg.Network.Where(m.Peer); !present {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	due := m.b.cfg.Now().Sub(m.resume) >= m.b.cfg.Resumes
	if due {
		m.resume = m.b.cfg.Now()
		m.b.run(func() { m.introduce(m.b.ctx) })
	}
	if m.inbox != nil {
		return
	}
	inbox := hub.NewInbox(m.b.cfg.Waiting)
	ctx, cancel := context.WithCancel(m.b.ctx)
	m.inbox, m.ended = inbox, cancel
	m.b.run(func() { m.serve(ctx, inbox) })
}

// end stops telling a peer.
func (m *member) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended != nil {
		m.ended()
	}
}

// serve tells a peer what the hub delivers to it, until it is gone. What it was not
// told is delivered again when it comes back.
func (m *member) serve(ctx context.Context, inbox *hub.Inbox) {
	h := m.b.cfg.Hub
	at := endpoint{inbox, m.Name()}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := h.Attach(ctx, m.id, at, hub.Attachment{Replay: true}); err != nil {
			inbox.CutOff(err)
		}
	}()
	err := m.missed(ctx)
	for err == nil {
		var n *hub.Notice
		if n, err = inbox.Next(ctx); err == nil {
			err = m.take(ctx, n)
		}
	}
	inbox.Close()
	h.Unbind(at, m.id)
	<-done
	h.Unbind(at, m.id) // the attachment may have come after the first one
	if !errors.Is(err, errAbsent) && ctx.Err() == nil {
		m.b.cfg.Log.Warn("an AGH peer is told later", "peer", m.Name(), "error", err)
		rest(ctx)
	}
	m.mu.Lock()
	m.ended()
	m.inbox, m.ended = nil, nil
	m.mu.Unlock()
	if _, present := m.b.cfg.Network.Where(m.Peer); m.b.ctx.Err() == nil && present && m.b.member(m.Peer) == m {
		m.came()
	}
}

// mostEnded is how many of the newest channels are looked through for what a peer was
// not told before they ended.
const mostEnded = 100

// missed tells a peer the rest of channels that ended while it was away, which the
// hub does not deliver any more. A peer cannot read the channel's log over AGH.
func (m *member) missed(ctx context.Context) error {
	h := m.b.cfg.Hub
	ended, _, err := h.Channels(ctx, hub.ListOptions{
		Agent: m.id, Newest: true, Limit: mostEnded, Dialect: reader, States: []channel.Lifecycle{channel.Closed, channel.Expired},
	})
	if err != nil {
		return err
	}
	for _, meta := range slices.Backward(ended) { // in their order
		if err := fault.IgnoreNotFound(m.rest(ctx, meta)); err != nil {
			return err
		}
	}
	return nil
}

// rest tells a peer what follows its cursor in a channel.
func (m *member) rest(ctx context.Context, meta *channel.Metadata) error {
	h := m.b.cfg.Hub
	cursor, err := h.ReaderCursor(ctx, m.id, "", meta.ID)
	if err != nil {
		return err
	}
	from := uint64(1)
	if cursor != "" {
		at, err := h.SequenceOf(ctx, meta.ID, cursor)
		if err != nil {
			return err
		}
		from = at + 1
	}
	sees, err := h.Sight(ctx, meta.ID, []string{m.id})
	if err != nil {
		return err
	}
	for e, err := range h.Log(ctx, meta.ID, from, 0) {
		if err != nil {
			return err
		}
		if e.Sender == m.id || !sees(e) {
			continue
		}
		if err := m.take(ctx, &hub.Notice{Envelope: e, Channel: meta, Recipient: m.id, Replayed: true}); err != nil {
			return err
		}
	}
	return nil
}

// take tells the peer of one envelope and moves its cursor.
func (m *member) take(ctx context.Context, n *hub.Notice) error {
	if n.Dialect != "" || n.Live || n.Side {
		return nil
	}
	e := n.Envelope
	var err error
	switch e.Type {
	case envelope.TypeInvite:
		err = m.invited(ctx, n)
	case envelope.TypeClosed:
		err = m.b.cfg.Network.Cancel(ctx, m.Peer, workPrefix(e.Channel), cmp.Or(channel.TextMember(e.Data, "reason"), "closed"))
	default:
		err = m.text(ctx, n)
	}
	if err != nil {
		return err
	}
	return m.b.cfg.Hub.AckReader(ctx, m.id, "", e.Channel, e.ID)
}

// invited tells a peer what it is asked into. If being present is enough, it has
// accepted; else this is work, and its receipt is the answer.
func (m *member) invited(ctx context.Context, n *hub.Notice) error {
	h := m.b.cfg.Hub
	meta, err := h.Channel(ctx, n.Envelope.Channel)
	if err != nil || !slices.Contains(meta.PendingAcks, m.id) {
		return fault.IgnoreNotFound(err)
	}
	t := Telling{Text: m.invitation(meta), Intent: "invitation"}
	if m.b.cfg.Accept == AcceptReceipt {
		t.Work = workPrefix(meta.ID) + m.turnOf(meta, n.Envelope.Seq)
	}
	if err := m.tell(ctx, meta, n.Envelope, t); err != nil || t.Work != "" {
		return err
	}
	return m.answerInvite(ctx, n.Envelope, envelope.TypeInviteAck, "")
}

// answerInvite accepts or refuses an invitation, if it is still open.
func (m *member) answerInvite(ctx context.Context, invite *envelope.Envelope, eventType, reason string) error {
	h := m.b.cfg.Hub
	meta, err := h.Channel(ctx, invite.Channel)
	if err != nil || !slices.Contains(meta.PendingAcks, m.id) {
		return fault.IgnoreNotFound(err)
	}
	b := (&jsonbuf.Buffer{}).Open('{')
	if reason != "" {
		b.Key("reason").String(reason)
	}
	data, err := b.Key("channel_id").String(meta.ID).Close('}').Result()
	if err != nil {
		return err
	}
	_, err = h.Admit(ctx, &envelope.Envelope{
		Channel: meta.ID, Sender: m.id, Type: eventType, Causation: invite.ID, Data: data, Origin: envelope.Origin{Dialect: wire.Dialect},
	}, nil).Wait(ctx)
	return unlessFinal(err)
}

// invitation says what a peer is asked into.
func (m *member) invitation(meta *channel.Metadata) string {
	h := m.b.cfg.Hub
	var names []string
	for _, p := range meta.Participants {
		if p.Agent != m.id && p.Agent != meta.Creator {
			names = append(names, h.Name(p.Agent))
		}
	}
	text := fmt.Sprintf("%s asks you into the %s %s", h.Name(meta.Creator), meta.Manifest.Type, meta.ID)
	if intent := meta.Labels["intent"]; intent != "" {
		text += ": " + intent
	}
	if len(names) > 0 {
		text += ". With you: " + strings.Join(names, ", ")
	}
	return text + ". What is said to you follows here; say your answers under their work_id."
}

// text tells a peer what an envelope says, as work if it may answer.
func (m *member) text(ctx context.Context, n *hub.Notice) error {
	h, e := m.b.cfg.Hub, n.Envelope
	if e.Origin.Dialect == envelope.OriginHub || envelope.IsProtocol(e.Type) {
		return nil
	}
	meta, err := h.Channel(ctx, e.Channel)
	if err != nil {
		return fault.IgnoreNotFound(err)
	}
	mine, err := h.CanSend(ctx, meta.ID, m.id, envelope.TypeText)
	if err != nil {
		return err
	}
	t := Telling{Intent: "notice", Trace: e.Trace, Text: m.says(meta, e)}
	if t.Text == "" {
		return nil
	}
	if t.Cause, err = m.cause(ctx, meta, e); err != nil {
		return err
	}
	if mine && meta.State == channel.Active {
		t.Intent, t.Work = "request", workPrefix(meta.ID)+m.turnOf(meta, e.Seq)
	}
	return m.tell(ctx, meta, e, t)
}

// says is what an envelope says to a peer; empty: nothing.
func (m *member) says(meta *channel.Metadata, e *envelope.Envelope) (text string) {
	for _, item := range channel.ReaderOf(m.b.cfg.Hub.AdapterFor(meta), meta).Read(nil, e) {
		if item.Kind == channel.ItemMessage || text == "" {
			text = cmp.Or(words(&item, m.id), text)
		}
	}
	return text
}

// cause is the id by which a peer knows the message that an envelope answers: its own,
// or that under which it was told of it. Empty: it knows none.
func (m *member) cause(ctx context.Context, meta *channel.Metadata, e *envelope.Envelope) (string, error) {
	if e.Causation == "" {
		return "", nil
	}
	h := m.b.cfg.Hub
	seq, err := h.SequenceOf(ctx, meta.ID, e.Causation)
	if err != nil {
		return "", fault.IgnoreNotFound(err) // it is none of this channel's
	}
	for about, err := range h.Log(ctx, meta.ID, seq, seq) {
		if err != nil {
			return "", err
		}
		if about.Sender == m.id {
			if id, ok := strings.CutPrefix(about.Origin.ID, wire.RecordKey(m.ID, "")); ok && hub.CameFrom(about, wire.Dialect) {
				return id, nil
			}
			return "", nil // it brought it from elsewhere
		}
		sees, err := h.Sight(ctx, meta.ID, []string{m.id})
		if err != nil || !sees(about) || m.says(meta, about) == "" {
			return "", err
		}
	}
	return m.messageID(meta, seq), nil
}

// messageID is the id of what a peer is told of an envelope.
func (m *member) messageID(meta *channel.Metadata, seq uint64) string {
	return "parley-" + lastPart(meta.ID) + "-" + m.turnOf(meta, seq)
}

// words are what a peer is told of an item; empty: nothing.
func words(i *channel.Item, me string) string {
	switch i.Kind {
	case channel.ItemMessage:
		text, err := channel.SaidText(*i.Message)
		if err != nil {
			text = channel.Attachment(string(i.Message.Type))
		}
		return text
	case channel.ItemTurn:
		if i.To == me && me != "" {
			return cmp.Or(i.Text, "It is your turn.")
		}
	}
	return ""
}

// Written are the kinds of messages by which a peer is told of an item of a channel
// that it takes part in; of a turn, if it is the peer's.
func Written(i *channel.Item) []wire.Kind {
	switch {
	case i.Kind == channel.ItemEnd:
		return []wire.Kind{wire.Receipt}
	case words(i, i.To) != "":
		return []wire.Kind{wire.Say}
	}
	return nil
}

// tell says something to the peer. What cannot be said there has a placeholder, and
// what cannot be said at all is a turn that failed.
func (m *member) tell(ctx context.Context, meta *channel.Metadata, e *envelope.Envelope, t Telling) error {
	room, present := m.b.cfg.Network.Where(m.Peer)
	if !present {
		return errAbsent
	}
	h := m.b.cfg.Hub
	t.As, t.ID = meta.Creator, m.messageID(meta, e.Seq)
	t.Cross = wire.Crossing{
		Origin: hub.Onward(e, wire.Dialect), SpeakerID: e.Sender, Speaker: h.Name(e.Sender), ChannelID: meta.ID, ChannelType: meta.Manifest.Type,
	}
	t.Cross.Origin.Hops++
	err := m.b.cfg.Network.Tell(ctx, m.Peer, room, t)
	if code := fault.CodeOf(err); code == fault.Invalid || code == fault.TooLarge {
		t.Text = fmt.Sprintf("[A message of %s is not shown here: %v]", t.Cross.Speaker, err)
		err = m.b.cfg.Network.Tell(ctx, m.Peer, room, t)
	}
	switch {
	case err == nil, fault.ReasonOf(err) == fault.Taken: // it was told in another room, before
		return nil
	case ctx.Err() != nil, fault.Retryable(err):
		return err
	}
	if _, present := m.b.cfg.Network.Where(m.Peer); !present {
		return errAbsent
	}
	return fault.IgnoreNotFound(h.ReportTurnFailure(ctx, meta.ID, m.id, e.ID, "NotTold", err.Error()))
}

// introduce stores what the peer says of itself as its resume, if that is new.
func (m *member) introduce(ctx context.Context) {
	card := m.b.cfg.Network.Card(m.Peer)
	if card == nil {
		return
	}
	h := m.b.cfg.Hub
	known, err := h.Details(ctx, m.id)
	if err != nil || known.Resume == nil {
		return
	}
	next := known.Resume.Clone()
	next.ClaimedCapabilities = slices.Clone(card.Capabilities[:min(len(card.Capabilities), identity.MaxCapabilities)])
	next.Summary = card.Summarize("")
	if slices.Equal(next.ClaimedCapabilities, known.Resume.ClaimedCapabilities) && next.Summary == known.Resume.Summary {
		return
	}
	if err := h.SetResume(ctx, m.id, next); err != nil && ctx.Err() == nil {
		m.b.cfg.Log.Warn("an AGH peer's card cannot be its resume", "peer", m.Name(), "error", err)
	}
}

// unlessFinal drops an error that another attempt would not change.
func unlessFinal(err error) error {
	if err == nil || fault.Retryable(err) || errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
