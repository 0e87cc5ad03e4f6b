package hub

import (
	"context"
	"errors"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/profile"
	"github.com/parley-hub/parley/hub/internal/registry"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/journal"
)

// Registration is a request for a new identity.
type Registration struct {
	// ID is that of an adopted identity, which becomes permanent; empty: the hub mints
	// one.
	ID       string
	Passport *identity.Passport
	Resume   *identity.Resume // nil: empty
	Rule     *identity.Rule   // nil: the default
	Skill    *string
	// Proved says that the surface has proved the identity by its own means, an access
	// key for example: its claim is not verified.
	Proved bool
}

// Register makes a new identity and returns it stamped. It refuses a name that exists; an
// identity that returns attaches instead.
func (h *Hub) Register(ctx context.Context, r Registration) (Profile, error) {
	if err := r.Passport.Validate(); err != nil {
		return Profile{}, err
	}
	if envelope.ValidID(r.Passport.Name) {
		return Profile{}, fault.New(fault.Invalid, "passport.name %q looks like an id, and could be taken for the agent that has it; choose another", r.Passport.Name)
	}
	if r.ID == "" && h.finderOf(r.Passport.Name) != nil {
		return Profile{}, fault.New(fault.Invalid, "passport.name %.200q is one of another dialect's peers; choose another", r.Passport.Name)
	}
	if r.Rule != nil {
		if err := r.Rule.CheckBounds(h.opts.Limits.RuleGlobs); err != nil {
			return Profile{}, err
		}
	}
	if r.Resume != nil {
		if err := r.Resume.CheckBounds(); err != nil {
			return Profile{}, err
		}
	}
	if !r.Proved {
		if err := h.verify(ctx, r.Passport); err != nil {
			return Profile{}, err
		}
	}
	if err := denied(h.arbiter().AuthorizeRegister(r.Passport)); err != nil {
		return Profile{}, err
	}
	if size := h.registry.Size(); size >= h.opts.Limits.Agents {
		return Profile{}, fault.New(fault.TooLarge, "%d identities are registered, which is the limit; unregister some or raise limits.agents", size)
	}
	if r.ID != "" {
		adopted, err := h.adopted(r.ID)
		if err != nil {
			return Profile{}, err
		}
		adopted.Write.Lock()
		defer adopted.Write.Unlock()
		if _, err := h.adopted(r.ID); err != nil {
			return Profile{}, err // registered or removed in the meantime
		}
	}
	m, d, err := h.newMember(r)
	if err != nil {
		return Profile{}, err
	}
	if err := h.storeNew(ctx, m, d); err != nil {
		return Profile{}, err
	}
	m = h.registry.Add(m)
	p := m.Profile()
	h.log.Info("agent registered", "agent_id", m.ID, "name", p.Passport.Name)
	h.hooks.each(func(l Listener) {
		l.AgentEvent(AgentEvent{Agent: m.ID, Kind: "registered", Passport: p.Passport, At: p.Passport.CreatedAt})
	})
	return p, nil
}

func (h *Hub) verify(ctx context.Context, p *identity.Passport) error {
	if p.Kind.Is(identity.RemoteAgent) {
		return h.opts.Auth.VerifyRemote(ctx, p)
	}
	return h.opts.Auth.Verify(ctx, p, p.Auth.Scheme, p.Auth.Claim)
}

func (h *Hub) newMember(r Registration) (*registry.Member, *profile.Full, error) {
	now := h.now().UTC()
	id := r.ID
	var err error
	if id == "" {
		if id, err = h.minter.Mint(now, ""); err != nil {
			return nil, nil, err
		}
	}
	passport := r.Passport.Redacted()
	passport.AgentID, passport.CreatedAt = id, now
	resume := identity.DefaultResume()
	if r.Resume != nil {
		resume = *r.Resume.Clone()
	}
	rule := identity.DefaultRule()
	if r.Rule != nil {
		rule = *r.Rule.Clone()
	}
	first, d, err := profile.New(passport, &resume, &rule, r.Skill)
	if err != nil {
		return nil, nil, err
	}
	if err := first.BoundNew(h.opts.Limits.ProfileBytes); err != nil {
		return nil, nil, err
	}
	first.Enforce(h.opts.Limits.Inbox)
	m := &registry.Member{ID: id}
	m.Current.Store(first)
	return m, d, nil
}

// storeNew writes a new identity. Its name is a claim, so that exactly one of several
// concurrent registrations wins, and a registration loses only to a durable one.
func (h *Hub) storeNew(ctx context.Context, m *registry.Member, d *profile.Full) error {
	p := m.Profile()
	passport, err := p.Passport.Record()
	if err != nil {
		return err
	}
	if err := h.boundRecord("passport", len(passport)); err != nil {
		return err
	}
	data, err := identity.Marshal(schema.AgentRecord{
		Kind: schema.AgentRegistered, Passport: passport, Resume: d.Resume, Rule: p.Rule, Skill: d.Skill,
	})
	if err != nil {
		return err
	}
	audit, err := h.auditRecord("agent_registered", fields{"agent_id": m.ID, "name": p.Passport.Name})
	if err != nil {
		return err
	}
	commit := journal.Batch{Appends: []journal.Append{
		{
			Log:     h.tenant.Agent(m.ID),
			Expect:  journal.Exactly(0),
			Records: []journal.Record{{Data: data, Take: []journal.Take{{Name: schema.NameClaim(p.Passport.Name)}}}},
		},
		{Log: h.tenant.Audit(), Records: []journal.Record{audit}},
	}}
	for {
		ticket, err := h.journal.Append(ctx, commit)
		if conflict, ok := errors.AsType[*journal.ConflictError](err); ok && conflict.Kind == journal.ClaimConflict {
			if err := conflict.LostTo.Wait(ctx); err != nil {
				if ctx.Err() != nil {
					return unavailable(err)
				}
				continue // the batch that had claimed the name was not stored
			}
			return fault.New(fault.Protocol, "name '%s' is already registered; attach to it instead, or choose another", p.Passport.Name).Because(fault.NameTaken)
		}
		if err != nil {
			return unavailable(err)
		}
		if err := ticket.Wait(ctx); err != nil {
			return unavailable(err)
		}
		h.ledger.StoredIn(&commit)
		return nil
	}
}

// Unregister removes an identity and everything stored of it. Its channels and
// tasks stay.
func (h *Hub) Unregister(ctx context.Context, id string) error { return h.unregister(ctx, id, nil) }

// unregister is Unregister with the caller, for the audit.
func (h *Hub) unregister(ctx context.Context, id string, by *Caller) error {
	m, err := h.registry.Require(id)
	if err != nil {
		return err
	}
	m.Write.Lock()
	defer m.Write.Unlock()
	if h.registry.ByID(id) != m {
		return fault.New(fault.NotFound, "agent '%s' not found: it was just unregistered", id).Because(fault.NoAgent)
	}
	if m.Transient.Load() != nil {
		h.registry.Remove(m)
		m.Link.Clear()
		return nil
	}
	name := m.Name()
	f := fields{"agent_id": id, "name": name}
	by.describe(f)
	audit, err := h.auditRecord("agent_unregistered", f)
	if err != nil {
		return err
	}
	data, err := json.Marshal(schema.AgentRecord{Kind: schema.AgentUnregistered})
	if err != nil {
		return err
	}
	err = h.commit(ctx, journal.Batch{Appends: []journal.Append{
		{
			Log:     h.tenant.Agent(id),
			Records: []journal.Record{{Data: data, Release: []string{schema.NameClaim(name)}}},
		},
		{Log: h.tenant.Audit(), Records: []journal.Record{audit}},
	}})
	if err != nil {
		return err
	}
	h.registry.Remove(m)
	h.profiles.Remove(id)
	m.Link.Clear()
	if err := h.forget(ctx, id); err != nil {
		return err
	}
	h.hooks.each(func(l Listener) {
		l.AgentEvent(AgentEvent{Agent: id, Kind: "unregistered", Passport: m.Profile().Passport, At: h.now().UTC()})
	})
	return nil
}

// forget removes what an unregistered identity left: its log and its cursors.
func (h *Hub) forget(ctx context.Context, id string) error {
	for entry, err := range h.scanOpenAndEnded(ctx, channelsOf(id), "", false) {
		if err != nil {
			return unavailable(err)
		}
		if err := h.dropCursors(ctx, schema.Listed(entry), id); err != nil {
			return err
		}
	}
	ticket, err := h.journal.Drop(ctx, h.tenant.Agent(id))
	if err != nil {
		return unavailable(err)
	}
	return unavailable(ticket.Wait(ctx))
}

// Authenticate checks that a claim proves the identity of a name, and returns the
// identity.
func (h *Hub) Authenticate(ctx context.Context, name, scheme string, claim []byte) (Profile, error) {
	m := h.registry.ByName(name)
	if m == nil {
		return Profile{}, fault.New(fault.NotFound, "agent '%s' not found: register it first", name).Because(fault.NoAgent)
	}
	p := m.Profile()
	if err := h.opts.Auth.Verify(ctx, p.Passport, scheme, claim); err != nil {
		return Profile{}, err
	}
	return p, nil
}

// Adopt adds an identity that is not stored, under an id that its dialect derives from
// the dialect's own name for it. It has the rights of a registered one, but is not listed
// and not found by name. It costs no write and ends with the process. Register with its
// id makes it permanent; Unregister removes it. Adopting it again returns it unchanged.
func (h *Hub) Adopt(_ context.Context, id string, r Registration) (Profile, error) {
	if !envelope.ValidID(id) {
		return Profile{}, fault.New(fault.Invalid, "%.100q is not an id: 32 lower-case hexadecimal digits are", id)
	}
	if err := r.Passport.Validate(); err != nil {
		return Profile{}, err
	}
	if r.Rule != nil {
		if err := r.Rule.CheckBounds(h.opts.Limits.RuleGlobs); err != nil {
			return Profile{}, err
		}
	}
	r.ID = id
	m, d, err := h.newMember(r)
	if err != nil {
		return Profile{}, err
	}
	m.Transient.Store(d)
	if m, err = h.registry.Adopt(m, h.opts.Limits.Transient); err != nil {
		return Profile{}, err
	}
	return m.Profile(), nil
}

// Disown removes an adopted identity. It does nothing if the identity was registered
// since, or is not there.
func (h *Hub) Disown(id string) {
	m := h.registry.ByID(id)
	if m == nil {
		return
	}
	m.Write.Lock()
	defer m.Write.Unlock()
	if m.Transient.Load() != nil && h.registry.ByID(id) == m {
		h.registry.Remove(m)
		m.Link.Clear()
	}
}

// adopted returns an identity that is adopted and not registered.
func (h *Hub) adopted(id string) (*registry.Member, error) {
	m := h.registry.ByID(id)
	if m == nil || m.Transient.Load() == nil {
		return nil, fault.New(fault.NotFound, "no identity is adopted under the id '%.100s'; leave the id out, and one is made", id).Because(fault.NoAgent)
	}
	return m, nil
}

// makeLasting registers the participants of a new channel that are only adopted,
// because an invited identity must exist after a restart too.
func (h *Hub) makeLasting(ctx context.Context, ids []string) error {
	for _, id := range ids {
		m := h.registry.ByID(id)
		if m == nil || m.Transient.Load() == nil {
			continue
		}
		_, err := h.Register(ctx, Registration{ID: id, Passport: m.Profile().Passport, Proved: true})
		if err != nil && h.Transient(id) { // nobody else has registered it meanwhile
			return err
		}
	}
	return nil
}

// Transient reports whether an identity is adopted and not registered.
func (h *Hub) Transient(id string) bool {
	m := h.registry.ByID(id)
	return m != nil && m.Transient.Load() != nil
}

func errTransient(id string) error {
	return fault.New(fault.Protocol, "'%s' is adopted and not registered, so nothing of it is stored; register it first", id)
}
