package hub

import (
	"cmp"
	"context"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/journal"
)

// CloseChannel ends a channel. One that has ended stays as it is: the first
// reason wins.
func (h *Hub) CloseChannel(ctx context.Context, id, reason string) (*channel.Metadata, error) {
	if err := h.boundRecord("reason", len(reason)); err != nil {
		return nil, err
	}
	return h.endChannel(ctx, id, func(w *writing) error {
		return w.end(channel.Closed, cmp.Or(reason, "explicit_close"))
	})
}

// endChannel runs an ending on a channel that has not ended, and returns the
// metadata once it is durable.
func (h *Hub) endChannel(ctx context.Context, id string, end func(w *writing) error) (*channel.Metadata, error) {
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
			// It can still be ended: what it folds to no longer matters.
			ch.adapter, ch.state = inert{}, struct{}{}
		}
		w := h.write(ch)
		var p *Pending
		err = h.guarded(func() error {
			if err := end(w); err != nil {
				return err
			}
			p, err = w.order(ctx)
			return err
		})
		if retryFold(err) {
			h.abandon(ch)
			continue
		}
		m := w.meta
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
func (w *writing) end(state channel.Lifecycle, reason string) error {
	if err := w.endTasks(); err != nil {
		return err
	}
	wasPending := w.meta.State == channel.Pending
	reason = w.hub.shared.Name(reason)
	w.change(func(m *channel.Metadata) {
		m.State, m.CloseReason, m.ClosedAt = state, reason, w.now
	})
	if w.ch.adapter.Opening() == channel.ByInvitation {
		if err := w.farewell(state, reason); err != nil {
			return err
		}
	}
	kind := "channel_closed"
	if state == channel.Expired {
		kind = "channel_expired"
	}
	if err := w.audit(kind, fields{"channel_id": w.ch.id, "reason": reason}); err != nil {
		return err
	}
	w.note(state.String(), w.meta, reason, "")
	w.sideNote(sideRecord{Kind: sideEnded}, func(r *journal.Record) {
		if !w.meta.ExpiresAt.IsZero() {
			r.Remove = append(r.Remove, dueKey(dueTTL, w.meta.ExpiresAt, w.ch.id))
		}
		if wasPending {
			r.Remove = append(r.Remove, dueKey(dueInvite, w.inviteDue(), w.ch.id))
		}
		r.Remove = append(r.Remove, w.dropDeadlines()...)
	})
	h, ch := w.hub, w.ch
	over := errOver(w.meta)
	failed := w.refusal
	if failed == nil {
		failed = openingFailed(w.meta)
	}
	w.after = append(w.after, func() {
		if wasPending {
			h.openings.finish(ch.id, failed)
		}
		h.refuseWaiting(ch, over)
	})
	unindex := [][]byte{key(indexOwned, w.meta.Creator, w.ch.id)}
	for _, p := range w.meta.Participants {
		unindex = append(unindex, key(indexTurn, p.Agent, w.ch.id))
	}
	return w.recordChange(unindex)
}

// farewell writes the envelopes that end the log: closed, and before it
// expired if time ran out.
func (w *writing) farewell(state channel.Lifecycle, reason string) error {
	data, err := channelData(w.ch.id, reason)
	if err != nil {
		return err
	}
	if state == channel.Expired {
		if err := w.own(envelope.TypeExpired, data, w.meta.IDs()); err != nil {
			return err
		}
	}
	return w.own(envelope.TypeClosed, data, w.meta.IDs())
}

// note tells listeners of the channel's life once it is durable.
func (w *writing) note(kind string, m *channel.Metadata, reason, agent string) {
	ev := ChannelEvent{Channel: w.ch.id, Kind: kind, Metadata: m, Reason: reason, Agent: agent, At: w.now}
	h := w.hub
	tell := func() {
		h.census.note(kind, m.Manifest.Key())
		h.hooks.each(func(l Listener) { l.ChannelEvent(ev) })
	}
	if kind == "created" || kind == "opened" {
		w.before = append(w.before, tell)
	} else {
		w.after = append(w.after, tell)
	}
}

// inert stands in for an adapter that is not loaded, so that its channel can
// be ended.
type inert struct{ channel.Adapter }

func (inert) Opening() channel.Opening                                 { return channel.ByInvitation }
func (inert) Fold(s channel.State, _ *envelope.Envelope) channel.State { return s }
func (inert) Expected(*channel.Metadata, channel.State) (channel.Turn, bool) {
	return channel.Turn{}, false
}
