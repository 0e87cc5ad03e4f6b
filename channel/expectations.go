package channel

import (
	"bytes"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/fault"
)

// ExpectationsKnob returns the knob that replaces the manifest's list; nil: there is
// none. Knobs that cannot contain it are not parsed.
func (m *Metadata) ExpectationsKnob() (jsontext.Value, error) {
	if !bytes.Contains(m.Knobs, []byte("expectations")) && !bytes.ContainsRune(m.Knobs, '\\') {
		return nil, nil
	}
	var found struct {
		Expectations jsontext.Value `json:"expectations"`
	}
	if err := json.Unmarshal(m.Knobs, &found, jsontext.AllowDuplicateNames(true)); err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "knobs are refused: %v", err)
	}
	if found.Expectations.Kind() == 'n' {
		return nil, nil
	}
	return found.Expectations, nil
}

// Expectations returns the expectations of the channel: the knob's list, or else the
// manifest's.
func (m *Metadata) Expectations() ([]Expectation, error) {
	knob, err := m.ExpectationsKnob()
	if err != nil || knob == nil {
		return m.Manifest.Expectations, err
	}
	return DecodeExpectations(knob)
}
