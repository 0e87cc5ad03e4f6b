// Package jsonscan walks JSON text without copying it, for decoders that keep
// members byte for byte. Check validates once; the other functions rely on
// that and never validate again.
package jsonscan

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// ErrDepth says that a text nests deeper than its limit.
var ErrDepth = errors.New("nests too deep")

// Check refuses what is not one JSON value in UTF-8 with unique names, or
// nests deeper than depth.
func Check(data []byte, depth int) error {
	if sure(data, depth) {
		return nil
	}
	if Deeper(data, depth) {
		return fmt.Errorf("%w: at most %d levels are taken", ErrDepth, depth)
	}
	if jsontext.Value(data).IsValid() {
		return nil
	}
	_, err := jsontext.NewDecoder(bytes.NewReader(data)).ReadValue()
	if err == nil {
		return errors.New("text follows the JSON value")
	}
	return errors.New(strings.TrimPrefix(err.Error(), "jsontext: "))
}

// sureDepth is how deep a text may nest for the quick pass of Valid.
const sureDepth = 64

// Valid reports whether data is one JSON value in UTF-8 with unique names.
func Valid(data []byte) bool { return sure(data, sureDepth) || jsontext.Value(data).IsValid() }

var openBrace, openBracket = []byte{'{'}, []byte{'['}

// Deeper reports whether brackets outside of strings nest deeper than limit.
// The text need not be checked.
func Deeper(data []byte, limit int) bool {
	// Most texts have too few brackets to nest deep.
	if bytes.Count(data, openBrace)+bytes.Count(data, openBracket) <= limit {
		return false
	}
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			i = SkipString(data, i) - 1
		case '{', '[':
			if depth++; depth > limit {
				return true
			}
		case '}', ']':
			depth--
		}
	}
	return false
}

// Trim cuts the white space around a checked value.
func Trim(data []byte) []byte { return bytes.Trim(data, " \t\r\n") }

// Members yields the names and values of a checked object in order; of any
// other value it yields nothing. Names are Unescaped, values are as written.
// Both share memory with the object where they can.
func Members(object []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		i := SkipSpace(object, 0)
		if i == len(object) || object[i] != '{' {
			return
		}
		for i = SkipSpace(object, i+1); object[i] != '}'; {
			name, end := nameAt(object, i)
			if i = end; object[i] != ':' {
				i = SkipSpace(object, i)
			}
			if i++; object[i] <= ' ' { // after the colon
				i = SkipSpace(object, i)
			}
			if object[i] == '"' {
				end = SkipString(object, i)
			} else {
				end = SkipValue(object, i)
			}
			if !yield(name, object[i:end]) {
				return
			}
			if i = end; object[i] <= ' ' {
				i = SkipSpace(object, i)
			}
			if object[i] == ',' {
				if i++; object[i] <= ' ' {
					i = SkipSpace(object, i)
				}
			}
		}
	}
}

// nameAt returns the text of the string that begins at i, and the position
// after it. Names are short and have no escapes, so looking at each byte is
// fastest.
func nameAt(data []byte, i int) (name []byte, end int) {
	for end = i + 1; data[end] != '"'; end++ {
		if data[end] == '\\' {
			end = SkipString(data, i)
			return Unescaped(data[i:end]), end
		}
	}
	return data[i+1 : end], end + 1
}

// Elements yields the elements of a checked array in order; of any other value
// it yields nothing.
func Elements(array []byte) iter.Seq[[]byte] {
	return func(yield func(value []byte) bool) {
		i := SkipSpace(array, 0)
		if i == len(array) || array[i] != '[' {
			return
		}
		for i = SkipSpace(array, i+1); array[i] != ']'; {
			end := SkipValue(array, i)
			if !yield(array[i:end]) {
				return
			}
			if i = SkipSpace(array, end); array[i] == ',' {
				i = SkipSpace(array, i+1)
			}
		}
	}
}

// Member returns the value of one member of a checked object, or nil.
func Member(object []byte, name string) []byte {
	for n, v := range Members(object) {
		if string(n) == name {
			return v
		}
	}
	return nil
}

// Text returns the text of a checked string; false: it is not a string.
func Text(value []byte) (string, bool) {
	if len(value) == 0 || value[0] != '"' {
		return "", false
	}
	return string(Unescaped(value)), true
}

// IsNull reports whether a checked value is null.
func IsNull(value []byte) bool { return len(value) > 0 && value[0] == 'n' }

// Unescaped returns the text of a checked string. It copies only if the string
// has escapes, which is rare.
func Unescaped(quoted []byte) []byte {
	inner := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	name, _ := jsontext.AppendUnquote(nil, quoted) // it was checked
	return name
}

// SkipSpace returns the position of the first byte from i on that is not white
// space, or the end of data.
func SkipSpace(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\t' || data[i] == '\n' || data[i] == '\r') {
		i++
	}
	return i
}

// SkipString returns the position after the string that begins at i, or the
// end of data if it is not closed.
func SkipString(data []byte, i int) int {
	for i++; i < len(data); {
		end := bytes.IndexByte(data[i:], '"')
		if end < 0 {
			break
		}
		end += i
		// A quote ends the string unless an odd number of backslashes precedes
		// it.
		backslashes := 0
		for data[end-1-backslashes] == '\\' {
			backslashes++
		}
		if backslashes%2 == 0 {
			return end + 1
		}
		i = end + 1
	}
	return len(data)
}

// SkipValue returns the position after the checked value that begins at i.
func SkipValue(data []byte, i int) int {
	depth := 0
	for i < len(data) {
		switch data[i] {
		case '"':
			i = SkipString(data, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ',', ':', ' ', '\t', '\n', '\r':
			i++
		default:
			for i < len(data) && bytes.IndexByte(literalEnd, data[i]) < 0 {
				i++
			}
		}
		if depth == 0 {
			return i
		}
	}
	return i
}

var literalEnd = []byte(",:]} \t\n\r")
