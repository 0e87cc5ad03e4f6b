package server

import (
	"net/http"
	"time"
)

// paceBytes is how much of an answer must be read within one deadline. The whole
// answer has no deadline.
const paceBytes = 64 << 10

// pace ends an answer whose reader stops reading, which frees what the answer
// holds. Every handler writes through one, unless it takes over the
// connection.
type pace struct {
	http.ResponseWriter
	control *http.ResponseController
	limit   time.Duration
	streams bool // HTTP/2: a deadline ends a stream, whether it is written to or not
}

func newPace(w http.ResponseWriter, r *http.Request, limit time.Duration) *pace {
	p := &pace{ResponseWriter: w, control: http.NewResponseController(w), limit: limit, streams: r.ProtoMajor > 1}
	if !p.streams {
		p.begin() // net/http writes "100 Continue" itself
	}
	return p
}

// Write writes in parts, each with a deadline of its own.
func (p *pace) Write(b []byte) (written int, err error) {
	for {
		part := b[:min(len(b), paceBytes)]
		p.begin()
		n, err := p.ResponseWriter.Write(part)
		written += n
		if err != nil {
			return written, err
		}
		if b = b[n:]; len(b) == 0 {
			break
		}
	}
	if p.streams {
		_ = p.control.SetWriteDeadline(time.Time{})
	}
	return written, nil
}

// begin sets the reader's deadline. A writer without deadlines is a test's:
// then no peer can be slow.
func (p *pace) begin() { _ = p.control.SetWriteDeadline(time.Now().Add(p.limit)) }

// Flush serves handlers that ask for http.Flusher.
func (p *pace) Flush() {
	p.begin()
	_ = p.control.Flush() // as http.Flusher, it cannot fail
	if p.streams {
		_ = p.control.SetWriteDeadline(time.Time{})
	}
}

// Unwrap serves http.ResponseController.
func (p *pace) Unwrap() http.ResponseWriter { return p.ResponseWriter }
