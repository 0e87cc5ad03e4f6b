package server

import (
	"net/http"
	"time"
)

// paceBytes is how much of an answer must be read within one deadline. The whole
// answer has no deadline.
const paceBytes = 64 << 10

// pace ends an answer whose reader stops reading: what the answer holds is
// then free again. Every handler writes through one, unless it takes the
// connection over.
type pace struct {
	http.ResponseWriter
	control *http.ResponseController
	limit   time.Duration
	streams bool // HTTP/2: a deadline ends a stream, written to or not
}

func newPace(w http.ResponseWriter, r *http.Request, limit time.Duration) *pace {
	p := &pace{ResponseWriter: w, control: http.NewResponseController(w), limit: limit, streams: r.ProtoMajor > 1}
	if !p.streams {
		p.begin() // "100 Continue" is written without us
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

// begin gives the reader its time. A writer without deadlines is a test's: then
// there is no peer to be slow.
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
