package hub

import (
	"cmp"
	"context"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// CloseChannel ends a channel. One that has ended stays as it is: the first
// reason wins.
func (h *Hub) CloseChannel(ctx context.Context, id, reason string) (*channel.Metadata, error) {
	return h.closeChannel(ctx, id, reason, nil)
}

// closeChannel is CloseChannel with who asks for it, for the audit.
func (h *Hub) closeChannel(ctx context.Context, id, reason string, by *Caller) (*channel.Metadata, error) {
	if err := h.boundRecord("reason", len(reason)); err != nil {
		return nil, err
	}
	return h.endChannel(ctx, id, func(b *batch) error {
		b.by = by
		return b.end(channel.Closed, cmp.Or(reason, "explicit_close"))
	})
}

// endChannel runs an ending on a channel that has not ended, and returns the
// metadata once it is durable.
func (h *Hub) endChannel(ctx context.Context, id string, end func(b *batch) error) (*channel.Metadata, error) {
	if err := h.delivery.await(ctx); err != nil {
		return nil, err
	}
	for {
		ch, err := h.lock(ctx, id)
		if err != nil {
			return nil, err
		}
		if ch.meta.State.Terminal() {
			ch.mu.Unlock()
			return h.Channel(ctx, id)
		}
		if ch.adapter == nil || ch.state == nil {
			// It can still be ended, because its state no longer matters.
			ch.adapter, ch.state = inert{}, struct{}{}
		}
		b := h.newBatch(ch)
		p, err := b.fill(ctx, end)
		if retryFold(err) {
			h.abandon(ch)
			continue
		}
		m := b.meta
		if err != nil && ch.adapter == channel.Adapter(inert{}) {
			h.channels.drop(ch)
		}
		ch.mu.Unlock()
		if err != nil {
			return nil, unavailable(err)
		}
		_, err = p.Wait(ctx)
		return m, err
	}
}

// end puts the end of a channel into the batch: its tasks, the envelopes that
// say so, the metadata, the audit.
func (b *batch) end(state channel.Lifecycle, reason string) error {
	if err := b.endTasks(); err != nil {
		return err
	}
	wasPending := b.meta.State == channel.Pending
	reason = b.hub.shared.Name(reason)
	b.change(func(m *channel.Metadata) {
		m.State, m.CloseReason, m.ClosedAt = state, reason, b.now
	})
	if b.ch.adapter.Opening() == channel.ByInvitation {
		if err := b.farewell(state, reason); err != nil {
			return err
		}
	}
	kind := "channel_closed"
	if state == channel.Expired {
		kind = "channel_expired"
	}
	f := fields{"channel_id": b.ch.id, "reason": reason}
	if state == channel.Closed {
		b.by.describe(f)
	}
	if err := b.audit(kind, f); err != nil {
		return err
	}
	b.note(state.String(), b.meta, reason, "")
	b.sideNote(schema.SideRecord{Kind: schema.SideEnded}, func(r *journal.Record) {
		if !b.meta.ExpiresAt.IsZero() {
			r.Remove = append(r.Remove, schema.DueKey(schema.DueTTL, b.meta.ExpiresAt, b.ch.id))
		}
		if wasPending {
			r.Remove = append(r.Remove, schema.DueKey(schema.DueInvite, b.inviteDue(), b.ch.id))
		}
		r.Remove = append(append(r.Remove, b.dropDeadlines()...), b.activeKey()...)
	})
	h, ch, readers := b.hub, b.ch, b.meta.IDs()
	if err := b.cancelOpen("the channel has ended", ""); err != nil {
		return err
	}
	over := errOver(b.meta)
	failed := b.refusal
	if failed == nil {
		failed = openingFailed(b.meta)
	}
	b.after = append(b.after, func() {
		if wasPending {
			h.openings.finish(ch.id, failed)
		}
		h.refuseWaiting(ch, over)
		for _, id := range readers {
			if m := h.registry.ByID(id); m != nil {
				m.Places.Ended(ch.id)
			}
		}
	})
	return b.recordEnd()
}

// recordEnd writes the metadata of an ended channel, and moves it from the lists of open
// channels to those of ended ones.
func (b *batch) recordEnd() error {
	if err := b.recordChange(); err != nil {
		return err
	}
	home, own := schema.Split(b.ch.id)
	record := &b.metas[len(b.metas)-1]
	record.Remove = [][]byte{schema.Key(schema.IndexOwned, b.meta.Creator, own), schema.Key(schema.IndexOpen, own)}
	record.Put = []journal.IndexPut{{Key: schema.Key(schema.IndexChannel, own), Value: []byte(home)}}
	for _, p := range b.meta.Participants {
		record.Remove = append(record.Remove, schema.Key(schema.IndexTurn, p.Agent, own))
		if !b.lists() {
			record.Put = append(record.Put, journal.IndexPut{Key: schema.Key(schema.IndexMember, p.Agent, own), Value: []byte(home)})
		}
	}
	return nil
}

// farewell writes the envelopes that end the log: closed, preceded by expired if
// the channel's time ran out.
func (b *batch) farewell(state channel.Lifecycle, reason string) error {
	data, err := channelData(b.ch.id, reason)
	if err != nil {
		return err
	}
	if state == channel.Expired {
		if err := b.hubEnvelope(envelope.TypeExpired, data, b.meta.IDs()); err != nil {
			return err
		}
	}
	return b.hubEnvelope(envelope.TypeClosed, data, b.meta.IDs())
}

// note tells listeners of the channel's life once it is durable.
func (b *batch) note(kind string, m *channel.Metadata, reason, agent string) {
	ev := ChannelEvent{Channel: b.ch.id, Kind: kind, Metadata: m, Reason: reason, Agent: agent, At: b.now}
	h := b.hub
	tell := func() {
		h.census.note(kind, m.Manifest.Key())
		h.hooks.each(func(l Listener) { l.ChannelEvent(ev) })
	}
	if kind == "created" || kind == "opened" {
		b.before = append(b.before, tell)
	} else {
		b.after = append(b.after, tell)
	}
}

// inert stands in for an adapter that is not loaded, so that its channel can
// be ended.
type inert struct{ channel.Adapter }

func (inert) Opening() channel.Opening                                 { return channel.AtOnce }
func (inert) Fold(s channel.State, _ *envelope.Envelope) channel.State { return s }
func (inert) Expected(*channel.Metadata, channel.State) (channel.Turn, bool) {
	return channel.Turn{}, false
}
