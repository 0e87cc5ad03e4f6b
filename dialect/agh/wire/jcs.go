package wire

import (
	"bytes"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/jsonscan"
)

// canonicalDepth bounds what Canonical takes from elsewhere; envelopes nest
// less.
const canonicalDepth = 1000

// Canonical is one JSON value in the form of RFC 8785. It is a copy. A number that
// exceeds an IEEE double has no such form: the library would write the largest
// double, which is another number.
func Canonical(value []byte) ([]byte, error) {
	if err := jsonscan.Check(value, canonicalDepth); err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the value is not valid JSON: %v", err)
	}
	if number, found := tooLarge(value); found {
		return nil, fault.New(fault.Invalid, "the value has no canonical form: the number %.40s is larger than a double holds", number)
	}
	out := jsontext.Value(bytes.Clone(jsonscan.Trim(value)))
	if err := out.Canonicalize(); err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the value has no canonical form: %v", err)
	}
	return out, nil
}

// tooLarge finds a number of a checked value that is beyond every finite
// double.
func tooLarge(value []byte) (string, bool) {
	for i := 0; i < len(value); {
		switch c := value[i]; {
		case c == '"':
			i = jsonscan.SkipString(value, i)
		case c == '-' || c >= '0' && c <= '9':
			end := jsonscan.SkipValue(value, i)
			if f, _ := strconv.ParseFloat(string(value[i:end]), 64); math.IsInf(f, 0) {
				return string(value[i:end]), true
			}
			i = end
		default:
			i++
		}
	}
	return "", false
}
