package hub

import (
	"context"
	"slices"

	"github.com/parley-hub/parley/channel"
)

// Members returns who belongs to a channel, as it is durable now.
func (h *Hub) Members(ctx context.Context, channelID string) (channel.Members, error) {
	m, err := h.durableMeta(ctx, channelID)
	if err != nil {
		return nil, err
	}
	return h.membersOf(ctx, m)
}

// membersOf is who belongs to a channel now. The channel is folded only if its
// members are.
func (h *Hub) membersOf(ctx context.Context, m *channel.Metadata) (channel.Members, error) {
	a := h.adapterOf(m.Manifest.Key())
	if _, folds := a.(channel.MemberFolder); !folds || m.MembersOf != "" {
		return h.members(ctx, a, m, nil)
	}
	s, err := h.snapshot(ctx, m.ID, 0)
	if err != nil {
		return nil, err
	}
	return h.members(ctx, s.adapter, s.meta, s.state)
}

// members is who belongs to a channel in a state. The members of another channel
// are those of its newest durable snapshot, which is read without its lock.
func (h *Hub) members(ctx context.Context, a channel.Adapter, m *channel.Metadata, s channel.State) (channel.Members, error) {
	if m.MembersOf != "" {
		of, err := h.snapshot(ctx, m.MembersOf, 0)
		if Deleted(err) {
			return channel.NewMembers(), nil
		}
		if err != nil {
			return nil, err
		}
		return h.members(ctx, of.adapter, of.meta, of.state)
	}
	if folder, ok := a.(channel.MemberFolder); ok && s != nil {
		return folder.Members(m, s), nil
	}
	return m.Members(), nil
}

// isMember reports whether an agent belongs to a channel.
func (h *Hub) isMember(ctx context.Context, s *snapshot, agent string) (bool, error) {
	in, err := h.members(ctx, s.adapter, s.meta, s.state)
	return err == nil && in.Has(agent), err
}

// takesPart reports whether one of the caller's agents belongs to a channel.
func (h *Hub) takesPart(ctx context.Context, by *Caller, m *channel.Metadata) (bool, error) {
	in, err := h.membersOf(ctx, m)
	if err != nil {
		return false, err
	}
	if len(by.Agents) <= in.Count() {
		return slices.ContainsFunc(by.Agents, in.Has), nil
	}
	found := false
	in.Each(func(agent string) bool {
		found = by.is(agent)
		return !found
	})
	return found, nil
}
