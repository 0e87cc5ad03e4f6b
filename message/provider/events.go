package provider

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
)

// MaxEvent bounds one event of a stream, by default.
const MaxEvent = 16 << 20

// ErrEventSize says that an event is larger than allowed.
var ErrEventSize = errors.New("provider: an event of the stream is too large")

// lineRoom is what a line has beside its data.
const lineRoom = len("data: \r\n")

// done is how OpenAI's chat streams end.
var done = []byte("[DONE]")

// Events yields the data of server sent events until the stream ends or says
// [DONE]. Comments, names and ids are skipped: the providers' data say what
// they are. An event is valid until the next one; limit 0 is MaxEvent.
func Events(r io.Reader, limit int) iter.Seq2[[]byte, error] {
	if limit <= 0 {
		limit = MaxEvent
	}
	return func(yield func([]byte, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(make([]byte, 0, min(limit, 64<<10)), limit+lineRoom)
		var data []byte
		begun := false
		emit := func() bool {
			if !begun {
				return true
			}
			begun = false
			if bytes.Equal(data, done) {
				return false
			}
			return yield(data, nil)
		}
		for lines.Scan() {
			line := lines.Bytes()
			if len(line) == 0 {
				if !emit() {
					return
				}
				continue
			}
			text, ok := bytes.CutPrefix(line, []byte("data:"))
			if !ok {
				continue
			}
			text = bytes.TrimPrefix(text, []byte(" "))
			if begun {
				data = append(data, '\n')
			} else {
				data, begun = data[:0], true
			}
			if len(data)+len(text) > limit {
				yield(nil, fmt.Errorf("%w: over %d bytes", ErrEventSize, limit))
				return
			}
			data = append(data, text...)
		}
		if err := lines.Err(); err != nil {
			if errors.Is(err, bufio.ErrTooLong) {
				err = fmt.Errorf("%w: over %d bytes", ErrEventSize, limit)
			}
			yield(nil, err)
			return
		}
		emit()
	}
}
