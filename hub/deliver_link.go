package hub

import (
	"context"
	"strings"
	"sync"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/reader"
	"github.com/parley-hub/parley/hub/internal/registry"
	"github.com/parley-hub/parley/journal"
)

// What reads: see package reader.
type (
	// Notice is an envelope on its way to one reader.
	Notice = reader.Notice
	// Shared keeps what a dialect made of an envelope, so that it is encoded once
	// for all its readers.
	Shared = reader.Shared
	// Endpoint is where an identity reads: a connection, or an Inbox in process.
	Endpoint = reader.Endpoint
	// Attachment says how an endpoint reads for an identity.
	Attachment = reader.Attachment
	// Inbox is an endpoint in process: a bounded queue of notices.
	Inbox = reader.Inbox
	// Described is an endpoint that can say what it is.
	Described = reader.Described
	// Connection is an endpoint at which an identity reads.
	Connection = reader.Connection
)

// NewInbox makes an inbox that holds at most limit notices; 0 is 4,096.
func NewInbox(limit int) *Inbox { return reader.NewInbox(limit) }

// Bind sets the endpoint at which an identity reads, as AG2's clients do.
func (h *Hub) Bind(agent string, at Endpoint) error {
	_, _, err := h.bind(agent, at, Attachment{}, nil)
	return err
}

// BindReplaying is Bind with a replay of what the identity has not acked.
func (h *Hub) BindReplaying(ctx context.Context, agent string, at Endpoint, since string) error {
	return h.Attach(ctx, agent, at, Attachment{Replay: true, Since: since})
}

// Attach adds an endpoint at which an identity reads, beside those of its other
// readers.
func (h *Hub) Attach(ctx context.Context, agent string, at Endpoint, a Attachment) error {
	if err := checkReader(a.Reader); err != nil {
		return err
	}
	if !a.Replay {
		_, _, err := h.bind(agent, at, a, nil)
		return err
	}
	r := reader.NewReplay(h.opts.Limits.Replay)
	m, b, err := h.bind(agent, at, a, r)
	if err != nil {
		return err
	}
	err = h.replayAll(ctx, m, b, r, a.Since)
	h.afterDelivery(func() {
		if done := m.Link.GoLive(b, r); done != nil && err == nil {
			err = done
		}
	})
	return err
}

func (h *Hub) bind(agent string, at Endpoint, a Attachment, r *reader.Replay) (*registry.Member, *reader.Bond, error) {
	if at == nil {
		return nil, nil, fault.New(fault.NotFound, "endpoint not attached")
	}
	m := h.registry.ByID(agent)
	if m == nil {
		return nil, nil, fault.New(fault.NotFound, "agent not registered: '%s'", agent)
	}
	now := h.now()
	m.Seen.Store(now.UnixNano())
	limit := h.opts.Limits.Endpoints
	b := m.Link.Bind(at, a, r, now, limit)
	if b == nil {
		return nil, nil, fault.New(fault.TooLarge, "'%s' reads at %d endpoints, which is the limit; end one of them or raise limits.endpoints", agent, limit)
	}
	return m, b, nil
}

// Unbind ends the bindings of an endpoint; identities that are bound elsewhere since then
// are not affected.
func (h *Hub) Unbind(at Endpoint, agents ...string) {
	for _, id := range agents {
		m := h.registry.ByID(id)
		if m == nil {
			continue
		}
		m.Seen.Store(h.now().UnixNano())
		m.Link.Unbind(at)
	}
}

// Bound reports the endpoint at which an identity's unnamed reader reads, if any.
func (h *Hub) Bound(agent string) (endpointID string, ok bool) {
	m := h.registry.ByID(agent)
	if m == nil {
		return "", false
	}
	return m.Link.Unnamed()
}

// Pending is how many envelopes an identity has not answered.
func (h *Hub) Pending(agent string) int64 {
	m := h.registry.ByID(agent)
	if m == nil {
		return 0
	}
	return m.Places.Taken()
}

func checkReader(name string) error { return reader.CheckName(name) }

// Ack moves an identity's cursor in a channel up to an envelope. An older one
// moves nothing; acks are cumulative.
func (h *Hub) Ack(ctx context.Context, agent, channelID, envelopeID string) error {
	return h.AckReader(ctx, agent, "", channelID, envelopeID)
}

// AckReader moves the cursor of one of an identity's readers. What any reader has acked no
// longer takes a place in the identity's inbox, unless the identity's rule keeps it there
// until it is answered.
func (h *Hub) AckReader(ctx context.Context, agent, reader, channelID, envelopeID string) error {
	if err := checkReader(reader); err != nil {
		return err
	}
	if h.registry.ByID(agent) == nil || envelopeID == "" || len(envelopeID) > envelope.MaxField {
		return nil
	}
	if h.channels.get(channelID) == nil {
		if _, err := h.Channel(ctx, channelID); err != nil {
			return fault.IgnoreNotFound(err)
		}
	}
	k := h.tenant.Channel(channelID).Cursor(agent, reader)
	for {
		current, err := h.journal.LazyValue(ctx, k)
		if err != nil {
			return unavailable(err)
		}
		if string(current.Data) >= envelopeID {
			return nil
		}
		err = h.journal.PutLazy(ctx, journal.ValueWrite{Key: k, Data: []byte(envelopeID), Expect: journal.Exactly(current.Version)})
		if isConflict(err) {
			continue // another ack came first
		}
		if err != nil {
			return unavailable(err)
		}
		if m := h.registry.ByID(agent); m != nil && !m.Profile().Rule.Limits.Inbox.KeepsRead() {
			m.Places.Acked(channelID, envelopeID)
		}
		h.acks.wake(ackKey{agent, channelID})
		return h.acked(ctx, agent, channelID, envelopeID)
	}
}

// acked updates the loaded channel, which may release waiting envelopes.
func (h *Hub) acked(ctx context.Context, agent, channelID, envelopeID string) error {
	ch := h.channels.get(channelID)
	if ch == nil {
		return nil
	}
	ch.mu.Lock()
	if ch.gone || ch.meta == nil {
		ch.mu.Unlock()
		return nil
	}
	ch.seats.Acked(ch.meta, agent, envelopeID)
	failed, err := h.releaseWaiting(ctx, ch)
	ch.mu.Unlock()
	h.refuse(failed, err)
	return nil
}

func (c *channels) get(id string) *loadedChannel {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.loaded[id]
}

// Cursor returns the last envelope that an identity acked in a channel.
func (h *Hub) Cursor(ctx context.Context, agent, channelID string) (string, error) {
	return h.ReaderCursor(ctx, agent, "", channelID)
}

// ReaderCursor returns the last envelope that one of an identity's readers acked.
func (h *Hub) ReaderCursor(ctx context.Context, agent, reader, channelID string) (string, error) {
	v, err := h.journal.LazyValue(ctx, h.tenant.Channel(channelID).Cursor(agent, reader))
	return string(v.Data), unavailable(err)
}

// maxReadersListed bounds how many readers of one identity are listed for a
// channel.
const maxReadersListed = 100

// ReadUpTo is how far one of an identity's readers has acknowledged a channel.
type ReadUpTo struct {
	Channel  string
	Reader   string // empty: the identity's own connection
	Envelope string // the last one acknowledged; empty: none yet
}

// ReadersOf lists the cursor of each reader of an identity in a channel. The unnamed one
// is always first.
func (h *Hub) ReadersOf(ctx context.Context, agent, channelID string) ([]ReadUpTo, error) {
	own := h.tenant.Channel(channelID).Cursor(agent, "")
	page, err := h.journal.Values(ctx, own.Partition, journal.ValuesOptions{
		Lazy: true, Prefix: own.Name, Limits: journal.Limits{Entries: maxReadersListed + 1},
	})
	if err != nil {
		return nil, unavailable(err)
	}
	list := []ReadUpTo{{Channel: channelID}}
	for _, v := range page.Values {
		if v.Name == own.Name {
			list[0].Envelope = string(v.Data)
		} else if reader, ok := strings.CutPrefix(v.Name, own.Name+"/"); ok {
			list = append(list, ReadUpTo{Channel: channelID, Reader: reader, Envelope: string(v.Data)})
		}
	}
	return list, nil
}

// dropCursors removes the cursors of all readers of an identity.
func (h *Hub) dropCursors(ctx context.Context, channelID, agent string) error {
	key := h.tenant.Channel(channelID).Cursor(agent, "")
	return unavailable(journal.RemoveValues(ctx, h.journal, key.Partition, key.Name))
}

// Nack leaves the cursor where it is, so that the envelope is replayed at the
// next attach.
func (h *Hub) Nack(agent, channelID, envelopeID, reason string) {
	h.log.Info("envelope nacked", "agent_id", agent, "channel_id", channelID, "envelope_id", envelopeID, "reason", reason)
}

// ackWaits has the calls that wait for an identity's first ack in a channel.
type ackWaits struct {
	mu      sync.Mutex
	waiting map[ackKey]*ackWait
}

type ackKey struct{ agent, channel string }

type ackWait struct {
	acked chan struct{}
	many  int
}

// join waits for the next ack, until leave.
func (w *ackWaits) join(key ackKey) *ackWait {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting == nil {
		w.waiting = map[ackKey]*ackWait{}
	}
	if w.waiting[key] == nil {
		w.waiting[key] = &ackWait{acked: make(chan struct{})}
	}
	w.waiting[key].many++
	return w.waiting[key]
}

func (w *ackWaits) leave(key ackKey, wait *ackWait) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if wait.many--; wait.many == 0 && w.waiting[key] == wait {
		delete(w.waiting, key)
	}
}

func (w *ackWaits) wake(key ackKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if wait := w.waiting[key]; wait != nil {
		close(wait.acked)
		delete(w.waiting, key)
	}
}

// AwaitAck waits until an identity has acked anything in a channel: then somebody
// reads for it there.
func (h *Hub) AwaitAck(ctx context.Context, agent, channelID string) error {
	key := ackKey{agent, channelID}
	wait := h.acks.join(key)
	defer h.acks.leave(key, wait)
	cursor, err := h.Cursor(ctx, agent, channelID)
	if err != nil || cursor != "" {
		return err
	}
	select {
	case <-wait.acked:
		return nil
	case <-ctx.Done():
		return fault.Wrap(fault.Unavailable, ctx.Err(), "'%s' has not answered in channel '%s'", agent, channelID)
	}
}
