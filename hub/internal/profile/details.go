package profile

import (
	"maps"

	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/journal"
)

// Details are what an identity says about itself and what the hub has observed of
// it. Admission does not need them, so they are read from the journal on demand.
// Details are a snapshot: nothing in them may be changed.
type Details struct {
	Resume *identity.Resume
	Skill  *string // nil: none
}

// Full is Details with the data that a change of them needs.
type Full struct {
	Details
	samples map[string]*identity.Samples // by capability
	Seq     uint64                       // of the last record
}

// apply folds a record into details that are not shared yet.
func (d *Full) apply(stored *schema.AgentRecord, seq uint64) error {
	if isWhole(stored.Kind) {
		*d = Full{}
	}
	if stored.Resume != nil {
		d.Resume = stored.Resume
	}
	if isWhole(stored.Kind) || stored.Kind == schema.AgentSkill {
		d.Skill = stored.Skill
	}
	for capability, data := range stored.Samples {
		samples := &identity.Samples{}
		if err := samples.UnmarshalBinary(data); err != nil {
			return err
		}
		d.setSamples(capability, samples)
	}
	if stored.Observed != nil && d.Resume != nil {
		d.observe(stored.Observed)
	}
	d.Seq = seq
	return nil
}

// isWhole reports whether a kind of record has all details.
func isWhole(kind string) bool { return kind == schema.AgentRegistered || kind == schema.AgentWhole }

// maxSampled is for how many capabilities latencies are kept. The others have
// counts without a median.
const maxSampled = 64

// observe counts the end of a task. It changes the resume and the samples.
func (d *Full) observe(o *schema.Observed) {
	samples, latency := d.samples[o.Capability], o.LatencyMS
	if samples == nil {
		samples = &identity.Samples{}
		if len(d.samples) >= maxSampled {
			latency = nil
		}
	}
	d.Resume.Observe(o.Capability, o.Outcome, latency, samples, o.At)
	if latency != nil {
		d.setSamples(o.Capability, samples)
	}
}

func (d *Full) setSamples(capability string, samples *identity.Samples) {
	if d.samples == nil {
		d.samples = map[string]*identity.Samples{}
	}
	d.samples[capability] = samples
}

// sampleBytes returns the approximate size of the samples.
func (d *Full) sampleBytes() int {
	n := 0
	for capability, samples := range d.samples {
		n += len(capability) + 8*samples.Len()
	}
	return n
}

// whole encodes a record that makes all earlier records unnecessary for reading the
// details.
func (d *Full) whole() ([]byte, error) {
	stored := schema.AgentRecord{Kind: schema.AgentWhole, Resume: d.Resume, Skill: d.Skill, Samples: map[string][]byte{}}
	for capability, samples := range d.samples {
		data, err := samples.MarshalBinary()
		if err != nil {
			return nil, err
		}
		stored.Samples[capability] = data
	}
	return identity.Marshal(stored)
}

// Count counts the end of a task. It changes copies of the resume and the samples.
func (d *Full) Count(o *schema.Observed) {
	d.Resume, d.samples = d.Resume.Clone(), maps.Clone(d.samples)
	if samples := d.samples[o.Capability]; samples != nil {
		d.samples[o.Capability] = samples.Clone()
	}
	d.observe(o)
}

// Complete reports whether the details are those of a record and nothing is
// missing.
func (d *Full) Complete(r *Record) bool { return d.Seq == r.Seq && d.Resume != nil }

// Decode folds an encoded record, and returns it.
func (d *Full) Decode(entry journal.Entry) (stored schema.AgentRecord, err error) {
	if err := identity.Unmarshal("identity", entry.Data, &stored); err != nil {
		return stored, err
	}
	return stored, d.apply(&stored, entry.Seq)
}
