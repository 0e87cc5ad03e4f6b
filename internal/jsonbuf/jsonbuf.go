// Package jsonbuf appends JSON to a byte slice where raw values must come out
// byte for byte as they went in, which no marshaller promises. It never
// decodes.
package jsonbuf

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Buffer is JSON text being written. Its first error sticks.
type Buffer struct {
	Bytes []byte
	err   error
	comma bool
}

// Result returns the text, or the first error.
func (b *Buffer) Result() ([]byte, error) {
	if b.err != nil {
		return nil, b.err
	}
	return b.Bytes, nil
}

// Open begins an object or a list: '{' or '['.
func (b *Buffer) Open(bracket byte) *Buffer {
	b.separate()
	b.Bytes = append(b.Bytes, bracket)
	b.comma = false
	return b
}

// Close ends an object or a list: '}' or ']'.
func (b *Buffer) Close(bracket byte) *Buffer {
	b.Bytes = append(b.Bytes, bracket)
	b.comma = true
	return b
}

// Key writes a member's name.
func (b *Buffer) Key(name string) *Buffer {
	b.String(name)
	b.Bytes = append(b.Bytes, ':')
	b.comma = false
	return b
}

// String writes text.
func (b *Buffer) String(s string) *Buffer {
	b.separate()
	if needsNoEscape(s) {
		b.Bytes = append(append(append(b.Bytes, '"'), s...), '"')
		return b
	}
	quoted, err := jsontext.AppendQuote(b.Bytes, s)
	b.Bytes = quoted
	b.fail(err)
	return b
}

// needsNoEscape reports whether a text is its own JSON form between quotes: printable
// ASCII without a quote or a backslash, as almost every name and id is.
func needsNoEscape(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// Optional writes text, or null where there is none.
func (b *Buffer) Optional(s string) *Buffer {
	if s == "" {
		return b.Null()
	}
	return b.String(s)
}

// Time writes an instant in UTC, with six digits and Z, as envelope.FormatTime does.
func (b *Buffer) Time(t time.Time) *Buffer {
	b.separate()
	b.Bytes = t.UTC().AppendFormat(b.Bytes, `"2006-01-02T15:04:05.000000Z"`)
	return b
}

// Null writes null.
func (b *Buffer) Null() *Buffer { return b.raw("null") }

// Int writes a whole number.
func (b *Buffer) Int(n int) *Buffer {
	b.separate()
	b.Bytes = strconv.AppendInt(b.Bytes, int64(n), 10)
	return b
}

// Bool writes true or false.
func (b *Buffer) Bool(v bool) *Buffer { return b.raw(strconv.FormatBool(v)) }

// Strings writes a list of texts; nil is an empty list.
func (b *Buffer) Strings(list []string) *Buffer {
	b.Open('[')
	for _, s := range list {
		b.String(s)
	}
	return b.Close(']')
}

// StringMap writes an object of texts in the order of its keys.
func (b *Buffer) StringMap(m map[string]string) *Buffer {
	b.Open('{')
	for _, k := range slices.Sorted(maps.Keys(m)) {
		b.Key(k).String(m[k])
	}
	return b.Close('}')
}

// Object writes a JSON object's bytes exactly; none is {}.
func (b *Buffer) Object(raw []byte) *Buffer {
	if len(raw) == 0 {
		return b.raw("{}")
	}
	if v := jsontext.Value(raw); v.Kind() != '{' || !v.IsValid() {
		b.fail(fmt.Errorf("jsonbuf: %.40q is not a JSON object", raw))
		return b
	}
	return b.raw(string(raw))
}

// Value writes a JSON value's bytes exactly.
func (b *Buffer) Value(raw []byte) *Buffer {
	if !jsontext.Value(raw).IsValid() {
		b.fail(fmt.Errorf("jsonbuf: %.40q is not a JSON value", raw))
		return b
	}
	return b.raw(string(raw))
}

// Checked writes the bytes of a value that is known to be JSON, because it is
// part of what was checked as a whole.
func (b *Buffer) Checked(raw []byte) *Buffer {
	b.separate()
	b.Bytes = append(b.Bytes, raw...)
	return b
}

func (b *Buffer) raw(s string) *Buffer {
	b.separate()
	b.Bytes = append(b.Bytes, s...)
	return b
}

func (b *Buffer) separate() {
	if b.comma {
		b.Bytes = append(b.Bytes, ',')
	}
	b.comma = true
}

func (b *Buffer) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}
