package stream

import (
	"bytes"
	"errors"
	"io"
)

// window is between the input and the decoder. It knows the line of every byte
// that the decoder has not passed yet, and returns no more than one message's
// worth of bytes beyond the mark.
type window struct {
	r   io.Reader
	max int
	err error // what reading ended with

	pending []byte // read before a restart, to be read again

	base     int64 // offset at which the decoder was last restarted
	mark     int64 // offset at which the current message may begin
	read     int64 // offset after what was returned
	line     int   // of the oldest offset that may still be asked for
	newlines []int64
}

func (w *window) Read(p []byte) (int, error) {
	allowed := int64(w.max) - (w.read - w.mark)
	if allowed <= 0 {
		w.err = ErrTooLarge
		return 0, ErrTooLarge
	}
	p = p[:min(int64(len(p)), allowed)]
	n := copy(p, w.pending)
	if n > 0 {
		w.pending = w.pending[n:]
		w.note(p[:n])
		return n, nil
	}
	n, err := w.r.Read(p)
	w.note(p[:n])
	if err != nil {
		w.err = err
	}
	return n, err
}

// note remembers where lines end in what is returned.
func (w *window) note(p []byte) {
	for from := 0; ; {
		end := bytes.IndexByte(p[from:], '\n')
		if end < 0 {
			break
		}
		w.newlines = append(w.newlines, w.read+int64(from+end))
		from += end + 1
	}
	w.read += int64(len(p))
}

// lineAt returns the line of an offset; offsets must not go backwards.
func (w *window) lineAt(offset int64) int {
	passed := 0
	for passed < len(w.newlines) && w.newlines[passed] < offset {
		passed++
	}
	w.line += passed
	w.newlines = append(w.newlines[:0], w.newlines[passed:]...)
	return w.line
}

// skipLine skips to the end of the line, and returns what was read beyond it.
func (w *window) skipLine() ([]byte, error) {
	buffer := make([]byte, 4096)
	for {
		if end := bytes.IndexByte(w.pending, '\n'); end >= 0 {
			w.note(w.pending[:end+1])
			w.base += int64(end) + 1
			rest := w.pending[end+1:]
			w.pending = nil
			return rest, nil
		}
		w.note(w.pending)
		w.base += int64(len(w.pending))
		n, err := w.r.Read(buffer)
		w.pending = buffer[:n]
		if err != nil && n == 0 {
			w.err = err
			return nil, err
		}
	}
}

// restart makes everything from base on unread again.
func (w *window) restart(rest []byte) {
	w.pending = append(rest[:len(rest):len(rest)], w.pending...)
	for len(w.newlines) > 0 && w.newlines[len(w.newlines)-1] >= w.base {
		w.newlines = w.newlines[:len(w.newlines)-1]
	}
	w.read = w.base
	if errors.Is(w.err, ErrTooLarge) {
		w.err = nil
	}
}

// failed reports whether reading failed, as opposed to what was read.
func (w *window) failed() bool {
	return w.err != nil && !errors.Is(w.err, io.EOF) && !errors.Is(w.err, ErrTooLarge)
}
