package channel

import (
	"bytes"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/fault"
)

// ExpectationsKnob finds the knob that replaces the manifest's list, without
// reading knobs that cannot hold it; nil means that there is none.
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

// Expectations is what holds in the channel: the knob's list, or else the
// manifest's.
func (m *Metadata) Expectations() ([]Expectation, error) {
	knob, err := m.ExpectationsKnob()
	if err != nil || knob == nil {
		return m.Manifest.Expectations, err
	}
	return DecodeExpectations(knob)
}
