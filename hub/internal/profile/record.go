// Package profile folds the log of an identity: what the identity says about
// itself, and the part of it that a search needs. It does no I/O.
package profile

import (
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/journal"
)

// Profile is who an identity is and what it may do. It is a snapshot: nothing in it
// may be changed.
type Profile struct {
	Passport *identity.Passport
	Rule     *identity.Rule    // its own
	Ceiling  *identity.Ceiling // the operator's rule for it; nil: none

	enforced *identity.Enforced
}

// Enforced returns the effective rule: the identity's own, clipped by the
// operator's and by the hub's limits.
func (p Profile) Enforced() *identity.Enforced {
	if p.enforced == nil { // made outside the hub
		return identity.Enforce(p.Rule, p.Ceiling, 0)
	}
	return p.enforced
}

// ID returns the identity's id.
func (p Profile) ID() string { return p.Passport.AgentID }

// Record is the fold of an identity's log, as far as it is kept in memory.
type Record struct {
	Profile
	brief brief
	sizes sizes
	Seq   uint64 // of its last record
	Base  uint64 // the record from which its details can be read
	tail  int    // bytes of the records after Base
}

// New returns a new identity with the requested values.
func New(passport *identity.Passport, resume *identity.Resume, rule *identity.Rule, skill *string) (*Record, *Full, error) {
	d := &Full{Details: Details{Resume: resume, Skill: skill}, Seq: 1}
	r := &Record{Profile: Profile{Passport: passport, Rule: rule}, Seq: 1, Base: 1}
	return r, d, r.Measure(d)
}

// Measure computes the values that are derived from the details.
func (r *Record) Measure(d *Full) (err error) {
	r.brief = newBrief(d.Resume)
	r.sizes, err = measure(d, r.Rule)
	return err
}

// Enforce computes the effective rule from the stored ones and the hub's limit of
// inboxes.
func (r *Record) Enforce(inbox int) {
	if r.Rule != nil {
		r.enforced = identity.Enforce(r.Rule, r.Ceiling, int64(inbox))
	}
}

// Apply folds a record into what is kept in memory.
func (r *Record) Apply(stored *schema.AgentRecord, entry journal.Entry) (err error) {
	if len(stored.Passport) > 0 {
		if r.Passport, err = identity.ParseRecord(stored.Passport); err != nil {
			return err
		}
	}
	if stored.Rule != nil {
		r.Rule = stored.Rule
	}
	if stored.Kind == schema.AgentCeiling {
		r.Ceiling = stored.Ceiling
	}
	r.tail += len(entry.Data)
	if isWhole(stored.Kind) {
		r.Base, r.tail = entry.Seq, 0
	}
	r.Seq = entry.Seq
	return nil
}

// Bounds of the bytes written after the last whole record before the next one.
// Between the bounds it is about the size of the whole, so that writing costs at
// most twice the change, and reading at most twice the details.
const (
	minTail  = 16 << 10
	maxTail  = 128 << 10
	maxWhole = 2 << 20 // of details that are older than the bound; larger ones are not repeated
)

// Extend returns the records to write for a change: the change itself and, now and
// then, the whole.
func (r *Record) Extend(d *Full, change journal.Record) ([]journal.Record, error) {
	records := []journal.Record{change}
	r.Seq++
	r.tail += len(change.Data)
	if r.tail > min(max(minTail, r.sizes.total()+d.sampleBytes()), maxTail) {
		whole, err := d.whole()
		if err != nil {
			return nil, err
		}
		if len(whole) <= maxWhole {
			records = append(records, journal.Record{Data: whole})
			r.Seq++
			r.Base, r.tail = r.Seq, 0
		}
	}
	d.Seq = r.Seq
	return records, nil
}
