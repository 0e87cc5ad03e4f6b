package hub

import (
	"cmp"
	"context"
	"errors"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/registry"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// checkName refuses an invalid name.
func (h *Hub) checkName(o Opening) error {
	if o.Home == "" {
		return fault.New(fault.Invalid, "channel name %.100q is given without a home; names count in a home", o.Name)
	}
	return h.boundRecord("a channel's name", len(o.Name))
}

// Named returns the channel of a type with a name in a home.
func (h *Hub) Named(ctx context.Context, home, kind, name string) (channelID string, err error) {
	for {
		state, err := h.nameHolder(ctx, home, kind, name)
		if err != nil {
			return "", err
		}
		if state.Pending == nil {
			return channelOfName(state.Durable, home, kind, name)
		}
		_ = state.Pending.Wait(ctx) // it is looked up again, however that ends
		if err := ctx.Err(); err != nil {
			return "", fault.Wrap(fault.Unavailable, err, "gave up waiting for %s %.100q: %v", kind, name, err)
		}
	}
}

func (h *Hub) nameHolder(ctx context.Context, home, kind, name string) (journal.ClaimState, error) {
	state, err := h.journal.Claim(ctx, h.journal.Shard(h.tenant.Home(home)), schema.ChannelNameClaim(home, kind, name))
	return state, unavailable(err)
}

func channelOfName(holder *journal.Claimed, home, kind, name string) (string, error) {
	if holder != nil {
		if id, ok := schema.ChannelOf(holder.Log); ok {
			return id, nil
		}
	}
	return "", fault.New(fault.NotFound, "home '%s' has no %s called %.100q", home, kind, name).Because(fault.NoChannel)
}

// AdmitNamed posts an envelope to the channel of a name or, if there is none, opens that
// channel with the envelope in one batch. The opening's creator defaults to the sender,
// and its adapter must open at once. The hub owns the envelope from here on.
func (h *Hub) AdmitNamed(ctx context.Context, o Opening, e *envelope.Envelope, by *Caller) *Pending {
	p := h.admitNamed(ctx, o, e, by)
	h.tellRefusal(p, e)
	return p
}

func (h *Hub) admitNamed(ctx context.Context, o Opening, e *envelope.Envelope, by *Caller) *Pending {
	o.Creator, o.By = cmp.Or(o.Creator, e.Sender), cmp.Or(o.By, by)
	e.Channel = newChannel(o.Home)
	if o.Name == "" {
		return refused(fault.New(fault.Invalid, "the opening has no name; AdmitOpening opens channels without one"))
	}
	if err := h.checkName(o); err != nil {
		return refused(err)
	}
	if err := h.bound(e, by); err != nil {
		return refused(err)
	}
	sender, err := h.sender(e, by)
	if err != nil {
		return refused(err)
	}
	a := h.adapterOf(channel.Key{Type: o.Type, Version: cmp.Or(o.Version, 1)})
	again := func() *Pending { return h.AdmitNamed(ctx, o, e, by) }
	looked := e.Key != "" && homeKeys(a)
	for {
		if looked {
			state, err := h.journal.Claim(ctx, h.journal.Shard(h.tenant.Home(o.Home)), schema.HomeKeyClaim(o.Home, e.Key))
			if err != nil {
				return refused(unavailable(err))
			}
			if p := h.repeatOf(state, again, func(ctx context.Context) (*Pending, error) { return h.answerIdempotent(ctx, state.Ordered, e) }); p != nil {
				return p
			}
		}
		holder, err := h.nameHolder(ctx, o.Home, o.Type, o.Name)
		if err != nil {
			return refused(err)
		}
		var p *Pending
		if holder.Ordered != nil {
			post := h.newPost(postOne, e, sender, by)
			post.looked = looked
			p = post.admitToHolder(ctx, holder.Ordered, again)
		} else {
			p = h.admitFirst(ctx, o, sender, e, again)
		}
		if p != nil {
			return p
		}
		if err := ctx.Err(); err != nil {
			return refused(fault.Wrap(fault.Unavailable, err, "gave up on %s %.100q: %v", o.Type, o.Name, err))
		}
	}
}

// admitToHolder posts to the channel that holds a name. It returns nil if the
// channel is gone, so that the name must be looked up again.
func (p *post) admitToHolder(ctx context.Context, holder *journal.Claimed, again func() *Pending) *Pending {
	p.list[0].Channel, _ = schema.ChannelOf(holder.Log)
	pending := p.admit(ctx)
	if pending.err != nil && fault.ReasonOf(pending.err) == fault.NoChannel {
		return nil
	}
	if pending.retry != nil {
		pending.retry = again
	}
	return pending
}

// admitFirst opens a channel with its first envelope. It returns nil if another
// post was first with the name or the key.
func (h *Hub) admitFirst(ctx context.Context, o Opening, sender *registry.Member, e *envelope.Envelope, again func() *Pending) *Pending {
	ctx = h.spans.Arrived(ctx, h.now)
	recipients := h.registry.Profiles(e.Audience, e.Sender)
	if err := denied(h.arbiter().AuthorizeSend(sender.Profile(), e, recipients)); err != nil {
		return refused(err)
	}
	_, p, _, err := h.begin(ctx, o, e, func(b *batch) (err error) {
		b.caller = h.spans.Caller(ctx)
		if err := h.belongs(ctx, b.ch, b.meta, b.state, e); err != nil {
			return err
		}
		if !envelope.IsProtocol(e.Type) {
			b.places, err = h.capacity(b.ch, b.meta, b.state, sender, e, nil)
		}
		return err
	})
	if err == nil {
		return p
	}
	if retryFold(err) || isKey(err, e) || lostClaimOf(err, schema.ChannelNameClaim(o.Home, o.Type, o.Name)) {
		e.Channel = newChannel(o.Home)
		return nil
	}
	return notAccepted(err, nil, again)
}

// newChannel stands for a channel of a home that has no id yet.
func newChannel(home string) string {
	if home == "" {
		return "new"
	}
	return schema.InHome(home, noID)
}

// noID has the form of an id but is never given to anything.
const noID = "00000000000000000000000000000000"

// lostClaimOf reports whether a batch lost a certain claim.
func lostClaimOf(err error, name string) bool {
	var conflict *journal.ConflictError
	return errors.As(err, &conflict) && conflict.Kind == journal.ClaimConflict && conflict.Claim.Name == name
}

// AdmitOpening creates a channel and its first envelope in one batch. Its
// adapter must open at once. In a home, an idempotency key that was used before
// is answered with the channel and the envelope of the first time; without one
// there is no place in which openings are compared.
func (h *Hub) AdmitOpening(ctx context.Context, o Opening, first *envelope.Envelope) (Opened, string, error) {
	first.Sender, first.Channel = cmp.Or(first.Sender, o.Creator), newChannel(o.Home)
	if err := h.bound(first, nil); err != nil {
		return Opened{}, "", err
	}
	inHome := homeKeys(h.adapterOf(channel.Key{Type: o.Type, Version: cmp.Or(o.Version, 1)}))
	key := openingKey(o, first, inHome)
	for {
		if key != "" {
			created, id, found, err := h.repeatedOpening(ctx, o.Home, key, first, inHome)
			if err != nil || found {
				return created, id, err
			}
		}
		created, _, err := h.create(ctx, o, first, func(b *batch) error {
			if !inHome {
				b.openingKey = key
			}
			return nil
		})
		if key == "" || !lostClaimOf(err, key) {
			return created, first.ID, err
		}
	}
}

// openingKey is the claim of an opening's idempotency key; empty: it has none.
func openingKey(o Opening, first *envelope.Envelope, inHome bool) string {
	switch {
	case first.Key == "" || o.Home == "":
		return ""
	case inHome:
		return schema.HomeKeyClaim(o.Home, first.Key)
	}
	return schema.OpeningKeyClaim(o.Home, o.Type, first.Sender, first.Key)
}

// repeatedOpening returns what an earlier opening with the same key made.
func (h *Hub) repeatedOpening(ctx context.Context, home, key string, first *envelope.Envelope, inHome bool) (created Opened, id string, found bool, err error) {
	for {
		state, err := h.journal.Claim(ctx, h.journal.Shard(h.tenant.Home(home)), key)
		if err != nil {
			return Opened{}, "", false, unavailable(err)
		}
		if state.Pending != nil { // the answer waits for how that ends
			if err := state.Pending.Wait(ctx); err != nil && ctx.Err() != nil {
				return Opened{}, "", false, unavailable(err)
			}
			continue
		}
		if state.Durable == nil {
			return Opened{}, "", false, nil
		}
		return h.openedBefore(ctx, state.Durable, first, inHome)
	}
}

func (h *Hub) openedBefore(ctx context.Context, holder *journal.Claimed, first *envelope.Envelope, inHome bool) (created Opened, id string, found bool, err error) {
	channelID, _ := schema.ChannelOf(holder.Log)
	if inHome {
		p, err := h.answerIdempotent(ctx, holder, first)
		if err != nil {
			return Opened{}, "", false, err
		}
		id = p.id
	} else {
		posted, err := h.envelopeAt(ctx, channelID, 1) // what it was opened with
		if err != nil {
			return Opened{}, "", false, err
		}
		if !equalContent(posted, first) {
			return Opened{}, "", false, errIdempotencyKeyReused(first)
		}
		id = posted.ID
	}
	m, err := h.Channel(ctx, channelID)
	if fault.CodeOf(err) == fault.NotFound {
		return Opened{}, "", false, fault.Wrap(fault.Unavailable, err, "what the idempotency key '%s' was used for is being deleted; try again", first.Key)
	}
	return Opened{Metadata: m, Repeated: true}, id, err == nil, err
}

// WithIDs replaces the names in an opening by ids: of the creator, the participants, and
// the agents in the knobs. An unknown name in the knobs is left for the adapter to refuse.
func (h *Hub) WithIDs(o Opening) (Opening, error) {
	id := func(nameOrID string) (string, error) {
		p, err := h.Agent(nameOrID)
		if fault.CodeOf(err) == fault.NotFound {
			err = fault.Wrap(fault.NotFound, err, "agent '%.200s' not found: nobody is registered under that name or id", nameOrID).Because(fault.NoAgent)
		}
		if err != nil {
			return "", err
		}
		return p.ID(), nil
	}
	var err error
	if o.Creator, err = id(o.Creator); err != nil {
		return o, err
	}
	participants := make([]string, len(o.Participants))
	for i, name := range o.Participants {
		if participants[i], err = id(name); err != nil {
			return o, err
		}
	}
	o.Participants = participants
	if namer, ok := h.adapterOf(channel.Key{Type: o.Type, Version: max(o.Version, 1)}).(channel.KnobNamer); ok && len(o.Knobs) > 0 {
		o.Knobs = namer.NameKnobs(o.Knobs, func(name string) string {
			if known, err := id(name); err == nil {
				return known
			}
			return name
		})
	}
	return o, nil
}
