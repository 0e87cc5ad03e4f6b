package wire

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/jsonscan"
)

// canonicalDepth bounds what Canonical takes from elsewhere; envelopes nest
// less.
const canonicalDepth = 1000

// Canonical is one JSON value in the form of RFC 8785. It is a copy.
func Canonical(value []byte) ([]byte, error) {
	if err := jsonscan.Check(value, canonicalDepth); err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the value is not valid JSON: %v", err)
	}
	out := jsontext.Value(bytes.Clone(jsonscan.Trim(value)))
	if err := out.Canonicalize(); err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the value has no canonical form: %v", err)
	}
	return out, nil
}
