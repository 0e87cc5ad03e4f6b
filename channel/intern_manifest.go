package channel

import (
	"bytes"
	"slices"
)

// Manifest returns the shared copy of a manifest, which must not be changed afterwards.
// Every opening asks for one, and as a rule for the same one again.
func (in *Interner) Manifest(m *Manifest) (*Manifest, error) {
	if in == nil {
		return in.encoded(m)
	}
	in.mu.Lock()
	last, known := in.latest[m.Key()]
	in.mu.Unlock()
	if known && last.given.equal(m) {
		return last.shared, nil
	}
	shared, err := in.encoded(m)
	if err != nil {
		return nil, err
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if known || len(in.latest) < maxManifests {
		in.latest[m.Key()] = asked{*m, shared}
	}
	return shared, nil
}

// asked is a manifest as it was given, and its shared copy.
type asked struct {
	given  Manifest
	shared *Manifest
}

func (in *Interner) encoded(m *Manifest) (*Manifest, error) {
	text, err := m.AppendJSON(make([]byte, 0, 1024))
	if err != nil {
		return nil, err
	}
	return in.manifest(text)
}

// equal reports whether two manifests are the same in every part.
func (m *Manifest) equal(o *Manifest) bool {
	return m.Type == o.Type && m.Version == o.Version && m.DefaultView == o.DefaultView &&
		m.Participants.Min == o.Participants.Min && equalBounds(m.Participants.Max, o.Participants.Max) &&
		slices.Equal(m.Participants.Roles, o.Participants.Roles) && bytes.Equal(m.KnobsSchema, o.KnobsSchema) &&
		slices.EqualFunc(m.Expectations, o.Expectations, func(a, b Expectation) bool {
			return a.Name == b.Name && a.OnViolation == b.OnViolation && bytes.Equal(a.Params, b.Params) &&
				(a.AppliesTo == nil) == (b.AppliesTo == nil) && slices.Equal(a.AppliesTo, b.AppliesTo)
		})
}

func equalBounds(a, b *int) bool { return a == b || a != nil && b != nil && *a == *b }
