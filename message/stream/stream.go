package stream

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/parley-hub/parley/message"
)

// Place is where a message is in an input. An array may be on a single line.
type Place struct {
	Line    int `json:"line"`             // on which it begins, from 1
	Element int `json:"element,omitzero"` // of its array, from 1; 0: it is in none
}

func (p Place) String() string {
	if p.Element == 0 {
		return fmt.Sprintf("line %d", p.Line)
	}
	return fmt.Sprintf("line %d, element %d", p.Line, p.Element)
}

// Item is one message of an input, or the reason why there is none.
type Item struct {
	Place
	Envelope message.Envelope
	Err      error
}

// Problem says that a message was refused, and where.
type Problem struct {
	Place
	Err error
}

func (p *Problem) Error() string {
	if cause := errors.Unwrap(p.Err); cause != nil {
		return fmt.Sprintf("%v: %v (%v)", p.Place, p.Err, cause)
	}
	return fmt.Sprintf("%v: %v", p.Place, p.Err)
}

// Unwrap returns the refusal.
func (p *Problem) Unwrap() error { return p.Err }

// Stats count what went through.
type Stats struct {
	Messages int // good ones
	Refused  int
}

// Messages normalizes an input message by message. What is refused is an item
// too; only a failure of reading, or of the context, ends the sequence with an
// error.
func Messages(ctx context.Context, r io.Reader, o Options) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		each(ctx, NewSource(r, o), yield)
	}
}

func each(ctx context.Context, source *Source, yield func(Item, error) bool) {
	for {
		if err := ctx.Err(); err != nil {
			yield(Item{}, err)
			return
		}
		line, raw, err := source.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil && source.Failed() {
			yield(Item{Place: Place{Line: line}}, err)
			return
		}
		item := Item{Place: Place{Line: line, Element: source.Element()}, Err: err}
		if err == nil {
			item.Envelope, item.Err = message.NormalizeJSON(raw)
		} else {
			item.Err = message.Unserializable(err)
		}
		if !yield(item, nil) {
			return
		}
	}
}

// Normalize writes each message of r as its envelope: an array as an array,
// anything else as lines. The first message that is refused is the error, a
// *Problem; those before it are written.
func Normalize(ctx context.Context, r io.Reader, w io.Writer, o Options) (Stats, error) {
	return Project(ctx, r, w, o, message.Envelope.AppendJSON)
}

// Project is like Normalize, with another form of output: appendTo writes what
// an envelope becomes.
func Project(ctx context.Context, r io.Reader, w io.Writer, o Options,
	appendTo func(e message.Envelope, dst []byte) ([]byte, error),
) (Stats, error) {
	source := NewSource(r, o)
	out := &writer{w: bufio.NewWriterSize(w, 64<<10)}
	var stats Stats
	var failure error
	each(ctx, source, func(item Item, err error) bool {
		if err == nil && item.Err != nil {
			stats.Refused++
			err = &Problem{Place: item.Place, Err: item.Err}
		}
		if err == nil {
			out.array = source.IsArray()
			if err = out.write(item.Envelope, appendTo); err == nil {
				stats.Messages++
			}
		}
		failure = err
		return err == nil
	})
	out.array = source.IsArray()
	return stats, errors.Join(failure, out.finish(failure == nil))
}

// Provider writes an envelope in the neutral provider shape.
func Provider(e message.Envelope, dst []byte) ([]byte, error) {
	text, err := e.Provider().MarshalJSON()
	return append(dst, text...), err
}

// Check reports every message that is refused, in order, and writes nothing.
// The error is report's, or of reading.
func Check(ctx context.Context, r io.Reader, o Options, report func(*Problem) error) (Stats, error) {
	var stats Stats
	for item, err := range Messages(ctx, r, o) {
		if err != nil {
			return stats, err
		}
		if item.Err == nil {
			stats.Messages++
			continue
		}
		stats.Refused++
		if err := report(&Problem{Place: item.Place, Err: item.Err}); err != nil {
			return stats, err
		}
	}
	return stats, nil
}

// ErrTooMany says that an input holds more messages than may be collected.
var ErrTooMany = errors.New("stream: too many messages to hold at once; give fewer")

// Collect reads a whole conversation, for projections that need all of it. The
// first message that is refused is the error, a *Problem.
func Collect(ctx context.Context, r io.Reader, o Options, limit int) ([]message.Envelope, error) {
	var envelopes []message.Envelope
	for item, err := range Messages(ctx, r, o) {
		switch {
		case err != nil:
			return nil, err
		case item.Err != nil:
			return nil, &Problem{Place: item.Place, Err: item.Err}
		case len(envelopes) == limit:
			return nil, fmt.Errorf("%w (%d are allowed)", ErrTooMany, limit)
		}
		envelopes = append(envelopes, item.Envelope)
	}
	return envelopes, nil
}
