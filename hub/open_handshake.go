package hub

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/internal/jsonbuf"
	"github.com/parley-hub/parley/journal"
)

// answerInvite folds an ack or a reject into a pending channel. It changes nothing if the
// sender was not invited, or the answer is too late.
func (b *batch) answerInvite(e *envelope.Envelope) error {
	if b.meta.State != channel.Pending || !slices.Contains(b.meta.PendingAcks, e.Sender) {
		return nil
	}
	b.change(func(m *channel.Metadata) {
		m.PendingAcks = without(m.PendingAcks, e.Sender)
		if e.Type == envelope.TypeInviteReject {
			m.RejectedBy = append(slices.Clone(m.RejectedBy), e.Sender)
		}
	})
	invited, needed := acksNeeded(b.meta)
	acked := invited - len(b.meta.PendingAcks) - len(b.meta.RejectedBy)
	switch {
	case acked+len(b.meta.PendingAcks) < needed:
		return b.end(channel.Closed, "invite_rejected")
	case acked >= needed && (needed < invited || len(b.meta.PendingAcks) == 0):
		return b.activate()
	}
	return b.recordChange()
}

// acksNeeded returns how many were invited, and how many acks open the channel.
func acksNeeded(m *channel.Metadata) (invited, needed int) {
	invited = len(m.Participants) - 1
	needed = invited
	if m.RequiredAcks != nil {
		needed = min(max(*m.RequiredAcks, 0), invited)
	}
	return invited, needed
}

func without(list []string, gone string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == gone })
}

// activate opens the channel and tells everyone in it, the creator too.
func (b *batch) activate() error {
	b.change(func(m *channel.Metadata) { m.State = channel.Active })
	if b.ch.adapter.Opening() == channel.ByInvitation {
		data, err := channelData(b.ch.id, "")
		if err != nil {
			return err
		}
		if err := b.hubEnvelope(envelope.TypeOpened, data, b.meta.IDs()); err != nil {
			return err
		}
		b.sideNote(schema.SideRecord{Kind: schema.SideOpened}, func(r *journal.Record) {
			r.Remove = append(r.Remove, schema.DueKey(schema.DueInvite, b.inviteDue(), b.ch.id))
		})
	}
	b.note("opened", b.meta, "", "")
	h, id := b.hub, b.ch.id
	b.after = append(b.after, func() { h.openings.finish(id, nil) })
	if b.scheduling {
		b.active = true // the creation's record tells it
		return nil
	}
	return b.recordChange()
}

// recordChange writes what changed in the metadata.
func (b *batch) recordChange() error {
	data, err := schema.EncodeChange(b.meta)
	if err != nil {
		return err
	}
	b.metas = append(b.metas, journal.Record{Data: data})
	return nil
}

// channelData is what opened, closed and expired say.
func channelData(id, reason string) ([]byte, error) {
	buf := &jsonbuf.Buffer{}
	buf.Open('{')
	if reason != "" {
		buf.Key("reason").String(reason)
	}
	buf.Key("channel_id").String(id)
	buf.Close('}')
	return buf.Result()
}

// opening is a creator waiting for its channel.
type opening struct {
	done chan struct{}
	err  error // why the channel never opened; written before done is closed
}

// openings are the creators that wait, by channel. They survive the eviction of
// the channel.
type openings struct {
	mu   sync.Mutex
	open map[string]*opening
}

func (o *openings) begin(channelID string) *opening {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open == nil {
		o.open = map[string]*opening{}
	}
	wait := &opening{done: make(chan struct{})}
	o.open[channelID] = wait
	return wait
}

// finish lets the waiting creator go on.
func (o *openings) finish(channelID string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if wait := o.open[channelID]; wait != nil {
		wait.err = err
		close(wait.done)
		delete(o.open, channelID)
	}
}

func (o *openings) size() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.open)
}

func (o *openings) finishAll(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for id, wait := range o.open {
		wait.err = err
		close(wait.done)
		delete(o.open, id)
	}
}

// awaitOpening waits until the channel is no longer pending. A sweep ends it when
// its time-out passes.
func (h *Hub) awaitOpening(ctx context.Context, created Opened, o *opening) (Opened, error) {
	select {
	case <-o.done:
	case <-ctx.Done():
		return Opened{}, fault.Wrap(fault.Unavailable, ctx.Err(), "gave up waiting for channel '%s' to open: %v", created.ID, ctx.Err())
	}
	if o.err != nil {
		return Opened{}, o.err
	}
	m, err := h.Channel(ctx, created.ID)
	return Opened{Metadata: m, Warnings: created.Warnings}, err
}

func openingFailed(m *channel.Metadata) error {
	why := m.CloseReason
	if why == "invite_timeout" {
		why += fmt.Sprintf(" (ack timeout, nothing from %q)", m.PendingAcks)
	}
	return fault.New(fault.Protocol, "channel '%s' closed during handshake: %s", m.ID, why)
}

// invite writes an invitation to each invitee, in order. The first that the
// creator may not address fails the opening.
func (b *batch) invite(invitees []Profile) error {
	if len(b.meta.PendingAcks) == 0 {
		return nil
	}
	creator, err := b.hub.registry.Require(b.meta.Creator)
	if err != nil {
		return err
	}
	data, err := inviteData(b.meta)
	if err != nil {
		return err
	}
	for _, invitee := range invitees {
		e := &envelope.Envelope{
			Channel: b.ch.id, Sender: b.meta.Creator, Type: envelope.TypeInvite, Audience: []string{invitee.ID()},
			Data: data, Priority: envelope.Normal, Origin: envelope.Origin{Dialect: hubMade},
		}
		if err := denied(b.hub.arbiter().AuthorizeSend(creator.Profile(), e, []Profile{invitee})); err != nil {
			return err
		}
		if err := b.add(e, true); err != nil {
			return err
		}
		b.tell(e.Audience)
	}
	return nil
}

func inviteData(m *channel.Metadata) ([]byte, error) {
	buf := &jsonbuf.Buffer{}
	buf.Open('{')
	buf.Key("channel_id").String(m.ID)
	buf.Key("manifest_type").String(m.Manifest.Type)
	buf.Key("manifest_version").Int(m.Manifest.Version)
	buf.Key("creator_id").String(m.Creator)
	buf.Key("knobs").Object(m.Knobs)
	buf.Key("labels").StringMap(m.Labels)
	buf.Close('}')
	return buf.Result()
}
