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
