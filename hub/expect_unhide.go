package hub

import (
	"context"
	"time"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub/internal/schema"
)

// unhide shows a participant the channel again once it has spoken. Live
// deliveries stay held back until the replay of what it missed has begun.
func (b *batch) unhide(e *envelope.Envelope) error {
	m := b.currentMarks()
	if !m.hidden(e.Sender) {
		return nil
	}
	b.sideNote(schema.SideRecord{Kind: schema.SideUnhidden, Agent: e.Sender}, nil)
	h, ch, agent := b.hub, b.ch, e.Sender
	b.after = append(b.after, func() { h.comeBack(h.background, ch, agent) })
	return nil
}

// comeBack resumes live deliveries to a participant after a replay of the channel
// from its cursor, without gap or repeat. It is called on the delivery path; the
// replay runs in a goroutine of its own.
func (h *Hub) comeBack(ctx context.Context, ch *loadedChannel, agent string) {
	m := h.registry.byID(agent)
	if m == nil {
		ch.readable(agent)
		return
	}
	r := &replaying{limit: h.opts.Limits.Replay, upTo: map[string]uint64{}}
	at, free := m.link.startReplay(r)
	if at == nil {
		ch.readable(agent) // it is not connected; the replay happens when it binds again
		return
	}
	var meta *channel.Metadata
	if free {
		meta = ch.readable(agent)
	}
	h.done.Go(func() { // the caller delivers, so the hub is not closed yet
		for !free {
			// Another replay is under way, which is rare. It ends first.
			select {
			case <-ctx.Done():
				return
			case <-time.After(20 * time.Millisecond):
			}
			if at, free = m.link.startReplay(r); at == nil {
				ch.readable(agent)
				return
			}
			if free {
				meta = ch.readable(agent)
			}
		}
		h.catchUp(ctx, m, at, meta, r)
	})
}

// catchUp replays one channel to an endpoint, and then goes live.
func (h *Hub) catchUp(ctx context.Context, m *member, at Endpoint, meta *channel.Metadata, r *replaying) {
	last, err := h.replayChannel(ctx, m, at, meta, "") // also of one that its send ended
	r.upTo[meta.ID] = last
	h.afterDelivery(func() {
		if live := m.link.goLive(r); err == nil {
			err = live
		}
	})
	if err != nil {
		h.log.Warn("replay stopped", "agent_id", m.id, "channel_id", meta.ID, "error", err)
	}
}

// afterDelivery calls do on the delivery path, once everything ordered before the
// call has been delivered, and waits for it. A replay goes live there: envelopes
// that it has read from the log have been queued by then, and are not sent twice.
func (h *Hub) afterDelivery(do func()) {
	p := &Pending{done: make(chan struct{}), barrier: do}
	if !h.delivery.push(p) {
		do() // the hub is closed and delivers nothing more
		return
	}
	<-p.done
}

// startReplay begins to keep what arrives, if no other replay is under way, and
// returns where to replay to; nil is nowhere.
func (l *link) startReplay(r *replaying) (at Endpoint, free bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.endpoint == nil {
		return nil, false
	}
	if l.replay != nil {
		return l.endpoint, false
	}
	l.replay = r
	return l.endpoint, true
}

// readable lets live deliveries reach a participant again.
func (ch *loadedChannel) readable(agent string) *channel.Metadata {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.extras != nil {
		ch.extras.marks.back = without(ch.extras.marks.back, agent)
		ch.readers.hide(ch.extras.marks.muted())
	}
	return ch.meta
}
