package wsconn

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/gobwas/ws"
)

// reader reads WebSocket messages from a connection. It holds no buffer while
// there is nothing to read.
type reader struct {
	conn   *Conn
	source source

	buf        *[]byte  // pooled; nil while there is nothing to read
	start, end int      // the unread part of it
	begun      [16]byte // the unread part while buf is nil: the beginning of a frame's header
	message    []byte   // fragments so far
	op         ws.OpCode
	state      ws.State     // server side, and fragmented within a message
	timed      bool         // a deadline is set
	ends       atomic.Int64 // when reading ends at the latest, if it does
}

// endAt sets the time after which nothing is read.
func (r *reader) endAt(t time.Time) {
	r.ends.Store(t.UnixNano())
	_ = r.conn.net.SetReadDeadline(t)
}

// deadline returns the earlier of an instant, if there is one, and the end.
func (r *reader) deadline(t time.Time) time.Time {
	ends := r.ends.Load()
	if end := time.Unix(0, ends); ends != 0 && (t.IsZero() || end.Before(t)) {
		return end
	}
	return t
}

// readBytes is the size of a pooled buffer. Posts that are read together are
// stored together, so a large buffer makes pipelining senders faster. It costs
// nothing while a connection is idle, or a frame's header has only begun.
const readBytes = 64 << 10

// bodyBytes is how much memory a frame gets before its payload arrives.
const bodyBytes = 16 << 10

var readBuffers = sync.Pool{New: func() any {
	b := make([]byte, readBytes)
	return &b
}}

// next returns the next message, which is the caller's to keep. Control frames
// are passed to control as they arrive.
func (r *reader) next() (op ws.OpCode, payload []byte, err error) {
	for {
		h, err := r.header()
		if err != nil {
			return 0, nil, err
		}
		if h.OpCode.IsControl() {
			payload, err := r.body(nil, h)
			if err != nil {
				return 0, nil, err
			}
			if h.OpCode == ws.OpClose {
				return 0, nil, readClose(payload)
			}
			if !r.state.Fragmented() {
				r.complete()
			}
			r.conn.control(h.OpCode, payload)
			continue
		}
		if r.message, err = r.body(r.message, h); err != nil {
			return 0, nil, err
		}
		if h.OpCode != ws.OpContinuation {
			r.op = h.OpCode
		}
		if !h.Fin {
			r.state = r.state.Set(ws.StateFragmented)
			continue
		}
		r.state = r.state.Clear(ws.StateFragmented)
		payload, r.message = r.message, nil
		r.complete()
		if r.op == ws.OpText && !utf8.Valid(payload) {
			return 0, nil, &CloseError{NotUTF8, r.conn.server.cfg.NotText}
		}
		return r.op, payload, nil
	}
}

// header reads and checks the next frame's header.
func (r *reader) header() (ws.Header, error) {
	if err := r.need(2); err != nil {
		return ws.Header{}, err
	}
	h, err := ws.ReadHeader(r)
	if errors.Is(err, ws.ErrHeaderLengthMSB) {
		return h, r.tooLarge()
	}
	if err != nil {
		return h, err
	}
	if err := ws.CheckHeader(h, r.state); err != nil {
		return h, &CloseError{Protocol, err.Error()}
	}
	if h.Length > int64(r.conn.server.cfg.Limits.FrameBytes-len(r.message)) {
		return h, r.tooLarge()
	}
	return h, nil
}

func (r *reader) tooLarge() error {
	cfg := &r.conn.server.cfg
	return &CloseError{TooLarge, fmt.Sprintf("a message has at most %d bytes (%s.frame_bytes)", cfg.Limits.FrameBytes, cfg.Keys)}
}

// Read gives the bytes of a header to the library.
func (r *reader) Read(to []byte) (int, error) {
	if err := r.need(1); err != nil {
		return 0, err
	}
	n := copy(to, r.waiting())
	r.start += n
	return n, nil
}

// body appends a frame's unmasked payload. Memory grows with what arrives, not
// with what a header promises.
func (r *reader) body(to []byte, h ws.Header) ([]byte, error) {
	size := int(h.Length)
	if to == nil {
		to = make([]byte, 0, min(size, bodyBytes))
	}
	for done := 0; done < size; {
		if err := r.need(1); err != nil {
			return nil, err
		}
		part := r.waiting()
		part = part[:min(len(part), size-done)]
		ws.Cipher(part, h.Mask, done)
		to = append(to, part...)
		r.start += len(part)
		done += len(part)
	}
	return to, nil
}

func (r *reader) waiting() []byte {
	if r.buf == nil {
		return nil
	}
	return (*r.buf)[r.start:r.end]
}

// need reads until that many bytes are buffered.
func (r *reader) need(n int) error {
	for r.end-r.start < n {
		idle := r.start == r.end && !r.state.Fragmented() && n == 2
		if r.start > 0 {
			copy((*r.buf)[:], r.waiting())
			r.start, r.end = 0, r.end-r.start
		}
		if !idle && !r.timed {
			if err := r.conn.net.SetReadDeadline(r.deadline(time.Now().Add(r.conn.server.cfg.Limits.Message))); err != nil {
				return err
			}
			r.timed = true
		}
		if r.conn.cause.Load() != nil {
			return ErrClosed
		}
		if err := r.fill(); err != nil {
			return err
		}
		r.conn.touch()
	}
	return nil
}

// complete ends a message's time limit.
func (r *reader) complete() {
	if r.timed {
		_ = r.conn.net.SetReadDeadline(r.deadline(time.Time{}))
		r.timed = false
	}
}

// fill reads once, after the buffered bytes.
func (r *reader) fill() error {
	r.conn.drained()
	n, err := r.source.read(r)
	r.end += n
	switch {
	case n > 0:
		return nil
	case err == nil:
		return io.ErrNoProgress
	case r.timed && errors.Is(err, os.ErrDeadlineExceeded):
		return &CloseError{Policy, fmt.Sprintf("a message arrives within %s (%s.message)",
			r.conn.server.cfg.Limits.Message, r.conn.server.cfg.Keys)}
	}
	return err
}

// borrow takes a buffer. giveBack returns it, unless it holds more than the
// beginning of a header.
func (r *reader) borrow() []byte {
	if r.buf == nil {
		r.buf = readBuffers.Get().(*[]byte)
		copy(*r.buf, r.begun[:r.end])
	}
	return (*r.buf)[r.end:]
}

func (r *reader) giveBack() {
	if r.buf != nil && r.end-r.start <= len(r.begun) {
		r.start, r.end = 0, copy(r.begun[:], r.waiting())
		readBuffers.Put(r.buf)
		r.buf = nil
	}
}

// prime adds bytes that were read with the upgrade.
func (r *reader) prime(b []byte) error {
	if len(b) > readBytes {
		return errors.New("more bytes followed the upgrade than are accepted before it is answered")
	}
	if len(b) > 0 {
		r.end = copy(r.borrow(), b)
	}
	return nil
}
