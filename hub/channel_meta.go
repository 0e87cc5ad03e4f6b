package hub

import (
	"context"
	"slices"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
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

// Label is a label that a channel carries.
type Label struct{ Key, Value string }

// ListOptions selects channels.
type ListOptions struct {
	Agent string            // only those it takes part in
	Open  bool              // only those that have not ended
	Label []Label           // only those that carry all of these
	Type  string            // only those of this type
	State channel.Lifecycle // only those in this state; Unset is any
	// Invited selects the pending ones that wait for this agent's answer.
	Invited string
	After   string // the last channel of the page before
	Limit   int    // 0: 50
	Newest  bool   // the newest first
	// Dialect leaves out the channels that only clients of another dialect see;
	// empty leaves out none.
	Dialect string

	by *Caller // only those that it may look into; see Access
}

// Channels lists channels by age, ended ones too. Next goes on after the last,
// and is empty at the end.
func (h *Hub) Channels(ctx context.Context, o ListOptions) (list []*channel.Metadata, next string, err error) {
	if o.Limit <= 0 {
		o.Limit = 50
	}
	prefix := listPrefix(o)
	_, after := schema.Split(o.After)
	scan := schema.ListScan(prefix, after, o.Newest)
	for entry, err := range journal.IndexAll(ctx, h.journal, scan) {
		if err != nil {
			return nil, "", unavailable(err)
		}
		m, err := h.Channel(ctx, schema.Listed(entry))
		if fault.CodeOf(err) == fault.NotFound {
			continue
		}
		if err != nil {
			return nil, "", err
		}
		selected, err := h.selected(ctx, m, o)
		if err != nil {
			return nil, "", err
		}
		if !selected {
			continue
		}
		if len(list) == o.Limit {
			return list, list[len(list)-1].ID, nil
		}
		list = append(list, m)
	}
	return list, "", nil
}

func listPrefix(o ListOptions) []byte {
	switch {
	case o.Agent != "" && o.Open:
		return schema.Key(schema.IndexTurn, o.Agent, "")
	case o.Agent != "":
		return schema.Key(schema.IndexMember, o.Agent, "")
	case o.Open:
		return []byte(schema.IndexOpen)
	}
	if len(o.Label) > 0 {
		return schema.Key(schema.IndexLabel, schema.Digest(o.Label[0].Key, o.Label[0].Value), "")
	}
	return []byte(schema.IndexChannel)
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

func (h *Hub) selected(ctx context.Context, m *channel.Metadata, o ListOptions) (bool, error) {
	if o.Dialect != "" {
		if only := dialectOf(h.adapterOf(m.Manifest.Key())); only != "" && only != o.Dialect {
			return false, nil
		}
	}
	switch {
	case !ofGroup(m, o.Type, o.Label),
		o.State != channel.Unset && m.State != o.State,
		o.Invited != "" && (m.State != channel.Pending || !slices.Contains(m.PendingAcks, o.Invited)):
		return false, nil
	}
	if o.Agent != "" && m.MembersOf != "" {
		// It is listed since it spoke there, and may have left since.
		if in, err := h.membersOf(ctx, m); err != nil || !in.Has(o.Agent) {
			return false, err
		}
	}
	return h.As(o.by).sees(ctx, m)
}
