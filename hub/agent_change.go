package hub

import (
	"context"
	"errors"
	"time"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/profile"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/journal"
)

// edit changes copies of an identity's record and details, and returns the changes to
// store. It replaces what the copies point to and never modifies it.
type edit func(r *profile.Record, d *profile.Full, now time.Time) (schema.AgentRecord, fields, error)

// change rewrites part of an identity. It is visible once it is durable.
func (h *Hub) change(ctx context.Context, id string, edit edit, audited string, take ...journal.Take) (Profile, *profile.Full, error) {
	m, err := h.registry.Require(id)
	if err != nil {
		return Profile{}, nil, err
	}
	m.Write.Lock()
	defer m.Write.Unlock()
	if m.Transient.Load() != nil {
		return Profile{}, nil, errTransient(id)
	}
	before, err := h.detailsOf(ctx, m)
	if err != nil {
		return Profile{}, nil, err
	}
	next, d := *m.Current.Load(), *before
	stored, audit, err := edit(&next, &d, h.now().UTC())
	if err != nil {
		return Profile{}, nil, err
	}
	if err := next.Remeasure(&d, before, &stored, h.opts.Limits.ProfileBytes); err != nil {
		return Profile{}, nil, err
	}
	data, err := identity.Marshal(stored)
	if err != nil {
		return Profile{}, nil, err
	}
	records, err := next.Extend(&d, journal.Record{Data: data, Take: take})
	if err != nil {
		return Profile{}, nil, err
	}
	line, err := h.auditRecord(audited, audit)
	if err != nil {
		return Profile{}, nil, err
	}
	err = h.commit(ctx, journal.Batch{Appends: []journal.Append{
		{Log: h.tenant.Agent(id), Expect: journal.Exactly(before.Seq), Records: records},
		{Log: h.tenant.Audit(), Records: []journal.Record{line}},
	}})
	if err != nil {
		return Profile{}, nil, err
	}
	next.Enforce(h.opts.Limits.Inbox)
	m.Current.Store(&next)
	h.profiles.Put(id, &d)
	return next.Profile, &d, nil
}

// SetResume replaces a resume; the hub counts its version.
func (h *Hub) SetResume(ctx context.Context, id string, resume *identity.Resume) error {
	if err := resume.CheckBounds(); err != nil {
		return err
	}
	_, d, err := h.change(ctx, id, func(_ *profile.Record, d *profile.Full, now time.Time) (schema.AgentRecord, fields, error) {
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

// SetRule replaces an identity's own rule from the next check on, within the operator's
// rule and the hub's limits.
func (h *Hub) SetRule(ctx context.Context, id string, rule *identity.Rule) error {
	if err := rule.CheckBounds(h.opts.Limits.RuleGlobs); err != nil {
		return err
	}
	p, _, err := h.change(ctx, id, func(r *profile.Record, _ *profile.Full, _ time.Time) (schema.AgentRecord, fields, error) {
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
	_, _, err := h.change(ctx, id, func(_ *profile.Record, d *profile.Full, _ time.Time) (schema.AgentRecord, fields, error) {
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
	p, _, err := h.change(ctx, id, func(r *profile.Record, _ *profile.Full, _ time.Time) (schema.AgentRecord, fields, error) {
		r.Ceiling = ceiling
		return schema.AgentRecord{Kind: schema.AgentCeiling, Ceiling: ceiling}, fields{"agent_id": id, "removed": ceiling == nil}, nil
	}, "operator_rule_set")
	if err != nil {
		return Profile{}, err
	}
	h.tellAgent(AgentEvent{Agent: id, Kind: "operator_rule_set", Removed: ceiling == nil})
	return p, nil
}

// Observation is the end of a task as it counts in its owner's track record.
type Observation struct {
	Owner      string
	Capability string
	Outcome    identity.Outcome
	LatencyMS  *int64 // nil: not known
	Task       string // counted only once; "": always counted
}

// RecordObservation counts the end of a task in its owner's resume. It does nothing
// if the task has not ended, was counted before, or its owner is not registered here.
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
			return fault.IgnoreNotFound(err)
		}
		h.tellAgent(AgentEvent{
			Agent: o.Owner, Kind: "observation_recorded", Resume: d.Resume, Capability: o.Capability, Outcome: o.Outcome,
		})
		return nil
	}
}

// count edits the owner's record. Only the observation is stored; reading the
// log counts it again.
func (o *Observation) count(_ *profile.Record, d *profile.Full, now time.Time) (schema.AgentRecord, fields, error) {
	if _, known := d.Resume.Observed[o.Capability]; !known && len(d.Resume.Observed) >= identity.MaxCapabilities {
		return schema.AgentRecord{}, nil, fault.New(fault.TooLarge,
			"%d capabilities of '%s' have been observed, which is the limit; report the task under one of them", len(d.Resume.Observed), o.Owner)
	}
	observed := &schema.Observed{Capability: o.Capability, Outcome: o.Outcome, LatencyMS: o.LatencyMS, At: now}
	d.Count(observed)
	return schema.AgentRecord{Kind: schema.AgentObservation, Observed: observed}, fields{
		"agent_id": o.Owner, "version": d.Resume.Version, "source": "observed",
		"capability": o.Capability, "outcome": string(o.Outcome),
	}, nil
}

// lostClaim reports whether a batch lost a claim, and waits for the batch that
// it lost to.
func lostClaim(ctx context.Context, err error) bool {
	var conflict *journal.ConflictError
	if !errors.As(err, &conflict) || conflict.Kind != journal.ClaimConflict {
		return false
	}
	_ = conflict.LostTo.Wait(ctx) // the caller looks again, however the batch ended
	return ctx.Err() == nil
}
