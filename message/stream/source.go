package stream

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// DefaultMaxMessage is how many bytes one message may have when not told
// otherwise.
const DefaultMaxMessage = 8 << 20

// ErrTooLarge says that a message has more bytes than it may.
var ErrTooLarge = errors.New("stream: the message is too large; raise the limit or split it")

// ErrArray says that an array cannot be read on after a malformed element.
var ErrArray = errors.New("stream: the rest of the array cannot be read; mend it, or give one message a line")

// Options bound and steer reading; the zero value is the default.
type Options struct {
	// MaxMessage is the largest message in bytes; 0 is DefaultMaxMessage.
	MaxMessage int
}

func (o Options) maxMessage() int {
	if o.MaxMessage > 0 {
		return o.MaxMessage
	}
	return DefaultMaxMessage
}

// Source yields the JSON values of an input with the lines they begin on. A
// value that is an array stands for its elements.
type Source struct {
	input   *window
	dec     *jsontext.Decoder
	inArray bool
	array   bool // the input's first value is an array
	begun   bool
}

// NewSource reads from r.
func NewSource(r io.Reader, o Options) *Source {
	input := &window{r: r, max: o.maxMessage(), line: 1}
	return &Source{input: input, dec: jsontext.NewDecoder(input)}
}

// IsArray says whether the input's first value is an array; it is known once
// Next was called.
func (s *Source) IsArray() bool { return s.array }

// Next returns the next value, which is valid until the next call, and its
// line. At the end it returns io.EOF. After a value that is malformed or too
// large it goes on behind that value's first line, except inside an array,
// which then ends with ErrArray.
func (s *Source) Next() (line int, raw jsontext.Value, err error) {
	for {
		s.input.mark = s.dec.InputOffset() + s.input.base
		kind := s.dec.PeekKind()
		if s.array = s.array || (!s.begun && kind == '['); kind != 0 {
			s.begun = true
		}
		switch {
		case kind == '[' && !s.inArray:
			_, err = s.dec.ReadToken()
			s.inArray = true
		case kind == ']' && s.inArray:
			_, err = s.dec.ReadToken()
			s.inArray = false
		default:
			raw, err = s.dec.ReadValue()
			if err == nil {
				start := s.dec.InputOffset() + s.input.base - int64(len(raw))
				return s.input.lineAt(start), raw, nil
			}
		}
		if err != nil {
			return s.fail(err)
		}
	}
}

// fail says what is wrong with the value that begins at the mark and makes the
// source ready for what follows its line.
func (s *Source) fail(err error) (int, jsontext.Value, error) {
	if err == io.EOF {
		return s.input.lineAt(s.input.mark), nil, io.EOF
	}
	if s.input.err != nil && !errors.Is(s.input.err, io.EOF) && !errors.Is(s.input.err, ErrTooLarge) {
		return s.input.lineAt(s.input.mark), nil, s.input.err // reading failed, not what was read
	}
	if errors.Is(err, ErrTooLarge) {
		err = fmt.Errorf("%w (%d bytes are allowed)", ErrTooLarge, s.input.max)
	}
	unread := s.dec.UnreadBuffer()
	value := bytes.TrimLeft(unread, " \t\r\n,")
	skipped := len(unread) - len(value)
	line := s.input.lineAt(s.dec.InputOffset() + s.input.base + int64(skipped))
	if s.inArray {
		return line, nil, errors.Join(err, ErrArray)
	}
	if resumeErr := s.resume(value, s.dec.InputOffset()+int64(skipped)); resumeErr != nil && resumeErr != io.EOF {
		return line, nil, resumeErr
	}
	return line, nil, err
}

// resume starts over behind the line that value begins on.
func (s *Source) resume(value []byte, offset int64) error {
	var rest []byte
	var err error
	if end := bytes.IndexByte(value, '\n'); end >= 0 {
		offset += int64(end) + 1
		rest = bytes.Clone(value[end+1:])
		s.input.base += offset
	} else {
		s.input.base += offset + int64(len(value))
		rest, err = s.input.skipLine()
	}
	s.input.restart(rest)
	s.dec.Reset(s.input)
	return err
}
