package hub

import (
	"context"
	"maps"
	"time"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/journal"
)

// edit changes copies of what is kept of an identity, and returns what is
// stored of that. It replaces what the copies point to and never changes it.
type edit func(r *record, d *details, now time.Time) (schema.AgentRecord, fields, error)

// change rewrites part of an identity. It is visible once it is durable.
func (h *Hub) change(ctx context.Context, id string, edit edit, audited string, take ...journal.Take) (Profile, *details, error) {
	m, err := h.registry.require(id)
	if err != nil {
		return Profile{}, nil, err
	}
	m.write.Lock()
	defer m.write.Unlock()
	if m.transient.Load() != nil {
		return Profile{}, nil, errTransient(id)
	}
	before, err := h.detailsOf(ctx, m)
	if err != nil {
		return Profile{}, nil, err
	}
	next, d := *m.current.Load(), *before
	stored, audit, err := edit(&next, &d, h.now().UTC())
	if err != nil {
		return Profile{}, nil, err
	}
	if err := h.remeasure(&next, &d, before, &stored); err != nil {
		return Profile{}, nil, err
	}
	data, err := identity.Marshal(stored)
	if err != nil {
		return Profile{}, nil, err
	}
	records, err := next.extend(&d, journal.Record{Data: data, Take: take})
	if err != nil {
		return Profile{}, nil, err
	}
	line, err := h.auditRecord(audited, audit)
	if err != nil {
		return Profile{}, nil, err
	}
	err = h.commit(ctx, journal.Batch{Appends: []journal.Append{
		{Log: h.tenant.Agent(id), Expect: journal.Exactly(before.seq), Records: records},
		{Log: h.tenant.Audit(), Records: []journal.Record{line}},
	}})
	if err != nil {
		return Profile{}, nil, err
	}
	h.enforce(&next)
	m.current.Store(&next)
	h.profiles.put(id, &d)
	return next.Profile, &d, nil
}

// remeasure brings what is derived of the details up to date, and refuses a
// profile that has grown too large.
func (h *Hub) remeasure(next *record, d, before *details, stored *schema.AgentRecord) (err error) {
	sizes := next.sizes
	switch {
	case stored.Kind == schema.AgentObservation && len(d.Resume.Observed) == len(before.Resume.Observed):
		return nil // some counters changed, which is not worth the time
	case stored.Kind == schema.AgentCeiling:
		return nil
	}
	if next.sizes, err = measure(d, next.Rule); err != nil {
		return err
	}
	if d.Resume != before.Resume {
		next.brief = newBrief(d.Resume)
	}
	return h.boundProfile(sizes, next.sizes)
}

// Bounds of what is written after the last whole record before the next one.
// Between them it is about the size of one, so that writing costs at most twice
// the change, and reading at most twice the details.
const (
	minTail  = 16 << 10
	maxTail  = 128 << 10
	maxWhole = 2 << 20 // of details from before there was a bound; more is not repeated
)

// extend returns the records to write for a change: the change itself and,
// now and then, the whole.
func (r *record) extend(d *details, change journal.Record) ([]journal.Record, error) {
	records := []journal.Record{change}
	r.seq++
	r.tail += len(change.Data)
	if r.tail > min(max(minTail, r.sizes.total()+d.sampleBytes()), maxTail) {
		whole, err := d.whole()
		if err != nil {
			return nil, err
		}
		if len(whole) <= maxWhole {
			records = append(records, journal.Record{Data: whole})
			r.seq++
			r.base, r.tail = r.seq, 0
		}
	}
	d.seq = r.seq
	return records, nil
}

// profileSizes are the bytes of the parts of a profile that its owner writes.
type profileSizes struct{ resume, rule, skill int }

func (s profileSizes) total() int { return s.resume + s.rule + s.skill }

func measure(d *details, rule *identity.Rule) (s profileSizes, err error) {
	resume, err := identity.Marshal(d.Resume)
	if err != nil {
		return s, err
	}
	own, err := identity.Marshal(rule)
	if err != nil {
		return s, err
	}
	s = profileSizes{resume: len(resume), rule: len(own)}
	if d.Skill != nil {
		s.skill = len(*d.Skill)
	}
	return s, nil
}

// boundProfile refuses a profile that is too large, unless it shrinks: one from
// before there was a bound can be brought under it in steps.
func (h *Hub) boundProfile(before, after profileSizes) error {
	limit := h.opts.Limits.ProfileBytes
	if after.total() <= limit || after.total() <= before.total() {
		return nil
	}
	return fault.New(fault.TooLarge, "profile: skill (%d bytes), resume (%d) and rule (%d) have %d bytes together; at most %d (limits.profile)",
		after.skill, after.resume, after.rule, after.total(), limit)
}

// SetResume replaces a resume; the hub counts its version.
func (h *Hub) SetResume(ctx context.Context, id string, resume *identity.Resume) error {
	if err := resume.CheckBounds(); err != nil {
		return err
	}
	_, d, err := h.change(ctx, id, func(_ *record, d *details, now time.Time) (schema.AgentRecord, fields, error) {
		next := resume.Clone()
		next.Version, next.LastUpdated = d.Resume.Version+1, now
		d.Resume = next
		return schema.AgentRecord{Kind: schema.AgentResume, Resume: next},
			fields{"agent_id": id, "version": next.Version, "source": "tenant"}, nil
	}, "resume_set")
	if err != nil {
		return err
	}
	h.tellAgent(AgentEvent{Agent: id, Kind: "resume_set", Resume: d.Resume})
	return nil
}

// SetRule replaces an identity's own rule; it holds from the next check on, as
// far as the operator's rule and the hub's limits allow.
func (h *Hub) SetRule(ctx context.Context, id string, rule *identity.Rule) error {
	if err := rule.CheckBounds(); err != nil {
		return err
	}
	p, _, err := h.change(ctx, id, func(r *record, _ *details, _ time.Time) (schema.AgentRecord, fields, error) {
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
	_, _, err := h.change(ctx, id, func(_ *record, d *details, _ time.Time) (schema.AgentRecord, fields, error) {
		d.Skill = skill
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

// SetCeiling sets the operator's rule for an identity, which its own rule
// cannot exceed and SetRule does not change. It holds from the next check on;
// nil removes it.
func (h *Hub) SetCeiling(ctx context.Context, id string, ceiling *identity.Ceiling) (Profile, error) {
	if ceiling != nil {
		if err := ceiling.Check(); err != nil {
			return Profile{}, err
		}
		ceiling = ceiling.Clone()
	}
	p, _, err := h.change(ctx, id, func(r *record, _ *details, _ time.Time) (schema.AgentRecord, fields, error) {
		r.Ceiling = ceiling
		return schema.AgentRecord{Kind: schema.AgentCeiling, Ceiling: ceiling}, fields{"agent_id": id, "removed": ceiling == nil}, nil
	}, "operator_rule_set")
	if err != nil {
		return Profile{}, err
	}
	h.tellAgent(AgentEvent{Agent: id, Kind: "operator_rule_set", Removed: ceiling == nil})
	return p, nil
}

// enforce computes the rule that holds from what is stored and the hub's
// limits.
func (h *Hub) enforce(r *record) {
	if r.Rule != nil {
		r.enforced = identity.Enforce(r.Rule, r.Ceiling, int64(h.opts.Limits.Inbox))
	}
}

// Observation is the end of a task as it counts in its owner's track record.
type Observation struct {
	Owner      string
	Capability string
	Outcome    identity.Outcome
	LatencyMS  *int64 // nil: not known
	Task       string // counted only once; "": always counted
}

// RecordObservation counts the end of a task in its owner's resume. What is no
// end, was counted before or has no owner here changes nothing.
func (h *Hub) RecordObservation(ctx context.Context, o Observation) error {
	if !o.Outcome.Terminal() {
		return nil
	}
	if o.Capability == "" {
		return fault.New(fault.Invalid, "capability is empty; an observation counts for one")
	}
	var once []journal.Take
	if o.Task != "" {
		once = []journal.Take{{Name: schema.ObservedClaim(o.Task)}}
	}
	for {
		_, d, err := h.change(ctx, o.Owner, o.count, "resume_set", once...)
		if o.Task != "" && lostClaim(ctx, err) {
			state, err := h.journal.Claim(ctx, h.journal.Shard(h.tenant.Directory()), schema.ObservedClaim(o.Task))
			if err != nil {
				return unavailable(err)
			}
			if state.Ordered == nil {
				continue // the batch that counted it was not stored
			}
			return nil
		}
		if err != nil {
			return ignoreMissing(err)
		}
		h.tellAgent(AgentEvent{
			Agent: o.Owner, Kind: "observation_recorded", Resume: d.Resume, Capability: o.Capability, Outcome: o.Outcome,
		})
		return nil
	}
}

// count edits the owner's record. Only the observation is stored; reading the
// log counts it again.
func (o *Observation) count(_ *record, d *details, now time.Time) (schema.AgentRecord, fields, error) {
	if _, known := d.Resume.Observed[o.Capability]; !known && len(d.Resume.Observed) >= identity.MaxCapabilities {
		return schema.AgentRecord{}, nil, fault.New(fault.TooLarge,
			"%d capabilities of '%s' have been observed, which is the limit; report the task under one of them", len(d.Resume.Observed), o.Owner)
	}
	observed := &schema.Observed{Capability: o.Capability, Outcome: o.Outcome, LatencyMS: o.LatencyMS, At: now}
	d.Resume, d.samples = d.Resume.Clone(), maps.Clone(d.samples)
	if samples := d.samples[o.Capability]; samples != nil {
		d.samples[o.Capability] = samples.Clone()
	}
	d.observe(observed)
	return schema.AgentRecord{Kind: schema.AgentObservation, Observed: observed}, fields{
		"agent_id": o.Owner, "version": d.Resume.Version, "source": "observed",
		"capability": o.Capability, "outcome": string(o.Outcome),
	}, nil
}
