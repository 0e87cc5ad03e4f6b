package apply

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/stream"
	"github.com/parley-hub/parley/message/value"
)

// Apply reads {"name","op","input"} values from r and writes, for each, a line
// {"name","output"} or {"name","error"} to w. It returns only errors of reading
// or writing: an operation that refuses is an answer.
func Apply(ctx context.Context, r io.Reader, w io.Writer) error {
	return ApplyWith(ctx, r, w, stream.Options{})
}

// ApplyWith is Apply with limits.
func ApplyWith(ctx context.Context, r io.Reader, w io.Writer, o stream.Options) error {
	source := stream.NewSource(r, o)
	out := bufio.NewWriter(w)
	var line []byte
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		raw, name, op, err := next(source)
		if errors.Is(err, io.EOF) {
			return out.Flush()
		}
		if source.Failed() {
			_ = out.Flush()
			return err
		}
		line = line[:0]
		if err != nil {
			line = appendError(line, name, refusal(op, err))
		} else {
			line = answer(ctx, line, value.Parse(raw))
		}
		if _, err := out.Write(append(line, '\n')); err != nil {
			return err
		}
		// A client that waits for an answer before it sends the next line gets
		// it.
		if source.Idle() {
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
}

// next reads a request. From a malformed request it reads what it can, so that
// the answer can name it.
func next(source *stream.Source) (raw jsontext.Value, name any, op string, err error) {
	_, raw, err = source.Next()
	if err != nil && !errors.Is(err, io.EOF) {
		name, op = rescue(source.Refused())
	}
	return raw, name, op, err
}

// answer runs one request and appends its line.
func answer(ctx context.Context, dst []byte, request any) []byte {
	m, ok := request.(*value.Map)
	if !ok {
		return appendError(dst, "", fmt.Errorf("a request must be an object with name, op and input"))
	}
	name, op := m.At("name"), value.Text(m.At("op"))
	run, ok := operations[op]
	if !ok {
		return appendError(dst, name, fmt.Errorf("unknown op %q; known are %s", op, known()))
	}
	output, err := run(ctx, replace(m.At("input")))
	if err != nil {
		return appendError(dst, name, err)
	}
	start := len(dst)
	dst = appendName(dst, name)
	dst, err = value.Append(append(dst, `,"output":`...), output)
	if err != nil {
		return appendError(dst[:start], name, fmt.Errorf("the output cannot be written as JSON: %w", err))
	}
	return append(dst, '}')
}

func appendName(dst []byte, name any) []byte {
	dst = append(dst, `{"name":`...)
	named, err := value.Append(dst, name)
	if err != nil {
		return append(dst, "null"...)
	}
	return named
}

func appendError(dst []byte, name any, err error) []byte {
	dst = append(appendName(dst, name), `,"error":`...)
	dst, _ = jsontext.AppendQuote(dst, err.Error())
	return append(dst, '}')
}

// refusal returns the answer to a request that is not valid JSON: operations on
// messages have a text of their own for it.
func refusal(op string, err error) error {
	if messageOps[op] {
		return message.Unserializable(err)
	}
	return fmt.Errorf("the request is not valid JSON: %w", err)
}
