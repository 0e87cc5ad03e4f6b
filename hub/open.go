package hub

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/expect"
	"github.com/parley-hub/parley/hub/internal/registry"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/internal/jsonscan"
	"github.com/parley-hub/parley/journal"
)

// Opening is a request for a new channel.
type Opening struct {
	Creator      string
	Type         string
	Version      int      // 0: 1
	Participants []string // the creator is put first if it is missing
	RequiredAcks *int
	TTL          *identity.TTL // nil: the creator's rule decides; opened at once, it lives for ever
	Knobs        []byte        // a JSON object, or nil
	Labels       map[string]string
	Intent       string // kept as the label "intent"
	Parent       string
	Home         string  // id of the home that it lies in; empty: it has a place of its own
	Name         string  // unique in the home among the channels of its type; empty: none
	MembersOf    string  // the channel of the same home whose members belong
	Dialect      string  // that opens it; some types are opened by one dialect only
	By           *Caller // the caller; nil: the program that embeds the hub

	seed *seeding // its history, written before it exists
}

// Opened is the result of Open, with warnings.
type Opened struct {
	*channel.Metadata
	Warnings []string
	Repeated bool // an earlier opening with the same idempotency key is the answer
}

// Open opens a channel. Where the adapter invites, it returns when the last
// invitee has acked, or with the reason why the channel ended before.
func (h *Hub) Open(ctx context.Context, o Opening) (Opened, error) {
	created, opening, err := h.create(ctx, o, nil, nil)
	if err != nil {
		return Opened{}, err
	}
	return h.awaitOpening(ctx, created, opening)
}

// create stores the channel, and returns an opening to wait for while it is pending. If
// it loses a claim to a batch that then fails, it tries again.
func (h *Hub) create(ctx context.Context, o Opening, first *envelope.Envelope, check func(*batch) error) (Opened, *opening, error) {
	for {
		created, p, opening, err := h.begin(ctx, o, first, check)
		if err == nil {
			if _, err := p.Wait(ctx); err != nil {
				return Opened{}, nil, err
			}
			return created, opening, nil
		}
		lost, refusal := taken(err)
		if lost == nil || lost.Wait(ctx) == nil || ctx.Err() != nil {
			return Opened{}, nil, unavailable(refusal)
		}
	}
}

// begin orders the batch of a new channel. The function check, if given, checks the
// channel with its first envelope before anything is stored.
func (h *Hub) begin(ctx context.Context, o Opening, first *envelope.Envelope, check func(*batch) error) (Opened, *Pending, *opening, error) {
	o.Version = cmp.Or(o.Version, 1)
	adapter := h.adapterOf(channel.Key{Type: o.Type, Version: o.Version})
	creator, invitees, err := h.cast(&o, adapter)
	if err != nil {
		return Opened{}, nil, nil, err
	}
	if adapter == nil {
		return Opened{}, nil, nil, h.errNoAdapter(channel.Key{Type: o.Type, Version: o.Version})
	}
	if only, ok := adapter.(channel.DialectOnly); ok && only.Dialect() != o.Dialect {
		return Opened{}, nil, nil, fault.New(fault.Protocol, "a %s is opened through the %s dialect only", o.Type, only.Dialect())
	}
	if first != nil && adapter.Opening() != channel.AtOnce {
		return Opened{}, nil, nil, fault.New(fault.Protocol, "a %s opens by invitation, not with its first envelope", o.Type)
	}
	if err := h.checkPlace(ctx, o); err != nil {
		return Opened{}, nil, nil, err
	}
	release, limited, err := h.authorizeOpen(ctx, creator, invitees, adapter, o)
	if err != nil {
		return Opened{}, nil, nil, err
	}
	defer release()
	m, err := h.describe(adapter, creator, o)
	if err != nil {
		return Opened{}, nil, nil, err
	}
	if err := adapter.ValidateCreate(m); err != nil {
		return Opened{}, nil, nil, err
	}
	state, err := adapter.Initial(m)
	if err != nil {
		return Opened{}, nil, nil, err
	}
	if adapter.Opening() == channel.ByInvitation {
		if err := h.makeLasting(ctx, o.Participants); err != nil {
			return Opened{}, nil, nil, err
		}
	}
	created := Opened{Metadata: m, Warnings: advice(adapter, m)}
	for _, warning := range created.Warnings {
		h.log.Warn("channel opened with a warning", "channel_id", m.ID, "warning", warning)
	}
	if state, err = o.seed.write(ctx, adapter, m, state); err != nil {
		return Opened{}, nil, nil, err
	}
	p, opening, err := h.storeChannel(ctx, adapter, m, state, invitees, first, check, o)
	if err == nil && limited {
		_, _ = p.Wait(ctx) // until it is durable, the next opening would not count it
	}
	return created, p, opening, err
}

func advice(a channel.Adapter, m *channel.Metadata) []string {
	if advisor, ok := a.(channel.Advisor); ok {
		return advisor.Advise(m)
	}
	return nil
}

// cast looks up the participants, and puts the creator first if it is missing. An adapter
// that opens at once needs none; if the members are folded or come from another channel,
// the participants are exactly those listed.
func (h *Hub) cast(o *Opening, a channel.Adapter) (creator *registry.Member, invitees []Profile, err error) {
	if creator = h.registry.ByID(o.Creator); creator == nil {
		return nil, nil, fault.New(fault.NotFound, "creator not registered: '%s'", o.Creator)
	}
	atOnce := a != nil && a.Opening() == channel.AtOnce
	if len(o.Participants) == 0 && !atOnce {
		return nil, nil, fault.New(fault.Protocol, "a channel needs at least one participant besides its creator")
	}
	if limit := h.opts.Limits.Participants; len(o.Participants) > limit {
		return nil, nil, fault.New(fault.TooLarge, "%d participants; at most %d (limits.participants)", len(o.Participants), limit)
	}
	seen := make(map[string]bool, len(o.Participants))
	for _, id := range o.Participants {
		if seen[id] {
			return nil, nil, fault.New(fault.Protocol, "participant '%s' is listed twice", id)
		}
		seen[id] = true
		m := h.registry.ByID(id)
		if m == nil {
			return nil, nil, fault.New(fault.NotFound, "participant '%s' is not registered", id)
		}
		if id != o.Creator {
			invitees = append(invitees, m.Profile())
		}
	}
	_, folded := a.(channel.MemberFolder)
	if !seen[o.Creator] && (!atOnce || !folded && o.MembersOf == "") {
		o.Participants = append([]string{o.Creator}, o.Participants...)
	}
	return creator, invitees, nil
}

// authorizeOpen asks the arbiter. Where the creator's channels are counted, no
// other of its channels opens until release.
func (h *Hub) authorizeOpen(ctx context.Context, creator *registry.Member, invitees []Profile, a channel.Adapter, o Opening) (release func(), limited bool, err error) {
	manifest := a.Manifest()
	release = func() {}
	var open int64
	if creator.Profile().Enforced().Limits.MaxConcurrentChannels > 0 {
		creator.Opening.Lock()
		release, limited = creator.Opening.Unlock, true
		if open, err = h.countOpen(ctx, o.Creator); err != nil {
			release()
			return nil, limited, err
		}
	}
	if err := denied(h.arbiter().AuthorizeOpen(creator.Profile(), invitees, &manifest, open)); err != nil {
		release()
		return nil, limited, err
	}
	return release, limited, nil
}

func (h *Hub) countOpen(ctx context.Context, creator string) (n int64, err error) {
	for _, err := range journal.IndexAll(ctx, h.journal, journal.ScanOptions{Prefix: schema.Key(schema.IndexOwned, creator, "")}) {
		if err != nil {
			return 0, unavailable(err)
		}
		n++
	}
	return n, nil
}

func (h *Hub) describe(a channel.Adapter, creator *registry.Member, o Opening) (*channel.Metadata, error) {
	now := h.now().UTC().Truncate(time.Microsecond) // the precision that stored metadata has
	expires, err := expiry(a, creator, o.TTL, now)
	if err != nil {
		return nil, err
	}
	if len(o.Knobs) > 0 {
		if v := jsontext.Value(o.Knobs); v.Kind() != '{' || !jsonscan.Valid(o.Knobs) {
			return nil, fault.New(fault.Invalid, "knobs is not a JSON object")
		}
		// Every invitation carries them.
		if limit := h.opts.Limits.EventBytes; len(o.Knobs) > limit {
			return nil, fault.New(fault.TooLarge, "knobs has %d bytes; at most %d (limits.event)", len(o.Knobs), limit)
		}
		if err := tooDeep("knobs", o.Knobs); err != nil {
			return nil, err
		}
	}
	id, err := h.minter.Mint(now, "")
	if err != nil {
		return nil, unavailable(err)
	}
	if o.Home != "" {
		id = schema.InHome(o.Home, id)
	}
	manifest := a.Manifest()
	shared, err := h.shared.Manifest(&manifest)
	if err != nil {
		return nil, err
	}
	m := &channel.Metadata{
		ID: id, Manifest: shared, Creator: h.shared.Name(o.Creator), State: channel.Pending,
		CreatedAt: now, ExpiresAt: expires, Parent: o.Parent, Knobs: h.shared.Knobs(bytes.TrimSpace(o.Knobs)),
		Labels: maps.Clone(o.Labels), RequiredAcks: o.RequiredAcks, Name: o.Name, MembersOf: o.MembersOf,
	}
	size := len(o.Intent)
	for k, v := range o.Labels {
		size += len(k) + len(v)
	}
	if err := h.boundRecord("labels and intent", size); err != nil {
		return nil, err
	}
	if o.Intent != "" {
		if m.Labels == nil {
			m.Labels = map[string]string{}
		}
		m.Labels["intent"] = o.Intent
	}
	m.Participants = slices.Grow(m.Participants, len(o.Participants))
	for i, agent := range o.Participants {
		m.Participants = append(m.Participants, channel.Participant{
			Agent: h.shared.Name(agent), Role: role(agent, o), Order: i, JoinedAt: now,
		})
	}
	if a.Opening() == channel.ByInvitation {
		m.PendingAcks = m.Others(m.Creator)
	}
	return m, nil
}

// expiry is when a new channel ends by itself; zero is never.
func expiry(a channel.Adapter, creator *registry.Member, ttl *identity.TTL, now time.Time) (time.Time, error) {
	if ttl == nil && a.Opening() == channel.AtOnce {
		return time.Time{}, nil
	}
	if ttl == nil {
		limits := creator.Profile().Rule.Limits
		ttl = &limits.ChannelTTLDefault
	}
	seconds, err := ttl.Seconds()
	if err != nil {
		return time.Time{}, err
	}
	return identity.Expiry(now, seconds)
}

func role(agent string, o Opening) channel.Role {
	switch {
	case agent == o.Creator:
		return channel.Initiator
	case len(o.Participants) == 2:
		return channel.Respondent
	}
	return channel.Member
}

// storeChannel writes the channel, its invitations or its first envelope, and
// what follows from them, as one batch.
func (h *Hub) storeChannel(ctx context.Context, a channel.Adapter, m *channel.Metadata, state channel.State, invitees []Profile, first *envelope.Envelope, check func(*batch) error, o Opening) (*Pending, *opening, error) {
	place, err := h.journal.Place(ctx, h.shardOf(m.ID))
	if err != nil {
		return nil, nil, err
	}
	if err := h.delivery.await(ctx); err != nil {
		return nil, nil, err
	}
	ch, _ := h.channels.claim(m.ID) // new, so it is locked
	defer ch.mu.Unlock()
	ch.adapter, ch.meta, ch.state, ch.term, ch.touched = a, m, state, place.Term, expect.InstantOf(h.now())
	o.seed.plant(ch)
	b := h.newBatch(ch)
	b.now, b.by = m.CreatedAt, o.By
	wait := h.openings.begin(m.ID)
	var p *Pending
	err = h.guarded(func() error {
		if h.homes.closed(m.ID) {
			return fault.New(fault.NotFound, "home '%s' is being deleted", HomeOf(m.ID))
		}
		if err := h.checkWhole(ctx, a, m); err != nil {
			return err
		}
		if err := b.begin(m, invitees, first, check); err != nil {
			return err
		}
		if err := o.seed.finish(b); err != nil {
			return err
		}
		p, err = b.order(ctx)
		return err
	})
	if err != nil {
		if first != nil {
			h.vacate(first.Sender, b.places)
		}
		h.openings.finish(m.ID, err)
		h.channels.drop(ch)
		return nil, nil, err
	}
	p.opened = true
	b.release()
	return p, wait, nil
}

// begin puts a channel's creation into the batch.
func (b *batch) begin(m *channel.Metadata, invitees []Profile, first *envelope.Envelope, check func(*batch) error) error {
	opened, err := b.hub.ledger.OpenedRecord(m, b.by.audited())
	if err != nil {
		return err
	}
	b.audits = append(b.audits, opened)
	b.note("created", b.meta, "", "")
	if err := b.watchFrom(m); err != nil {
		return err
	}
	b.refusal = b.invite(invitees)
	_, needed := acksNeeded(b.meta)
	switch {
	case b.refusal != nil:
		err = b.end(channel.Closed, "invite_failed")
	case len(b.meta.PendingAcks) == 0 || needed == 0:
		err = b.activate()
	}
	if err != nil {
		return err
	}
	if first != nil {
		first.Sender = cmp.Or(first.Sender, m.Creator)
		if check != nil {
			if err := check(b); err != nil {
				return err
			}
		}
		if err := b.ch.adapter.ValidateSend(b.meta, b.state, first); err != nil {
			return err
		}
		if err := b.accept(first); err != nil {
			return err
		}
	}
	return b.recordCreation(m)
}

// recordCreation writes the metadata with its index entries, in front of the
// changes that came with the creation.
func (b *batch) recordCreation(m *channel.Metadata) error {
	created := *m
	if b.active {
		created.State = channel.Active
	}
	arena, data, err := schema.AppendCreated(b.arena, &created)
	if err != nil {
		return err
	}
	b.arena = arena
	home, own := schema.Split(m.ID)
	listed := schema.ListedIn(home, dialectOf(b.ch.adapter))
	record := journal.Record{Data: data, Put: make([]journal.IndexPut, 0, 6+len(m.Participants)+len(m.Labels))}
	put := func(key, value []byte) { record.Put = append(record.Put, journal.IndexPut{Key: key, Value: value}) }
	put(schema.Key(schema.IndexOpen, own), listed)
	put(schema.Key(schema.IndexOwned, m.Creator, own), schema.EncodeManifestKey(m.Manifest.Key(), home))
	if !b.lists() {
		for _, p := range m.Participants {
			put(schema.Key(schema.IndexTurn, p.Agent, own), listed)
		}
	}
	for k, v := range m.Labels {
		put(schema.Key(schema.IndexLabel, schema.Digest(k, v), own), []byte(home))
	}
	if m.Name != "" {
		record.Take = append(record.Take, journal.Take{Name: schema.ChannelNameClaim(home, m.Manifest.Type, m.Name)})
	}
	if b.openingKey != "" {
		record.Take = append(record.Take, journal.Take{Name: b.openingKey, Expires: b.now.Add(b.hub.opts.IdempotencyWindow)})
	}
	b.metas = slices.Insert(b.metas, 0, record)
	return nil
}
