package profile

import (
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/identity"
)

// sizes are the bytes of the parts of a profile that its owner writes.
type sizes struct{ resume, rule, skill int }

func (s sizes) total() int { return s.resume + s.rule + s.skill }

func measure(d *Full, rule *identity.Rule) (s sizes, err error) {
	resume, err := identity.Marshal(d.Resume)
	if err != nil {
		return s, err
	}
	own, err := identity.Marshal(rule)
	if err != nil {
		return s, err
	}
	s = sizes{resume: len(resume), rule: len(own)}
	if d.Skill != nil {
		s.skill = len(*d.Skill)
	}
	return s, nil
}

// Remeasure updates the values that are derived from the details after a change,
// and returns an error if the profile has grown over a limit.
func (r *Record) Remeasure(d, before *Full, stored *schema.AgentRecord, limit int) (err error) {
	sizes := r.sizes
	switch {
	case stored.Kind == schema.AgentObservation && len(d.Resume.Observed) == len(before.Resume.Observed):
		return nil // only counters changed, which is not worth measuring
	case stored.Kind == schema.AgentCeiling:
		return nil
	}
	if r.sizes, err = measure(d, r.Rule); err != nil {
		return err
	}
	if d.Resume != before.Resume {
		r.brief = newBrief(d.Resume)
	}
	return r.bound(sizes, limit)
}

// BoundNew returns an error if a new profile is too large.
func (r *Record) BoundNew(limit int) error { return r.bound(sizes{}, limit) }

// bound returns an error if a profile is too large, unless it has shrunk: a profile
// that is older than the bound can be brought under it in steps.
func (r *Record) bound(before sizes, limit int) error {
	after := r.sizes
	if after.total() <= limit || after.total() <= before.total() {
		return nil
	}
	return fault.New(fault.TooLarge, "profile: skill (%d bytes), resume (%d) and rule (%d) have %d bytes together; at most %d (limits.profile)",
		after.skill, after.resume, after.rule, after.total(), limit)
}
