package value

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// ErrTrailing says that text follows the JSON value.
var ErrTrailing = errors.New("value: text follows the JSON value; one value was expected")

var decoders = sync.Pool{New: func() any { return &reader{dec: jsontext.NewDecoder(bytes.NewBuffer(nil))} }}

type reader struct {
	buf bytes.Buffer
	dec *jsontext.Decoder
}

// Decode reads one JSON value. It is strict: malformed text, invalid UTF-8,
// a key that is there twice and nesting past 10,000 are refused.
func Decode(data []byte) (any, error) {
	r := decoders.Get().(*reader)
	defer decoders.Put(r)
	r.buf = *bytes.NewBuffer(data)
	r.dec.Reset(&r.buf)
	raw, err := r.dec.ReadValue()
	if err != nil {
		return nil, unexpected(err)
	}
	v := Parse(raw)
	if _, err := r.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.Join(ErrTrailing, err)
	}
	r.buf = bytes.Buffer{}
	return v, nil
}

// unexpected keeps the end of the text from looking like the end of a stream.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// UnmarshalJSON reads an object, or an array as the map of its elements by index.
func (m *Map) UnmarshalJSON(data []byte) error {
	v, err := Decode(data)
	if err != nil {
		return err
	}
	read, ok := AsMap(v)
	if !ok {
		return errors.New("value: a " + kindOf(v) + " is not a map; an object or an array was expected")
	}
	*m = *read
	return nil
}
