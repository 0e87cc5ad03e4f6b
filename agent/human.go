package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/parley-hub/parley/adapter/turn"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
)

// ErrDisconnected is returned by Send, and by everything that waits for a
// human's envelopes, once the human has disconnected.
var ErrDisconnected = errors.New("agent: disconnected")

// DefaultPull is how many envelopes wait for a human who does not read.
const DefaultPull = 1024

// HumanOptions configure a human's side. The zero value acks invites.
type HumanOptions struct {
	// NoAutoAck leaves invites to the application.
	NoAutoAck bool
	// Pull bounds what waits to be read, for each reader; the oldest is dropped
	// first. 0 is DefaultPull.
	Pull int
	Log  *slog.Logger
}

// Human is a participant without a model: a person behind some application,
// which pulls envelopes, or is called with them, or both.
type Human struct {
	link Link
	opts HumanOptions
	stop context.CancelFunc
	done chan struct{} // closed when no more envelopes come

	received chan struct{} // closed when receiving has ended
	calling  atomic.Bool   // callbacks run

	mu        sync.Mutex
	callbacks []func(*envelope.Envelope) error
	pull      *inflow
	channels  map[string]*inflow
	cause     error // why no more come; written before done is closed
}

// NewHuman begins to receive, until Disconnect or the end of the link.
func NewHuman(link Link, opts HumanOptions) *Human {
	if opts.Pull <= 0 {
		opts.Pull = DefaultPull
	}
	opts.Log = cmp.Or(opts.Log, slog.Default())
	ctx, stop := context.WithCancel(context.Background())
	h := &Human{
		link: link, opts: opts, stop: stop, channels: map[string]*inflow{},
		done: make(chan struct{}), received: make(chan struct{}),
	}
	h.pull = newInflow(opts.Pull)
	go h.receive(ctx)
	return h
}

func (h *Human) receive(ctx context.Context) {
	defer close(h.received)
	for {
		d, err := h.link.Receive(ctx)
		if err != nil {
			h.leave(errors.Join(ErrDisconnected, err))
			return
		}
		h.arrive(ctx, d.Envelope)
		if err := d.Ack(ctx); err != nil && ctx.Err() == nil {
			h.opts.Log.WarnContext(ctx, "receipt not sent", "envelope", d.Envelope.ID, "error", err)
		}
	}
}

// leave wakes everyone who waits and sets the reason that they return; the
// first reason stays.
func (h *Human) leave(cause error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cause == nil {
		h.cause = cause
		close(h.done)
	}
}

// arrive acks an invite, then fans out: the channel's reader, the pull queue,
// the callbacks in the order they came.
func (h *Human) arrive(ctx context.Context, e *envelope.Envelope) {
	if e.Type == envelope.TypeInvite && !h.opts.NoAutoAck && e.Sender != h.link.Self().ID {
		if _, err := h.link.Post(ctx, inviteAck(h.link.Self().ID, e)); err != nil {
			h.opts.Log.WarnContext(ctx, "invite not acked", "channel", e.Channel, "error", err)
		}
	}
	h.mu.Lock()
	own, callbacks := h.channels[e.Channel], h.callbacks
	h.mu.Unlock()
	if own != nil {
		own.put(e)
	}
	h.pull.put(e)
	h.calling.Store(true)
	defer h.calling.Store(false)
	for _, callback := range callbacks {
		if err := protect(callback, e); err != nil {
			h.opts.Log.WarnContext(ctx, "callback failed", "envelope", e.ID, "error", err)
		}
	}
}

func protect(callback func(*envelope.Envelope) error, e *envelope.Envelope) (err error) {
	defer rescue(&err)
	return callback(e)
}

// Self returns who the human is.
func (h *Human) Self() Identity { return h.link.Self() }

// OnEnvelope calls back with every envelope from now on. A callback that fails
// is logged and affects no other.
func (h *Human) OnEnvelope(callback func(*envelope.Envelope) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.callbacks = append(h.callbacks[:len(h.callbacks):len(h.callbacks)], callback)
}

// Next waits for an envelope that matches; nil matches all. Envelopes that do
// not match are dropped.
func (h *Human) Next(ctx context.Context, match func(*envelope.Envelope) bool) (*envelope.Envelope, error) {
	return h.await(ctx, h.pull, match)
}

// Envelopes yields all that arrive until the human disconnects or ctx ends.
func (h *Human) Envelopes(ctx context.Context) iter.Seq[*envelope.Envelope] {
	return func(yield func(*envelope.Envelope) bool) {
		for {
			e, err := h.Next(ctx, nil)
			if err != nil || !yield(e) {
				return
			}
		}
	}
}

// WaitForChannelEvent waits for an envelope of one channel that matches. It
// sees what arrived since the human opened the channel, or first waited for it.
func (h *Human) WaitForChannelEvent(ctx context.Context, channelID string, match func(*envelope.Envelope) bool) (*envelope.Envelope, error) {
	return h.await(ctx, h.watch(channelID), match)
}

func (h *Human) watch(channelID string) *inflow {
	h.mu.Lock()
	defer h.mu.Unlock()
	own, ok := h.channels[channelID]
	if !ok {
		own = newInflow(h.opts.Pull)
		h.channels[channelID] = own
	}
	return own
}

// Forget drops the queued envelopes of a channel that nobody will wait for
// again.
func (h *Human) Forget(channelID string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.channels, channelID)
}

func (h *Human) await(ctx context.Context, from *inflow, match func(*envelope.Envelope) bool) (*envelope.Envelope, error) {
	for {
		e, err := from.next(ctx, h.done)
		if err != nil {
			return nil, h.reason(err)
		}
		if match == nil || match(e) {
			return e, nil
		}
	}
}

func (h *Human) reason(err error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if errors.Is(err, ErrDisconnected) && h.cause != nil {
		return h.cause
	}
	return err
}

// Disconnect wakes everyone who waits and ends receiving. It waits for that
// end, unless callbacks run: one of them may be the caller. It may be called
// again.
func (h *Human) Disconnect() {
	h.stop()
	h.leave(ErrDisconnected)
	if !h.calling.Load() {
		<-h.received
	}
}

func (h *Human) connected() error {
	select {
	case <-h.done:
		return h.reason(ErrDisconnected)
	default:
		return nil
	}
}

// Send posts a text.
func (h *Human) Send(ctx context.Context, channelID, text string, to turn.Address) (string, error) {
	e, err := turn.BuildText(channelID, h.Self().ID, text, to)
	if err != nil {
		return "", err
	}
	return h.Post(ctx, e)
}

// Post posts any envelope; if it has no sender, the human is its sender.
func (h *Human) Post(ctx context.Context, e *envelope.Envelope) (string, error) {
	if err := h.connected(); err != nil {
		return "", fmt.Errorf("not sent: %w", err)
	}
	if e.Sender == "" {
		e = e.Clone()
		e.Sender = h.Self().ID
	}
	return h.link.Post(ctx, e)
}

// Open opens a channel, and returns when it is active.
func (h *Human) Open(ctx context.Context, o Opening) (*channel.Metadata, error) {
	if err := h.connected(); err != nil {
		return nil, err
	}
	m, err := h.link.OpenChannel(ctx, o)
	if err == nil {
		h.watch(m.ID)
	}
	return m, err
}

// CloseChannel ends a channel; without a reason it is human_closed.
func (h *Human) CloseChannel(ctx context.Context, channelID, reason string) (*channel.Metadata, error) {
	if err := h.connected(); err != nil {
		return nil, err
	}
	reason = cmp.Or(reason, "human_closed")
	return h.link.CloseChannel(ctx, channelID, reason)
}
