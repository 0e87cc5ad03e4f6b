package hub

import (
	"context"
	"errors"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/journal"
)

// Details are what an identity tells of itself and what the hub has observed
// of it. Admission needs none of it, so that it is read from the journal when
// it is asked for. It is a snapshot: nothing in it may be changed.
type Details struct {
	Resume *identity.Resume
	Skill  *string // nil: none
}

// details are Details with what a change of them needs.
type details struct {
	Details
	samples map[string]*identity.Samples // by capability
	seq     uint64                       // of the last record
}

// Details returns what an identity tells of itself, by id.
func (h *Hub) Details(ctx context.Context, id string) (Details, error) {
	m, err := h.registry.require(id)
	if err != nil {
		return Details{}, err
	}
	d, err := h.detailsOf(ctx, m)
	if err != nil {
		return Details{}, err
	}
	return d.Details, nil
}

// detailsOf reads the details of an identity, unless they are in the cache.
func (h *Hub) detailsOf(ctx context.Context, m *member) (*details, error) {
	if d := m.transient.Load(); d != nil {
		return d, nil
	}
	r := m.current.Load()
	if d := h.profiles.get(m.id, r.seq); d != nil {
		return d, nil
	}
	d := &details{}
	for entry, err := range journal.Records(ctx, h.journal, h.tenant.Agent(m.id), journal.ReadOptions{From: r.base, To: r.seq}) {
		if err != nil {
			return nil, h.unread(m, err)
		}
		var stored schema.AgentRecord
		if err := identity.Unmarshal("identity", entry.Data, &stored); err != nil {
			return nil, h.unread(m, err)
		}
		if err := d.apply(&stored, entry.Seq); err != nil {
			return nil, h.unread(m, err)
		}
	}
	if d.seq != r.seq || d.Resume == nil {
		return nil, h.unread(m, errors.New("records are missing"))
	}
	h.profiles.put(m.id, d)
	return d, nil
}

// unread is why details could not be read: their owner may just have been
// unregistered.
func (h *Hub) unread(m *member, cause error) error {
	if h.registry.byID(m.id) != m {
		return fault.New(fault.NotFound, "agent '%s' not found: it was just unregistered", m.id).Because(fault.NoAgent)
	}
	return unavailable(cause)
}

// apply folds a record into details that nobody else sees.
func (d *details) apply(stored *schema.AgentRecord, seq uint64) error {
	if isWhole(stored.Kind) {
		*d = details{}
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
		d.keep(capability, samples)
	}
	if stored.Observed != nil && d.Resume != nil {
		d.observe(stored.Observed)
	}
	d.seq = seq
	return nil
}

// isWhole reports whether a kind of record has all details.
func isWhole(kind string) bool { return kind == schema.AgentRegistered || kind == schema.AgentWhole }

// maxSampled is of how many capabilities latencies are kept. Others are counted
// without a median.
const maxSampled = 64

// observe counts the end of a task. It changes the resume and the samples.
func (d *details) observe(o *schema.Observed) {
	samples, latency := d.samples[o.Capability], o.LatencyMS
	if samples == nil {
		samples = &identity.Samples{}
		if len(d.samples) >= maxSampled {
			latency = nil
		}
	}
	d.Resume.Observe(o.Capability, o.Outcome, latency, samples, o.At)
	if latency != nil {
		d.keep(o.Capability, samples)
	}
}

func (d *details) keep(capability string, samples *identity.Samples) {
	if d.samples == nil {
		d.samples = map[string]*identity.Samples{}
	}
	d.samples[capability] = samples
}

// sampleBytes is about how many bytes the samples take.
func (d *details) sampleBytes() int {
	n := 0
	for capability, samples := range d.samples {
		n += len(capability) + 8*samples.Len()
	}
	return n
}

// whole encodes the record that makes those before it unnecessary for reading
// the details.
func (d *details) whole() ([]byte, error) {
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
