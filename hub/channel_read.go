package hub

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// Log reads a channel's history from one sequence to another, both included; 0 means no
// bound. It returns the whole log, without visibility rules.
func (h *Hub) Log(ctx context.Context, channelID string, from, to uint64) iter.Seq2[*envelope.Envelope, error] {
	log := h.tenant.Channel(channelID).History()
	return func(yield func(*envelope.Envelope, error) bool) {
		for entry, err := range journal.Records(ctx, h.journal, log, journal.ReadOptions{From: from, To: to}) {
			var e *envelope.Envelope
			if err == nil {
				e, err = schema.DecodeEnvelope(entry)
			}
			if !yield(e, unavailable(err)) || err != nil {
				return
			}
		}
	}
}

// Length is how many envelopes a channel's history holds; an unknown channel
// holds none.
func (h *Hub) Length(ctx context.Context, channelID string) (uint64, error) {
	head, err := h.journal.Head(ctx, h.tenant.Channel(channelID).History())
	return head.Durable.Seq, unavailable(err)
}

// Position is where a channel's history ends now.
func (h *Hub) Position(ctx context.Context, channelID string) (journal.Position, error) {
	head, err := h.journal.Head(ctx, h.tenant.Channel(channelID).History())
	return head.Durable.Position(), unavailable(err)
}

// AnswerTo finds the last envelope by which a sender answered another in a
// channel that has not ended; nil if there is none.
func (h *Hub) AnswerTo(ctx context.Context, channelID, sender, cause string) (*envelope.Envelope, error) {
	if cause == "" {
		return nil, nil
	}
	m, err := h.Channel(ctx, channelID)
	if fault.CodeOf(err) == fault.NotFound || err == nil && m.State.Terminal() {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	k := schema.CauseKey(channelID, sender, cause)
	page, err := h.journal.Scan(ctx, h.shardOf(channelID), journal.ScanOptions{Prefix: k, Limits: journal.Limits{Entries: 1}})
	if err != nil {
		return nil, unavailable(err)
	}
	if len(page.Entries) == 0 {
		return nil, nil
	}
	return h.envelopeAt(ctx, channelID, schema.DecodeUint(page.Entries[0].Value))
}

// Turn is a turn that an identity is to take.
type Turn struct {
	Channel    string
	Trigger    string // the envelope to answer; empty before anyone has spoken
	ExpectedAt time.Time
}

// Turns lists the turns that an identity is to take, by age of the channel.
func (h *Hub) Turns(ctx context.Context, agent string) ([]Turn, error) {
	var turns []Turn
	scan := journal.ScanOptions{Prefix: schema.Key(schema.IndexTurn, agent, "")}
	for entry, err := range journal.IndexAll(ctx, h.journal, scan) {
		if err != nil {
			return nil, unavailable(err)
		}
		turn, err := answer(ctx, h, schema.Listed(entry), func(ch *loadedChannel) (*Turn, error) {
			turn := h.turnOf(ch, agent)
			if turn != nil && turn.Trigger != "" && ch.meta.Has(agent) {
				ch.ensureExtras().redelivered.NoteTurn(agent, turn.Trigger)
			}
			return turn, nil
		})
		if err != nil && fault.CodeOf(err) != fault.NotFound {
			return nil, err
		}
		if turn != nil {
			turns = append(turns, *turn)
		}
	}
	return turns, nil
}

func (h *Hub) turnOf(ch *loadedChannel, agent string) *Turn {
	if ch.meta.State.Terminal() || ch.state == nil {
		return nil
	}
	expected, ok := ch.adapter.Expected(ch.meta, ch.state)
	if !ok || expected.Agent != agent {
		return nil
	}
	at := h.now().UTC()
	if expected.Trigger != "" && !ch.watch.Triggered.IsZero() {
		at = ch.watch.Triggered.Time()
	}
	return &Turn{Channel: ch.id, Trigger: expected.Trigger, ExpectedAt: at}
}

// Expected names who must speak next in a channel, if its adapter takes turns.
func (h *Hub) Expected(ctx context.Context, channelID string) (turn channel.Turn, ok bool, err error) {
	type result struct {
		turn channel.Turn
		ok   bool
	}
	r, err := answer(ctx, h, channelID, func(ch *loadedChannel) (result, error) {
		state, err := h.folded(ctx, ch)
		if err != nil {
			return result{}, err
		}
		turn, ok := ch.adapter.Expected(ch.meta, state)
		return result{turn, ok}, nil
	})
	return r.turn, r.ok, err
}

// Channel returns a channel's metadata once it is durable. It does not fold a channel.
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
