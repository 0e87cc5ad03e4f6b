package hub

import (
	"context"
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
	var counted []journal.Record
	if o.Task != "" {
		counted = []journal.Record{{Data: []byte(`{"kind":"` + schema.AgentObserved + `"}`), Take: []journal.Take{{Name: schema.ObservedClaim(o.Task)}}}}
	}
	for {
		p, err := h.change(ctx, o.Owner, o.count, "resume_set", counted...)
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
			Agent: o.Owner, Kind: "observation_recorded", Resume: p.Resume, Capability: o.Capability, Outcome: o.Outcome,
		})
		return nil
	}
}

// count edits the owner's record.
func (o *Observation) count(r *record, now time.Time) (schema.AgentRecord, fields, error) {
	samples := &identity.Samples{}
	if old := r.samples[o.Capability]; old != nil {
		kept, err := old.MarshalBinary()
		if err != nil {
			return schema.AgentRecord{}, nil, err
		}
		if err := samples.UnmarshalBinary(kept); err != nil {
			return schema.AgentRecord{}, nil, err
		}
	}
	resume := r.Resume.Clone()
	resume.Observe(o.Capability, o.Outcome, o.LatencyMS, samples, now)
	stored := schema.AgentRecord{Kind: schema.AgentResume, Resume: resume}
	if o.LatencyMS != nil {
		kept, err := samples.MarshalBinary()
		if err != nil {
			return schema.AgentRecord{}, nil, err
		}
		stored.Samples = map[string][]byte{o.Capability: kept}
		r.samples = withSamples(r.samples, o.Capability, samples)
	}
	r.Resume = resume
	return stored, fields{
		"agent_id": o.Owner, "version": resume.Version, "source": "observed",
		"capability": o.Capability, "outcome": string(o.Outcome),
	}, nil
}

// withSamples copies the map: the old one is still read if the write fails.
func withSamples(old map[string]*identity.Samples, capability string, s *identity.Samples) map[string]*identity.Samples {
	next := make(map[string]*identity.Samples, len(old)+1)
	for k, v := range old {
		next[k] = v
	}
	next[capability] = s
	return next
}
