package ag2

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/gobwas/ws"
)

// Close codes. Those below 4000 are the protocol's own; a client that gets
// closeSlowReader or 1001 may come back, one that gets another should not
// without a change.
const (
	closeGoingAway  ws.StatusCode = 1001
	closeProtocol   ws.StatusCode = 1002
	closeNotUTF8    ws.StatusCode = 1007
	closePolicy     ws.StatusCode = 1008
	closeTooLarge   ws.StatusCode = 1009
	closeInternal   ws.StatusCode = 1011
	closeSlowReader ws.StatusCode = 1013
)

// violation is a reason to end a connection with a close code.
type violation struct {
	code   ws.StatusCode
	reason string
}

func (v *violation) Error() string { return fmt.Sprintf("closed with %d: %s", v.code, v.reason) }

func breach(format string, args ...any) error {
	return &violation{closeProtocol, fmt.Sprintf(format, args...)}
}

// peerClosed is the peer's own close frame.
type peerClosed struct{ code ws.StatusCode }

func (p *peerClosed) Error() string { return fmt.Sprintf("the peer closed with %d", p.code) }

// frames reads WebSocket messages from a connection. It holds no buffer while
// there is nothing to read.
type frames struct {
	conn     net.Conn
	source   source
	limit    int           // bytes of a message
	patience time.Duration // from a message's first byte to its last
	stopped  func() bool   // nothing more is to be read
	heard    func()        // anything arrived
	control  func(op ws.OpCode, payload []byte)

	buf        *[]byte // pooled; nil while idle
	start, end int     // what of it is not yet read
	message    []byte  // fragments so far
	op         ws.OpCode
	fragmented bool
	timed      bool         // a deadline is set
	ends       atomic.Int64 // when reading ends at the latest, if it does
}

// endAt lets nothing be read after an instant.
func (f *frames) endAt(t time.Time) {
	f.ends.Store(t.UnixNano())
	_ = f.conn.SetReadDeadline(t)
}

// deadline is the earlier of an instant, if there is one, and the end.
func (f *frames) deadline(t time.Time) time.Time {
	ends := f.ends.Load()
	if end := time.Unix(0, ends); ends != 0 && (t.IsZero() || end.Before(t)) {
		return end
	}
	return t
}

// readBytes is the size of a pooled buffer.
const readBytes = 16 << 10

var readBuffers = sync.Pool{New: func() any {
	b := make([]byte, readBytes)
	return &b
}}

// next returns the next message, which is the caller's to keep. Control frames
// are handed to control as they come.
func (f *frames) next() (op ws.OpCode, payload []byte, err error) {
	for {
		h, err := f.header()
		if err != nil {
			return 0, nil, err
		}
		if h.op.IsControl() {
			payload, err := f.body(nil, h)
			if err != nil {
				return 0, nil, err
			}
			if h.op == ws.OpClose {
				return 0, nil, closing(payload)
			}
			if !f.fragmented {
				f.complete()
			}
			f.control(h.op, payload)
			continue
		}
		if f.message, err = f.body(f.message, h); err != nil {
			return 0, nil, err
		}
		if h.op != ws.OpContinuation {
			f.op = h.op
		}
		if f.fragmented = !h.fin; f.fragmented {
			continue
		}
		payload, f.message = f.message, nil
		f.complete()
		if f.op == ws.OpText && !utf8.Valid(payload) {
			return 0, nil, &violation{closeNotUTF8, "a text message is not UTF-8"}
		}
		return f.op, payload, nil
	}
}

type header struct {
	op   ws.OpCode
	fin  bool
	size int
	mask [4]byte
}

// header reads and judges the next frame's header.
func (f *frames) header() (header, error) {
	if err := f.need(2); err != nil {
		return header{}, err
	}
	b := f.waiting()
	h := header{op: ws.OpCode(b[0] & 0x0f), fin: b[0]&0x80 != 0}
	switch {
	case b[0]&0x70 != 0:
		return h, breach("reserved bits are set and no extension was agreed on")
	case b[1]&0x80 == 0:
		return h, breach("a client's frame is masked, this one is not")
	}
	size, length := uint64(b[1]&0x7f), 2
	if err := f.judge(h, size); err != nil {
		return h, err
	}
	switch size {
	case 126:
		length += 2
	case 127:
		length += 8
	}
	if err := f.need(length + 4); err != nil {
		return h, err
	}
	b = f.waiting()
	switch size {
	case 126:
		size = uint64(binary.BigEndian.Uint16(b[2:]))
	case 127:
		size = binary.BigEndian.Uint64(b[2:])
	}
	if size > uint64(f.limit-len(f.message)) {
		return h, &violation{closeTooLarge, fmt.Sprintf("a message has at most %d bytes (ag2.limits.frame_bytes)", f.limit)}
	}
	h.size = int(size)
	copy(h.mask[:], b[length:])
	f.start += length + 4
	return h, nil
}

// judge refuses a frame that may not come now, by its opcode and short size.
func (f *frames) judge(h header, size uint64) error {
	switch {
	case h.op.IsReserved():
		return breach("opcode %d is reserved", h.op)
	case h.op.IsControl() && (!h.fin || size > 125):
		return breach("a control frame is whole and has at most 125 bytes")
	case h.op == ws.OpContinuation && !f.fragmented:
		return breach("a continuation continues nothing")
	case h.op.IsData() && h.op != ws.OpContinuation && f.fragmented:
		return breach("a message begins before the last one ended")
	}
	return nil
}

// body appends a frame's unmasked payload. Memory grows with what arrives, not
// with what a header promises.
func (f *frames) body(to []byte, h header) ([]byte, error) {
	if to == nil {
		to = make([]byte, 0, min(h.size, readBytes))
	}
	for done := 0; done < h.size; {
		if err := f.need(1); err != nil {
			return nil, err
		}
		part := f.waiting()
		part = part[:min(len(part), h.size-done)]
		ws.Cipher(part, h.mask, done)
		to = append(to, part...)
		f.start += len(part)
		done += len(part)
	}
	return to, nil
}

func (f *frames) waiting() []byte {
	if f.buf == nil {
		return nil
	}
	return (*f.buf)[f.start:f.end]
}

// need reads until that many bytes wait.
func (f *frames) need(n int) error {
	for f.end-f.start < n {
		idle := f.start == f.end && !f.fragmented && n == 2
		if f.start > 0 {
			copy((*f.buf)[:], f.waiting())
			f.start, f.end = 0, f.end-f.start
		}
		if !idle && !f.timed {
			if err := f.conn.SetReadDeadline(f.deadline(time.Now().Add(f.patience))); err != nil {
				return err
			}
			f.timed = true
		}
		if f.stopped() {
			return errClosed
		}
		if err := f.fill(); err != nil {
			return err
		}
		f.heard()
	}
	return nil
}

// complete ends a message's time limit.
func (f *frames) complete() {
	if f.timed {
		_ = f.conn.SetReadDeadline(f.deadline(time.Time{}))
		f.timed = false
	}
}

// fill reads once, behind what waits.
func (f *frames) fill() error {
	n, err := f.source.read(f)
	f.end += n
	switch {
	case n > 0:
		return nil
	case err == nil:
		return io.ErrNoProgress
	case f.timed && errors.Is(err, os.ErrDeadlineExceeded):
		return &violation{closePolicy, fmt.Sprintf("a message arrives within %s (ag2.limits.message)", f.patience)}
	}
	return err
}

// borrow takes a buffer, giveBack returns one that is empty.
func (f *frames) borrow() []byte {
	if f.buf == nil {
		f.buf = readBuffers.Get().(*[]byte)
	}
	return (*f.buf)[f.end:]
}

func (f *frames) giveBack() {
	if f.buf != nil && f.start == f.end {
		readBuffers.Put(f.buf)
		f.buf, f.start, f.end = nil, 0, 0
	}
}

// prime puts bytes in front that were read with the upgrade.
func (f *frames) prime(b []byte) error {
	if len(b) > readBytes {
		return errors.New("too much followed the upgrade at once")
	}
	if len(b) > 0 {
		f.end = copy(f.borrow(), b)
	}
	return nil
}

// closing judges a close frame.
func closing(payload []byte) error {
	if len(payload) == 0 {
		return &peerClosed{ws.StatusNormalClosure}
	}
	if len(payload) == 1 {
		return breach("a close frame has no code, or one of two bytes")
	}
	code := ws.StatusCode(binary.BigEndian.Uint16(payload))
	switch {
	case code < 1000, code == 1004, code == 1005, code == 1006, code > 1014 && code < 3000, code > 4999:
		return breach("close code %d is not for frames", code)
	case !utf8.Valid(payload[2:]):
		return &violation{closeNotUTF8, "the reason of a close is not UTF-8"}
	}
	return &peerClosed{code}
}
