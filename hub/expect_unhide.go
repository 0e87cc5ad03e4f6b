package hub

import (
	"context"
	"slices"
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
	started, connected := m.link.startReplays(h.opts.Limits.Replay)
	if !connected {
		ch.readable(agent) // the replay happens when it binds again
		return
	}
	var meta *channel.Metadata
	if started != nil {
		meta = ch.readable(agent)
	}
	h.done.Go(func() { // the caller delivers, so the hub is not closed yet
		for started == nil {
			// Another replay is under way, which is rare. It ends first.
			select {
			case <-ctx.Done():
				return
			case <-time.After(20 * time.Millisecond):
			}
			if started, connected = m.link.startReplays(h.opts.Limits.Replay); !connected {
				ch.readable(agent)
				return
			}
			if started != nil {
				meta = ch.readable(agent)
			}
		}
		for _, s := range started {
			h.catchUp(ctx, m, s.bond, meta, s.replaying)
		}
	})
}

// catchUp replays one channel to an endpoint, and then goes live.
func (h *Hub) catchUp(ctx context.Context, m *member, b *bond, meta *channel.Metadata, r *replaying) {
	last, err := h.replayChannel(ctx, m, b, meta, "") // also of one that its send ended
	r.upTo[meta.ID] = last
	h.afterDelivery(func() {
		if live := m.link.goLive(b, r); err == nil {
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

// startedReplay is a replay to one endpoint.
type startedReplay struct {
	*bond
	*replaying
}

// startReplays begins to keep what arrives at every endpoint. It starts none if
// another replay is under way at one of them.
func (l *link) startReplays(limit int) (started []startedReplay, connected bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.ContainsFunc(l.bonds, func(b *bond) bool { return b.replay != nil }) {
		return nil, true
	}
	for _, b := range l.bonds {
		b.replay = &replaying{limit: limit, upTo: map[string]uint64{}}
		started = append(started, startedReplay{b, b.replay})
	}
	return started, len(started) > 0
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
