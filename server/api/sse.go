package api

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/server/access"
)

// stream is one follower's connection: server sent events, written together
// and flushed when nothing more is at hand.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	limit   time.Duration // for each write
	stands  func() bool   // whether the caller may still be answered
	tally   *tally        // of what waits for the reader
	ctx     context.Context
	buf     []byte
}

var errRevoked = fault.New(fault.AuthFailed, "the key was revoked, or its agent removed")

// flushAt bounds what is gathered before it is written.
const flushAt = 64 << 10

// wantsStream reports whether the caller asked to follow.
func (c *call) wantsStream() (bool, error) {
	if c.Method == http.MethodHead {
		return false, nil // a stream without a body would never end
	}
	if strings.Contains(c.Request.Header.Get("Accept"), "text/event-stream") {
		return true, nil
	}
	return c.flag("follow")
}

// resume is the position the caller names: a reconnecting browser in the
// header, everyone else as a parameter.
func (c *call) resume() string {
	if id := c.Request.Header.Get("Last-Event-ID"); id != "" {
		return id
	}
	return c.URL.Query().Get("after")
}

// stream begins the answer. The context ends when the caller goes or the
// server drains; done must be called.
func (a *API) stream(c *call) (s *stream, ctx context.Context, done func(), err error) {
	select {
	case a.followers <- struct{}{}:
	default:
		return nil, nil, nil, fault.New(fault.Unavailable, "%d streams are open, which is the limit (limits.followers); try again", cap(a.followers))
	}
	ctx, cancel := context.WithCancel(c.Context())
	stopping := a.cfg.Stopping(ctx)
	if stopping != nil {
		go func() {
			select {
			case <-stopping:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	header := c.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no") // a proxy must not gather what we flush
	if c.ProtoMajor == 1 {
		header.Set("Connection", "close") // the deadline of its end would stay for the next request
	}
	s = &stream{
		w: c.ResponseWriter, control: http.NewResponseController(c.ResponseWriter), limit: a.cfg.Limits.Write,
		stands: func() bool { return a.stands(c.who) }, tally: &c.tally, ctx: ctx,
	}
	c.WriteHeader(http.StatusOK)
	_ = s.flush() // a caller that is gone is noticed at the next
	return s, ctx, func() { cancel(); s.end(); <-a.followers }, nil
}

// stands reports whether a caller is still who it was: its key is good, and the
// agent that it is a key of is still registered.
func (a *API) stands(who caller) bool {
	if who.Role == access.Agent {
		if _, err := a.hub.AgentByID(who.id); err != nil {
			return false
		}
	}
	return a.cfg.Stands(who.Principal)
}

// event adds one event; its data has no line breaks.
func (s *stream) event(id, name string, data []byte) {
	s.buf = appendFrame(s.buf, id, name, data)
}

func appendFrame(buf []byte, id, name string, data []byte) []byte {
	buf = append(append(append(buf, "id: "...), id...), '\n')
	if name != "" {
		buf = append(append(append(buf, "event: "...), name...), '\n')
	}
	return append(append(append(buf, "data: "...), data...), "\n\n"...)
}

// comment keeps a silent connection alive.
func (s *stream) comment() { s.buf = append(s.buf, ": still here\n\n"...) }

// flush writes what was gathered, once the caller's share of all answers has
// room for it. A reader that does not take it in time is cut off, and resumes
// from its last event.
func (s *stream) flush() error {
	ctx, cancel := context.WithTimeout(s.ctx, s.limit)
	defer cancel()
	if err := s.tally.wait(ctx, int64(len(s.buf))); err != nil {
		return err
	}
	defer s.tally.release()
	if err := s.control.SetWriteDeadline(time.Now().Add(s.limit)); err != nil {
		return err
	}
	if len(s.buf) > 0 {
		if _, err := s.w.Write(s.buf); err != nil {
			return err
		}
		if s.buf = s.buf[:0]; cap(s.buf) > 2*flushAt {
			s.buf = nil // an idle follower does not keep what one large event took
		}
	}
	if err := s.control.Flush(); err != nil {
		return err
	}
	// Between writes nothing is late: HTTP/2 ends a stream at its deadline,
	// written to or not.
	return s.control.SetWriteDeadline(time.Time{})
}

// end bounds what net/http writes after the handler.
func (s *stream) end() {
	_ = s.control.SetWriteDeadline(time.Now().Add(s.limit)) // if it fails, the connection is gone
}

// pump writes what next yields until something fails, and a comment whenever
// nothing came for a while. Next returns nil to be called again, or what to
// wait for.
func (s *stream) pump(ctx context.Context, silence time.Duration, next func() (wake <-chan struct{}, err error)) error {
	quiet := time.NewTicker(silence)
	defer quiet.Stop()
	for {
		wake, err := next()
		if err != nil {
			if !s.stands() {
				return errRevoked
			}
			_ = s.flush()
			return err
		}
		if wake == nil && len(s.buf) < flushAt {
			continue
		}
		if !s.stands() {
			return errRevoked
		}
		if err := s.flush(); err != nil {
			return err
		}
		if wake == nil {
			continue
		}
		select {
		case <-wake:
		case <-quiet.C:
			s.comment()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
