package wsconn

import (
	"encoding/binary"

	"github.com/gobwas/ws"
)

// Frame is one outgoing message, or a control frame of this package. It is
// written as Head, Body and Tail, so that many connections share one Body. A
// frame's bytes must not change once it is queued.
type Frame struct {
	Head   string
	Body   []byte
	Tail   []byte
	Binary bool // otherwise text
	// Priority lets a frame go before others that wait with a lower one. Frames
	// with the same Stream and Tail keep their order among each other.
	Priority Priority
	Stream   string
	// Now says that no other frame is about to follow that the same write could send.
	Now bool

	control ws.OpCode // zero: a message
}

// Text makes a text message.
func Text(body []byte) Frame { return Frame{Body: body} }

// IsMessage reports whether the frame is a message, not a control frame.
func (f *Frame) IsMessage() bool { return f.control == 0 }

// Len returns the length of the payload.
func (f *Frame) Len() int { return len(f.Head) + len(f.Body) + len(f.Tail) }

// size returns the most bytes that the frame takes on the wire.
func (f *Frame) size() int { return f.Len() + 10 }

func (f *Frame) op() ws.OpCode {
	switch {
	case f.control != 0:
		return f.control
	case f.Binary:
		return ws.OpBinary
	}
	return ws.OpText
}

// appendHead writes the WebSocket header of a whole, unmasked frame, and Head.
// The library's WriteHeader allocates for each frame; this does not.
func (f *Frame) appendHead(buf []byte) []byte {
	buf = append(buf, 0x80|byte(f.op()))
	switch size := f.Len(); {
	case size < 126:
		buf = append(buf, byte(size))
	case size < 1<<16:
		buf = binary.BigEndian.AppendUint16(append(buf, 126), uint16(size))
	default:
		buf = binary.BigEndian.AppendUint64(append(buf, 127), uint64(size))
	}
	return append(buf, f.Head...)
}
