package stream

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/message/value"
)

// Limits of one message by default. The second keeps a small text
// of very many values from taking a multiple of its size.
const (
	DefaultMaxMessage = 8 << 20
	DefaultMaxValues  = 250000
)

// ErrTooLarge says that a message has more bytes or values than it may.
var ErrTooLarge = errors.New("stream: the message is too large; raise the limit or split it")

// ErrArray says that the rest of an array cannot be read after a malformed
// element.
var ErrArray = errors.New("stream: the rest of the array cannot be read; mend it, or give one message a line")

// Options bound and steer reading; the zero value is the default.
type Options struct {
	// MaxMessage is the largest message in bytes; 0 is DefaultMaxMessage.
	MaxMessage int
	// MaxValues is how many values, inner ones counted, a message may hold; 0
	// is DefaultMaxValues.
	MaxValues int
}

func orDefault(limit, fallback int) int {
	if limit > 0 {
		return limit
	}
	return fallback
}

// Source yields the JSON values of an input with the lines they begin on. A
// value that is an array is read as its elements.
type Source struct {
	input   *window
	values  int // how many bytes are allowed
	dec     *jsontext.Decoder
	inArray bool
	element int  // of the array that is being read
	array   bool // the input's first value is an array
	begun   bool
	broken  bool // inside an array whose rest cannot be read
	refused []byte
}

// keepRefused is how much of a refused value is kept for inspection.
const keepRefused = 64 << 10

// NewSource reads from r.
func NewSource(r io.Reader, o Options) *Source {
	input := &window{r: r, max: orDefault(o.MaxMessage, DefaultMaxMessage), line: 1}
	return &Source{
		input:  input,
		values: orDefault(o.MaxValues, DefaultMaxValues),
		dec:    jsontext.NewDecoder(input),
	}
}

// IsArray reports whether the input's first value is an array; it is known once
// Next was called.
func (s *Source) IsArray() bool { return s.array }

// Element returns the position, from 1, that the value which Next last returned or
// refused has in its array; 0: it is in none.
func (s *Source) Element() int {
	if !s.inArray {
		return 0
	}
	return s.element
}

// Refused returns the beginning of the value that Next last refused, as far as
// its line reaches.
func (s *Source) Refused() []byte { return s.refused }

// Failed reports whether reading itself failed.
func (s *Source) Failed() bool { return s.input.failed() }

// Idle reports whether everything that was read so far is used up, so that
// Next may have to wait.
func (s *Source) Idle() bool {
	return len(s.input.pending) == 0 && len(bytes.TrimSpace(s.dec.UnreadBuffer())) == 0
}

// Next returns the next value, which is valid until the next call, and its
// line. At the end it returns io.EOF. After a value that is malformed or too
// large it continues after that value's first line, except inside an array,
// which then ends with ErrArray.
func (s *Source) Next() (line int, raw jsontext.Value, err error) {
	for {
		if s.broken {
			return s.input.line, nil, io.EOF
		}
		s.input.mark = s.dec.InputOffset() + s.input.base
		kind := s.dec.PeekKind()
		if s.array = s.array || (!s.begun && kind == '['); kind != 0 {
			s.begun = true
		}
		switch {
		case kind == '[' && !s.inArray:
			_, err = s.dec.ReadToken()
			s.inArray, s.element = true, 0
		case kind == ']' && s.inArray:
			_, err = s.dec.ReadToken()
			s.inArray = false
		default:
			s.element++
			raw, err = s.dec.ReadValue()
			if err == nil {
				start := s.dec.InputOffset() + s.input.base - int64(len(raw))
				return s.input.lineAt(start), raw, s.weigh(raw)
			}
		}
		if err != nil {
			return s.fail(err)
		}
	}
}

// weigh refuses a value that holds too many others. A value has two bytes at
// least, so most texts need not be counted.
func (s *Source) weigh(raw jsontext.Value) error {
	if (len(raw)+1)/2 <= s.values || value.Weigh(raw) <= s.values {
		return nil
	}
	s.refused = bytes.Clone(raw[:min(len(raw), keepRefused)])
	return fmt.Errorf("%w (%d values are allowed)", ErrTooLarge, s.values)
}

// fail says what is wrong with the value that begins at the mark and makes the
// source ready for what follows its line.
func (s *Source) fail(err error) (int, jsontext.Value, error) {
	if errors.Is(err, io.EOF) {
		return s.input.lineAt(s.input.mark), nil, io.EOF
	}
	if s.input.failed() {
		return s.input.lineAt(s.input.mark), nil, s.input.err // reading failed, not what was read
	}
	if errors.Is(err, ErrTooLarge) {
		err = fmt.Errorf("%w (%d bytes are allowed)", ErrTooLarge, s.input.max)
	}
	unread := s.dec.UnreadBuffer()
	rest := bytes.TrimLeft(unread, " \t\r\n,")
	skipped := len(unread) - len(rest)
	line := s.input.lineAt(s.dec.InputOffset() + s.input.base + int64(skipped))
	s.refused = bytes.Clone(rest[:min(len(rest), keepRefused)])
	if end := bytes.IndexByte(s.refused, '\n'); end >= 0 {
		s.refused = s.refused[:end]
	}
	if s.inArray {
		s.broken = true
		return line, nil, errors.Join(err, ErrArray)
	}
	if resumeErr := s.resume(rest, s.dec.InputOffset()+int64(skipped)); resumeErr != nil && !errors.Is(resumeErr, io.EOF) {
		return line, nil, resumeErr
	}
	return line, nil, err
}

// resume starts again after the line on which the text at offset begins.
func (s *Source) resume(text []byte, offset int64) error {
	var rest []byte
	var err error
	if end := bytes.IndexByte(text, '\n'); end >= 0 {
		offset += int64(end) + 1
		rest = bytes.Clone(text[end+1:])
		s.input.base += offset
	} else {
		s.input.base += offset + int64(len(text))
		rest, err = s.input.skipLine()
	}
	s.input.restart(rest)
	s.dec.Reset(s.input)
	return err
}
