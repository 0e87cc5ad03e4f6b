package hub

import (
	"context"
	"errors"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/journal"
)

// Registration is a request for a new identity.
type Registration struct {
	Passport *identity.Passport
	Resume   *identity.Resume // nil: empty
	Rule     *identity.Rule   // nil: the default
	Skill    *string
}

// record is an identity as its log tells it.
type record struct {
	Profile
	samples map[string]*identity.Samples
	seq     uint64 // of its last record
}

// Register makes a new identity and returns it stamped. A name that exists is
// refused; an identity that comes back attaches instead.
func (h *Hub) Register(ctx context.Context, r Registration) (Profile, error) {
	if err := r.Passport.Validate(); err != nil {
		return Profile{}, err
	}
	if envelope.ValidID(r.Passport.Name) {
		return Profile{}, fault.New(fault.Invalid, "passport.name %q looks like an id, and could be taken for the agent that has it; choose another", r.Passport.Name)
	}
	if r.Rule != nil {
		if err := r.Rule.CheckBounds(); err != nil {
			return Profile{}, err
		}
	}
	if err := h.verify(ctx, r.Passport); err != nil {
		return Profile{}, err
	}
	if err := denied(h.arbiter().AuthorizeRegister(r.Passport)); err != nil {
		return Profile{}, err
	}
	if size := h.registry.size(); size >= h.opts.Limits.Agents {
		return Profile{}, fault.New(fault.TooLarge, "%d identities are registered, which is the limit; unregister some or raise limits.agents", size)
	}
	m, err := h.newMember(r)
	if err != nil {
		return Profile{}, err
	}
	if err := h.storeNew(ctx, m); err != nil {
		return Profile{}, err
	}
	h.registry.add(m)
	p := m.profile()
	h.log.Info("agent registered", "agent_id", m.id, "name", p.Passport.Name)
	h.hooks.each(func(l Listener) {
		l.AgentEvent(AgentEvent{Agent: m.id, Kind: "registered", Passport: p.Passport, At: p.Passport.CreatedAt})
	})
	return p, nil
}

func (h *Hub) verify(ctx context.Context, p *identity.Passport) error {
	if p.Kind.Is(identity.RemoteAgent) {
		return h.opts.Auth.VerifyRemote(ctx, p)
	}
	return h.opts.Auth.Verify(ctx, p, p.Auth.Scheme, p.Auth.Claim)
}

func (h *Hub) newMember(r Registration) (*member, error) {
	now := h.now().UTC()
	id, err := h.minter.Mint(now, "")
	if err != nil {
		return nil, err
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
	first := &record{Profile: Profile{Passport: passport, Resume: &resume, Rule: &rule, Skill: r.Skill}, seq: 1}
	h.enforce(first)
	m := &member{id: id}
	m.current.Store(first)
	return m, nil
}

// storeNew writes a new identity. Its name is a claim, so that of several
// registrations at once exactly one wins, and loses only to a durable one.
func (h *Hub) storeNew(ctx context.Context, m *member) error {
	p := m.profile()
	passport, err := p.Passport.Record()
	if err != nil {
		return err
	}
	if err := h.boundRecord("passport", len(passport)); err != nil {
		return err
	}
	data, err := identity.Marshal(schema.AgentRecord{
		Kind: schema.AgentRegistered, Passport: passport, Resume: p.Resume, Rule: p.Rule, Skill: p.Skill,
	})
	if err != nil {
		return err
	}
	audit, err := h.auditRecord("agent_registered", fields{"agent_id": m.id, "name": p.Passport.Name})
	if err != nil {
		return err
	}
	commit := journal.Batch{Appends: []journal.Append{
		{
			Log:     h.tenant.Agent(m.id),
			Records: []journal.Record{{Data: data, Take: []journal.Take{{Name: schema.NameClaim(p.Passport.Name)}}}},
		},
		{Log: h.tenant.Audit(), Records: []journal.Record{audit}},
	}}
	for {
		ticket, err := h.journal.Append(ctx, commit)
		var conflict *journal.ConflictError
		if errors.As(err, &conflict) && conflict.Kind == journal.ClaimConflict {
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
		h.storedIn(&commit)
		return nil
	}
}

// Unregister removes an identity and everything stored of it. Its channels and
// tasks stay.
func (h *Hub) Unregister(ctx context.Context, id string) error {
	m, err := h.registry.require(id)
	if err != nil {
		return err
	}
	m.write.Lock()
	defer m.write.Unlock()
	if h.registry.byID(id) != m {
		return fault.New(fault.NotFound, "agent '%s' not found: it was just unregistered", id).Because(fault.NoAgent)
	}
	name := m.name()
	audit, err := h.auditRecord("agent_unregistered", fields{"agent_id": id, "name": name})
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
	h.registry.remove(m)
	m.link.clear()
	if err := h.forget(ctx, id); err != nil {
		return err
	}
	h.hooks.each(func(l Listener) {
		l.AgentEvent(AgentEvent{Agent: id, Kind: "unregistered", Passport: m.profile().Passport, At: h.now().UTC()})
	})
	return nil
}

// forget removes what an unregistered identity left: its log and its cursors.
func (h *Hub) forget(ctx context.Context, id string) error {
	for entry, err := range journal.IndexAll(ctx, h.journal, journal.ScanOptions{Prefix: schema.Key(schema.IndexMember, id, "")}) {
		if err != nil {
			return unavailable(err)
		}
		if err := h.dropCursor(ctx, schema.Listed(entry), id); err != nil {
			return err
		}
	}
	ticket, err := h.journal.Drop(ctx, h.tenant.Agent(id))
	if err != nil {
		return unavailable(err)
	}
	return unavailable(ticket.Wait(ctx))
}

// loadRegistry reads every identity, and finishes what an interrupted
// unregistration left.
func (h *Hub) loadRegistry(ctx context.Context) error {
	opts := journal.LogsOptions{Family: schema.FamilyAgent, Limit: journal.MaxPageEntries}
	for {
		page, err := h.journal.Logs(ctx, h.tenant.Directory(), opts)
		if err != nil {
			return unavailable(err)
		}
		for _, info := range page.Logs {
			opts.After = info.Log
			if err := h.loadMember(ctx, info.Log.ID); err != nil {
				return err
			}
		}
		if !page.More {
			return nil
		}
	}
}

func (h *Hub) loadMember(ctx context.Context, id string) error {
	var r record
	for entry, err := range journal.Records(ctx, h.journal, h.tenant.Agent(id), journal.ReadOptions{}) {
		if err != nil {
			h.log.Error("identity cannot be read and is left out", "agent_id", id, "error", err)
			return nil
		}
		gone, err := r.apply(entry)
		if err != nil {
			h.log.Error("identity cannot be read and is left out", "agent_id", id, "seq", entry.Seq, "error", err)
			return nil
		}
		if gone {
			return h.forget(ctx, id)
		}
	}
	if r.Passport == nil {
		return nil
	}
	h.enforce(&r)
	m := &member{id: id}
	m.current.Store(&r)
	h.registry.add(m)
	return nil
}

func (r *record) apply(entry journal.Entry) (gone bool, err error) {
	var stored schema.AgentRecord
	if err := identity.Unmarshal("identity", entry.Data, &stored); err != nil {
		return false, err
	}
	if len(stored.Passport) > 0 {
		if r.Passport, err = identity.ParseRecord(stored.Passport); err != nil {
			return false, err
		}
	}
	if stored.Resume != nil {
		r.Resume = stored.Resume
	}
	if stored.Rule != nil {
		r.Rule = stored.Rule
	}
	if stored.Kind == schema.AgentCeiling {
		r.Ceiling = stored.Ceiling
	}
	if stored.Kind == schema.AgentRegistered || stored.Kind == schema.AgentSkill {
		r.Skill = stored.Skill
	}
	for capability, data := range stored.Samples {
		samples := &identity.Samples{}
		if err := samples.UnmarshalBinary(data); err != nil {
			return false, err
		}
		if r.samples == nil {
			r.samples = map[string]*identity.Samples{}
		}
		r.samples[capability] = samples
	}
	r.seq = entry.Seq
	return stored.Kind == schema.AgentUnregistered, nil
}

// change rewrites part of an identity: edit works on a copy, and what it made
// is visible once it is durable.
func (h *Hub) change(ctx context.Context, id string, edit func(r *record, now time.Time) (schema.AgentRecord, fields, error), audited string, more ...journal.Record) (Profile, error) {
	m, err := h.registry.require(id)
	if err != nil {
		return Profile{}, err
	}
	m.write.Lock()
	defer m.write.Unlock()
	next := *m.current.Load()
	stored, audit, err := edit(&next, h.now().UTC())
	if err != nil {
		return Profile{}, err
	}
	data, err := identity.Marshal(stored)
	if err != nil {
		return Profile{}, err
	}
	line, err := h.auditRecord(audited, audit)
	if err != nil {
		return Profile{}, err
	}
	records := append([]journal.Record{{Data: data}}, more...)
	err = h.commit(ctx, journal.Batch{Appends: []journal.Append{
		{Log: h.tenant.Agent(id), Expect: journal.Exactly(next.seq), Records: records},
		{Log: h.tenant.Audit(), Records: []journal.Record{line}},
	}})
	if err != nil {
		return Profile{}, err
	}
	next.seq += uint64(len(records))
	h.enforce(&next)
	m.current.Store(&next)
	return next.Profile, nil
}

// SetResume replaces a resume; the hub counts its version.
func (h *Hub) SetResume(ctx context.Context, id string, resume *identity.Resume) error {
	p, err := h.change(ctx, id, func(r *record, now time.Time) (schema.AgentRecord, fields, error) {
		next := resume.Clone()
		next.Version, next.LastUpdated = r.Resume.Version+1, now
		r.Resume = next
		return schema.AgentRecord{Kind: schema.AgentResume, Resume: next},
			fields{"agent_id": id, "version": next.Version, "source": "tenant"}, nil
	}, "resume_set")
	if err != nil {
		return err
	}
	h.tellAgent(AgentEvent{Agent: id, Kind: "resume_set", Resume: p.Resume})
	return nil
}

// SetRule replaces an identity's own rule; it holds from the next check on, as
// far as the operator's rule and the hub's limits allow.
func (h *Hub) SetRule(ctx context.Context, id string, rule *identity.Rule) error {
	if err := rule.CheckBounds(); err != nil {
		return err
	}
	p, err := h.change(ctx, id, func(r *record, _ time.Time) (schema.AgentRecord, fields, error) {
		next := rule.Clone()
		next.Version = r.Rule.Version + 1
		r.Rule = next
		return schema.AgentRecord{Kind: schema.AgentRule, Rule: next}, fields{"agent_id": id, "version": next.Version}, nil
	}, "rule_set")
	if err != nil {
		return err
	}
	h.tellAgent(AgentEvent{Agent: id, Kind: "rule_set", Rule: p.Rule})
	return nil
}

// SetSkill stores a skill document verbatim; nil removes it.
func (h *Hub) SetSkill(ctx context.Context, id string, skill *string) error {
	_, err := h.change(ctx, id, func(r *record, _ time.Time) (schema.AgentRecord, fields, error) {
		r.Skill = skill
		return schema.AgentRecord{Kind: schema.AgentSkill, Skill: skill}, fields{"agent_id": id, "removed": skill == nil}, nil
	}, "skill_set")
	if err != nil {
		return err
	}
	h.tellAgent(AgentEvent{Agent: id, Kind: "skill_set", Removed: skill == nil})
	return nil
}

func (h *Hub) tellAgent(ev AgentEvent) {
	ev.At = h.now().UTC()
	h.hooks.each(func(l Listener) { l.AgentEvent(ev) })
}

// Authenticate proves that whoever holds the claim is the identity of that
// name, and returns it.
func (h *Hub) Authenticate(ctx context.Context, name, scheme string, claim []byte) (Profile, error) {
	m := h.registry.byName(name)
	if m == nil {
		return Profile{}, fault.New(fault.NotFound, "agent '%s' not found: register it first", name).Because(fault.NoAgent)
	}
	p := m.profile()
	if err := h.opts.Auth.Verify(ctx, p.Passport, scheme, claim); err != nil {
		return Profile{}, err
	}
	return p, nil
}
