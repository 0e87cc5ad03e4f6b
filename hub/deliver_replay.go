package hub

import (
	"context"
	"errors"
	"sort"
	"time"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/reader"
	"github.com/parley-hub/parley/hub/internal/registry"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// replayAll sends an identity what it has not acked, channel by channel, the oldest first.
// Ended channels are not replayed.
func (h *Hub) replayAll(ctx context.Context, m *registry.Member, b *reader.Bond, r *reader.Replay, since string) error {
	scan := journal.ScanOptions{Prefix: schema.Key(schema.IndexTurn, m.ID, "")}
	for entry, err := range journal.IndexAll(ctx, h.journal, scan) {
		if err != nil {
			return unavailable(err)
		}
		if only := schema.ListedDialect(entry); only != "" && only != b.Dialect {
			continue // shown by another dialect only
		}
		id := schema.Listed(entry)
		last, err := h.replayOne(ctx, m, b, id, since)
		var gone *readerGone
		if errors.As(err, &gone) || fault.Retryable(err) || ctx.Err() != nil {
			return err
		}
		if err != nil { // the error concerns this channel only; go on with the others
			h.log.Warn("replay of a channel stopped", "agent_id", m.ID, "channel_id", id, "error", err)
		}
		r.UpTo[id] = last
	}
	return nil
}

func (h *Hub) replayOne(ctx context.Context, m *registry.Member, b *reader.Bond, id, since string) (last uint64, err error) {
	meta, err := h.Channel(ctx, id)
	if fault.CodeOf(err) == fault.NotFound || err == nil && meta.State.Terminal() {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return h.replayChannel(ctx, m, b, meta, since)
}

// readerGone ends a replay, because the endpoint is gone.
type readerGone struct{ error }

func (g *readerGone) Unwrap() error { return g.error }

// replayChannel sends what follows the cursor, or since if that is later, and returns the
// last sequence that it read.
func (h *Hub) replayChannel(ctx context.Context, m *registry.Member, b *reader.Bond, meta *channel.Metadata, since string) (uint64, error) {
	a := h.adapterOf(meta.Manifest.Key())
	only := dialectOf(a)
	if a == nil || only != "" && only != b.Dialect {
		return 0, nil
	}
	cursor, err := h.ReaderCursor(ctx, m.ID, b.Reader, meta.ID)
	if err != nil {
		return 0, err
	}
	after := max(cursor, since)
	from, err := h.seqAfter(ctx, meta.ID, after)
	if err != nil {
		return 0, err
	}
	last := from - 1
	log := h.tenant.Channel(meta.ID).History()
	for entry, err := range journal.Records(ctx, h.journal, log, journal.ReadOptions{From: from}) {
		if err != nil {
			return last, unavailable(err)
		}
		last = entry.Seq
		e, err := schema.DecodeEnvelope(entry)
		if err != nil {
			h.log.Error("replay leaves out what cannot be read", "channel_id", meta.ID, "error", err)
			continue
		}
		s, err := h.snapshot(ctx, meta.ID, entry.Seq)
		if err != nil {
			return last, err
		}
		if told, err := h.replays(ctx, s, e, m.ID); err != nil {
			return last, err
		} else if !told {
			continue
		}
		if err := b.Endpoint.Replay(ctx, &Notice{Envelope: e, Channel: meta, Recipient: m.ID, Replayed: true, Dialect: only, Shared: &Shared{}}); err != nil {
			return last, &readerGone{err}
		}
		if b.Reader != "" {
			continue
		}
		if err := h.noteReplayed(ctx, meta, m.ID, e); err != nil {
			return last, err
		}
	}
	return last, nil
}

// noteReplayed records what was replayed to a reader.
func (h *Hub) noteReplayed(ctx context.Context, meta *channel.Metadata, agent string, e *envelope.Envelope) error {
	ch, err := h.lock(ctx, meta.ID)
	if fault.CodeOf(err) == fault.NotFound {
		return nil // deleted since
	}
	if err != nil {
		return err
	}
	defer ch.mu.Unlock()
	ch.seats.Delivered(meta, agent, e, h.now())
	if envelope.IsContent(e.Type) && meta.Has(agent) {
		ch.ensureExtras().redelivered.NoteReplay(agent, e)
	}
	return nil
}

// replays reports whether an envelope is replayed to an identity: those of others to it,
// without answers to invitations, which are not delivered.
func (h *Hub) replays(ctx context.Context, s *snapshot, e *envelope.Envelope, agent string) (bool, error) {
	if e.Sender == agent || h.outlived(e) {
		return false, nil
	}
	if e.Type == envelope.TypeInviteAck || e.Type == envelope.TypeInviteReject {
		return false, nil
	}
	return h.sees(ctx, s, e, agent)
}

// outlived reports whether an envelope's time to live has passed. A value of 0 or
// less sets no end.
func (h *Hub) outlived(e *envelope.Envelope) bool {
	return e.TTL != nil && *e.TTL > 0 && e.ExpiredAt(h.now())
}

// seqAfter finds the first record whose id is above one. Ids grow with the
// sequence, so it is searched for by halves.
func (h *Hub) seqAfter(ctx context.Context, channelID, id string) (uint64, error) {
	if id == "" {
		return 1, nil
	}
	log := h.tenant.Channel(channelID).History()
	head, err := h.journal.Head(ctx, log)
	if err != nil {
		return 0, unavailable(err)
	}
	var failed error
	n := sort.Search(int(head.Durable.Seq), func(i int) bool {
		if failed != nil {
			return true
		}
		e, err := h.envelopeAt(ctx, channelID, uint64(i)+1)
		if err != nil {
			failed = err
			return true
		}
		return e.ID > id
	})
	return uint64(n) + 1, failed
}

func (h *Hub) envelopeAt(ctx context.Context, channelID string, seq uint64) (*envelope.Envelope, error) {
	log := h.tenant.Channel(channelID).History()
	page, err := h.journal.Read(ctx, log, journal.ReadOptions{From: seq, To: seq})
	if err != nil {
		return nil, unavailable(err)
	}
	if len(page.Entries) == 0 {
		return nil, fault.New(fault.NotFound, "channel '%s' has no record %d", channelID, seq)
	}
	return schema.DecodeEnvelope(page.Entries[0])
}

// unhide ends the hiding of a participant that has spoken. Live deliveries to it start
// only when the replay of what it missed has begun.
func (b *batch) unhide(e *envelope.Envelope) error {
	m := b.currentMarks()
	if !m.Hides(e.Sender) {
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
	m := h.registry.ByID(agent)
	if m == nil {
		ch.readable(agent)
		return
	}
	started, connected := m.Link.StartReplays(h.opts.Limits.Replay)
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
			if started, connected = m.Link.StartReplays(h.opts.Limits.Replay); !connected {
				ch.readable(agent)
				return
			}
			if started != nil {
				meta = ch.readable(agent)
			}
		}
		for _, s := range started {
			h.catchUp(ctx, m, s.Bond, meta, s.Replay)
		}
	})
}

// catchUp replays one channel to an endpoint, and then goes live.
func (h *Hub) catchUp(ctx context.Context, m *registry.Member, b *reader.Bond, meta *channel.Metadata, r *reader.Replay) {
	last, err := h.replayChannel(ctx, m, b, meta, "") // also of one that its send ended
	r.UpTo[meta.ID] = last
	h.afterDelivery(func() {
		if live := m.Link.GoLive(b, r); err == nil {
			err = live
		}
	})
	if err != nil {
		h.log.Warn("replay stopped", "agent_id", m.ID, "channel_id", meta.ID, "error", err)
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

// readable lets live deliveries reach a participant again.
func (ch *loadedChannel) readable(agent string) *channel.Metadata {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.extras != nil {
		ch.extras.marks.Back = without(ch.extras.marks.Back, agent)
		ch.seats.Hide(ch.extras.marks.Muted())
	}
	return ch.meta
}
