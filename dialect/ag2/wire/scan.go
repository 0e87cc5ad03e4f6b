package wire

import (
	"bytes"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/jsonscan"
)

// MaxDepth is how deep a frame may nest. AG2's client reads JSON recursively,
// and its connection fails when its stack overflows.
const MaxDepth = 256

// valid returns an error if data is not JSON text in UTF-8 with unique names, or is
// nested too deeply. The rest of this file relies on that check.
func valid(data []byte) error {
	if jsonscan.Deeper(data, MaxDepth) {
		return fault.New(fault.TooLarge, "JSON nests deeper than %d", MaxDepth)
	}
	if jsontext.Value(data).IsValid() {
		return nil
	}
	dec := jsontext.NewDecoder(bytes.NewReader(data))
	_, err := dec.ReadValue()
	if err == nil {
		err = errors.New("text follows the JSON value")
	}
	return fault.Wrap(fault.Invalid, err, "not valid JSON: %s", strings.TrimPrefix(err.Error(), "jsontext: "))
}

// relaxed reports whether data would be JSON if names could repeat, text could be
// any bytes and numbers could be NaN or infinite, as in Python.
func relaxed(data []byte) bool {
	return jsontext.Value(withoutNaN(data)).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// withoutNaN returns data with NaN and Infinity outside of strings replaced by
// null.
func withoutNaN(data []byte) []byte {
	var out []byte
	for i := 0; i < len(data); {
		if data[i] == '"' {
			end := jsonscan.SkipString(data, i)
			out = append(out, data[i:end]...)
			i = end
			continue
		}
		replaced := false
		for _, literal := range [...]string{"-Infinity", "Infinity", "NaN"} {
			if bytes.HasPrefix(data[i:], []byte(literal)) {
				out = append(out, "null"...)
				i += len(literal)
				replaced = true
				break
			}
		}
		if !replaced {
			out = append(out, data[i])
			i++
		}
	}
	return out
}

// walk visits the members of the valid JSON object at i, in order. It calls visit
// with each member's name, without quotes, and the index of its value; visit
// returns the index after the value.
func walk(data []byte, i int, visit func(name []byte, at int) (end int, err error)) (end int, err error) {
	if i == len(data) || data[i] != '{' {
		return i, errNoObject
	}
	for i = jsonscan.SkipSpace(data, i+1); data[i] != '}'; {
		end := jsonscan.SkipString(data, i)
		name := jsonscan.Unescaped(data[i:end])
		i = jsonscan.SkipSpace(data, end) // at the colon
		if i, err = visit(name, jsonscan.SkipSpace(data, i+1)); err != nil {
			return i, err
		}
		if i = jsonscan.SkipSpace(data, i); data[i] == ',' {
			i = jsonscan.SkipSpace(data, i+1)
		}
	}
	return i + 1, nil
}

// members yields the members of a valid JSON object in order. The slices share
// memory with data.
func members(data []byte, yield func(name, value []byte) error) error {
	_, err := walk(data, jsonscan.SkipSpace(data, 0), func(name []byte, at int) (int, error) {
		end := jsonscan.SkipValue(data, at)
		return end, yield(name, data[at:end])
	})
	return err
}

var errNoObject = fault.New(fault.Invalid, "a JSON object is wanted")

// elements yields the elements of a valid JSON array in order.
func elements(data []byte, yield func(value []byte) error) error {
	for i := jsonscan.SkipSpace(data, 1); data[i] != ']'; {
		end := jsonscan.SkipValue(data, i)
		if err := yield(data[i:end]); err != nil {
			return err
		}
		if i = jsonscan.SkipSpace(data, end); data[i] == ',' {
			i = jsonscan.SkipSpace(data, i+1)
		}
	}
	return nil
}

// text reads a JSON string; null is the empty text.
func text(name string, value []byte) (string, error) {
	switch {
	case value[0] == '"':
		if inner := value[1 : len(value)-1]; bytes.IndexByte(inner, '\\') < 0 {
			return string(inner), nil
		}
		unquoted, err := jsontext.AppendUnquote(nil, value)
		if err != nil || !utf8.Valid(unquoted) {
			return "", fault.New(fault.Invalid, "%s is not valid UTF-8", name)
		}
		return string(unquoted), nil
	case isNull(value):
		return "", nil
	}
	return "", wanted(name, "a string", value)
}

func isNull(value []byte) bool { return value[0] == 'n' }

// object returns a value that must be a JSON object; null is {}.
func object(name string, value []byte) ([]byte, error) {
	switch value[0] {
	case '{':
		return value, nil
	case 'n':
		return nil, nil
	}
	return nil, wanted(name, "an object", value)
}

func wanted(name, what string, value []byte) error {
	return fault.New(fault.Invalid, "%s must be %s, not %.40s", name, what, value)
}
