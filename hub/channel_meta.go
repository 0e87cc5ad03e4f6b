package hub

import (
	"context"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/fault"
)

// Channel returns a channel's metadata, as durable as it says. A channel that
// is not folded stays so.
func (h *Hub) Channel(ctx context.Context, id string) (*channel.Metadata, error) {
	if h.channels.get(id) != nil {
		return answer(ctx, h, id, func(ch *loadedChannel) (*channel.Metadata, error) { return ch.meta, nil })
	}
	ch := newLoadedChannel(h.tenant, id)
	err := h.loadMeta(ctx, ch)
	return ch.meta, err
}

// State returns a channel's folded state in its adapter's own form.
func (h *Hub) State(ctx context.Context, id string) (channel.State, error) {
	return answer(ctx, h, id, func(ch *loadedChannel) (channel.State, error) { return h.folded(ctx, ch) })
}

// answer computes a result from a channel's fold and returns it once the newest
// batch in the fold is durable. If that batch failed, it computes the result
// again.
func answer[T any](ctx context.Context, h *Hub, id string, compute func(*loadedChannel) (T, error)) (T, error) {
	for {
		ch, err := h.lock(ctx, id)
		if err != nil {
			var none T
			return none, err
		}
		result, err := compute(ch)
		basis := ch.last
		ch.mu.Unlock()
		if h.closedCold(ch) {
			h.release(ch)
		}
		again, waitErr := basis.durable(ctx)
		if waitErr != nil {
			var none T
			return none, waitErr
		}
		if !again {
			return result, err
		}
	}
}

// release evicts an ended channel at once, because it is rarely used again.
func (h *Hub) release(ch *loadedChannel) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if !ch.gone && ch.meta != nil && ch.meta.State.Terminal() && ch.settled() {
		h.channels.drop(ch)
	}
}

func (h *Hub) closedCold(ch *loadedChannel) bool {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	return ch.meta != nil && ch.meta.State.Terminal() && ch.settled()
}

func errNoState(ch *loadedChannel) error {
	if ch.broken() != nil {
		return fault.Wrap(fault.Protocol, ch.broken(), "no adapter state: channel '%s' is quarantined: %v", ch.id, ch.broken())
	}
	return fault.New(fault.Protocol, "no adapter state: channel '%s' was first touched without its adapter; it is folded when a hub with that adapter opens it", ch.id)
}

// ofGroup reports whether a channel is of a type, if one is given, and carries all
// labels.
func ofGroup(m *channel.Metadata, kind string, labels []Label) bool {
	for _, l := range labels {
		if have, ok := m.Labels[l.Key]; !ok || have != l.Value {
			return false
		}
	}
	return kind == "" || m.Manifest.Type == kind
}
