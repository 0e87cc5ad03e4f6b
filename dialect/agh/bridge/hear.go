package bridge

import (
	"cmp"
	"context"
	"slices"

	"github.com/parley-hub/parley/adapter/work"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/internal/jsonbuf"
	"github.com/parley-hub/parley/message"
)

// reader is the cursor of what was heard in a direct room.
const reader = "agh-bridge"

// catchUp hears what a peer said while nobody listened.
func (m *member) catchUp(ctx context.Context) {
	for {
		rooms, err := m.b.cfg.Network.Rooms(ctx, m.Peer)
		if err == nil {
			for _, id := range rooms {
				m.hearLater(id)
			}
			return
		}
		if !rest(ctx) {
			return
		}
	}
}

// hearLater schedules the reading of a direct room.
func (m *member) hearLater(channelID string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rooms[channelID] = true
	if !m.hearing {
		m.hearing = true
		m.b.run(func() { m.hearAll(m.b.ctx) })
	}
}

// hearAll reads the rooms in which something was said, until none is left.
func (m *member) hearAll(ctx context.Context) {
	for {
		m.mu.Lock()
		var room string
		for room = range m.rooms {
			break
		}
		delete(m.rooms, room)
		m.hearing = room != ""
		m.mu.Unlock()
		if room == "" {
			return
		}
		if err := fault.IgnoreNotFound(m.hear(ctx, room)); err != nil {
			if ctx.Err() == nil {
				m.b.cfg.Log.Warn("an AGH peer is heard later", "peer", m.Name(), "error", err)
			}
			m.mu.Lock()
			m.rooms[room] = true
			m.mu.Unlock()
			if !rest(ctx) {
				return
			}
		}
	}
}

// hear says in its channels what a peer said in a direct room since it was last
// heard.
func (m *member) hear(ctx context.Context, room string) error {
	h := m.b.cfg.Hub
	cursor, err := h.ReaderCursor(ctx, m.id, reader, room)
	if err != nil {
		return err
	}
	from := uint64(1)
	if cursor != "" {
		at, err := h.SequenceOf(ctx, room, cursor)
		if err != nil {
			return err
		}
		from = at + 1
	}
	last := ""
	for record, err := range h.Log(ctx, room, from, 0) {
		if err == nil {
			err = m.heard(ctx, record)
		}
		if err != nil {
			return err
		}
		last = record.ID
	}
	if last == "" {
		return nil
	}
	return h.AckReader(ctx, m.id, reader, room, last)
}

// heard handles one message.
func (m *member) heard(ctx context.Context, record *envelope.Envelope) error {
	h := m.b.cfg.Hub
	message, ok := work.Read(record)
	if !ok || message.From != m.ID {
		return nil
	}
	channelID, seq, ok := work.About(message.Work)
	if !ok {
		return nil
	}
	meta, err := h.Channel(ctx, channelID)
	if err != nil || !meta.Has(m.id) {
		return fault.IgnoreNotFound(err)
	}
	var about *envelope.Envelope
	for e, err := range h.Log(ctx, channelID, seq, seq) {
		if err != nil {
			return fault.IgnoreNotFound(err)
		}
		about = e
	}
	if about == nil || about.Sender == m.id {
		return nil
	}
	said, _, err := wire.Message(record)
	if err != nil {
		return nil // what this build cannot read
	}
	for _, item := range work.ReadItems(nil, record) {
		if err := m.cross(ctx, crossing{meta, about, record, said, item}); err != nil {
			return err
		}
	}
	return nil
}

// crossing is something that a peer said about an envelope of a channel.
type crossing struct {
	meta   *channel.Metadata
	about  *envelope.Envelope
	record *envelope.Envelope
	said   *wire.Envelope
	item   channel.Item
}

// origin returns the origin of what is said in the channel. An id of AGH is unique for
// its sender only.
func (c *crossing) origin() envelope.Origin {
	origin := hub.Onward(c.record, wire.Dialect)
	if origin.Dialect == wire.Dialect && origin.ID == c.said.ID {
		origin.ID = wire.RecordKey(c.said.From, c.said.ID)
	}
	return origin
}

func (m *member) cross(ctx context.Context, c crossing) error {
	if c.about.Type == envelope.TypeInvite {
		if !slices.Contains(c.about.Audience, m.id) {
			return nil
		}
		switch c.item.State {
		case channel.WorkFailed, channel.WorkCanceled:
			return m.answerInvite(ctx, c.about, envelope.TypeInviteReject, cmp.Or(c.item.Text, "rejected"))
		}
		return m.answerInvite(ctx, c.about, envelope.TypeInviteAck, "")
	}
	var err error
	switch c.item.Kind {
	case channel.ItemMessage:
		err = m.say(ctx, c)
	case channel.ItemWork:
		err = m.step(ctx, c)
	}
	return err
}

// say says a text in the channel. If the channel refuses it, the peer is told why.
func (m *member) say(ctx context.Context, c crossing) error {
	text, _ := c.item.Message.Content.(string)
	_, err := m.b.cfg.Hub.Say(ctx, hub.Saying{
		Channel: c.meta.ID, Sender: m.id, Message: message.Envelope{Type: message.TypeText, Content: text},
		Key: key(c), Origin: wire.FirstOrigin(c.said.Ext, c.origin()),
		Causation: c.about.ID, Task: c.said.Work, Trace: c.said.Trace,
	}, nil).Wait(ctx)
	if err == nil || unlessFinal(err) != nil {
		return err
	}
	m.b.cfg.Log.Info("what an AGH peer said was refused", "peer", m.Name(), "channel_id", c.meta.ID, "error", err)
	return unlessFinal(m.b.cfg.Network.Reject(ctx, m.Peer, c.said, err))
}

// key returns the idempotency key of what is said in the channel.
func key(c crossing) string { return wire.Dialect + "/" + wire.RecordKey(c.said.From, c.said.ID) }

var taskTypes = map[string]string{
	channel.WorkSubmitted: envelope.TypeTaskStarted, channel.WorkWorking: envelope.TypeTaskProgress, channel.WorkNeedsInput: envelope.TypeTaskProgress,
	channel.WorkCompleted: envelope.TypeTaskCompleted, channel.WorkFailed: envelope.TypeTaskFailed, channel.WorkCanceled: envelope.TypeTaskCancelled,
}

// step tells the channel a step of the peer's work. Work that fails is a turn that
// failed.
func (m *member) step(ctx context.Context, c crossing) error {
	eventType, ok := taskTypes[c.item.State]
	if !ok {
		return nil
	}
	b := (&jsonbuf.Buffer{}).Open('{').Key("task_id").String(c.said.Work)
	switch c.item.State {
	case channel.WorkSubmitted:
		b.Key("spec").Open('{').Key("title").String(c.item.Text).Close('}')
	case channel.WorkWorking, channel.WorkNeedsInput:
		b.Key("progress").Open('{').Key("state").String(c.item.State).Key("text").String(c.item.Text).Close('}')
	case channel.WorkCompleted:
		b.Key("result").String(c.item.Text)
	case channel.WorkFailed:
		b.Key("error").String(c.item.Text)
	default:
		b.Key("reason").String(c.item.Text)
	}
	data, err := b.Close('}').Result()
	if err != nil {
		return nil // it was read as JSON
	}
	h := m.b.cfg.Hub
	origin := c.origin()
	origin.Hops++
	_, err = h.Admit(ctx, &envelope.Envelope{
		Channel: c.meta.ID, Sender: m.id, Type: eventType, Data: data, Task: c.said.Work, Causation: c.about.ID, Trace: c.said.Trace,
		Key: key(c), Origin: origin,
	}, nil).Wait(ctx)
	if err := unlessFinal(err); err != nil {
		return err
	}
	if c.item.State != channel.WorkFailed && c.item.State != channel.WorkCanceled || fault.ReasonOf(err) == fault.ChannelEnded {
		return nil
	}
	return fault.IgnoreNotFound(h.ReportTurnFailure(ctx, c.meta.ID, m.id, c.about.ID, "WorkEnded", cmp.Or(c.item.Text, c.item.State)))
}
