package hub

import (
	"context"
	"time"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
)

// unhide shows a participant the channel again once it has spoken. Live
// deliveries stay held back until the replay of what it missed has begun.
func (w *writing) unhide(e *envelope.Envelope) error {
	m := w.currentMarks()
	if !m.hidden(e.Sender) {
		return nil
	}
	w.sideNote(sideRecord{Kind: sideUnhidden, Agent: e.Sender}, nil)
	h, ch, agent := w.hub, w.ch, e.Sender
	w.after = append(w.after, func() {
		// Delivery goes on meanwhile; it is what keeps the hub from closing.
		h.done.Go(func() { h.comeBack(h.sweepers.ctx, ch, agent) })
	})
	return nil
}

// comeBack replays a channel to a participant from its cursor, and lets live
// deliveries follow without gap or repeat.
func (h *Hub) comeBack(ctx context.Context, ch *held, agent string) {
	m := h.registry.byID(agent)
	r := &replaying{limit: h.opts.Limits.Replay, upTo: map[string]uint64{}}
	var at Endpoint
	if m != nil {
		at = m.link.startReplay(ctx, r)
	}
	meta := ch.readable(agent)
	if at == nil {
		return // it reads nowhere; when it comes back it is replayed to
	}
	last, err := h.replayChannel(ctx, m, at, meta, "")
	r.upTo[meta.ID] = last
	h.inOrder(func() {
		if live := m.link.goLive(r); err == nil {
			err = live
		}
	})
	if err != nil {
		h.log.Warn("replay stopped", "agent_id", agent, "channel_id", meta.ID, "error", err)
	}
}

// inOrder runs something after all that was ordered before has been delivered.
// A replay that has read the log up to here goes live so: what it has read was
// kept by then, and is not told twice.
func (h *Hub) inOrder(do func()) {
	p := &Pending{done: make(chan struct{}), live: true, before: []func(){do}}
	if !h.delivery.push(p) {
		do() // nothing is delivered any more
		return
	}
	<-p.done
}

// startReplay begins to keep what arrives, and returns where to replay to; nil
// is nowhere. Another replay that is under way ends first: that is rare.
func (l *link) startReplay(ctx context.Context, r *replaying) Endpoint {
	for {
		l.mu.Lock()
		at, free := l.endpoint, l.replay == nil
		if at != nil && free {
			l.replay = r
		}
		l.mu.Unlock()
		if at == nil || free {
			return at
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// readable ends the holding back of live deliveries to a participant.
func (ch *held) readable(agent string) *channel.Metadata {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.rare != nil {
		ch.rare.marks.back = without(ch.rare.marks.back, agent)
		ch.readers.hide(ch.rare.marks.muted())
	}
	return ch.meta
}
