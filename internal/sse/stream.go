// Package sse writes server-sent events: framing that no payload can break,
// several events in one write, keep-alive comments, and a deadline for each
// write. It knows neither the events nor who reads them.
package sse

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Config says how a stream is written.
type Config struct {
	// Write is how long one write may take; a slower reader is disconnected.
	Write time.Duration
	// KeepAlive is the silence after which a comment is written.
	KeepAlive time.Duration
	// KeepConnection sends keep-alive to readers whose protocol requires it.
	KeepConnection bool
	// Before is called before each write with its size; an error ends the stream
	// without the write. What it returns is called after the write. Both may be
	// nil.
	Before func(ctx context.Context, size int) (after func(), err error)
}

// Stream is one reader's connection. Events are gathered and written together
// when nothing more is at hand. It is used by one goroutine.
type Stream struct {
	cfg     Config
	w       http.ResponseWriter
	control *http.ResponseController
	buf     []byte
}

// ErrSlow ends a stream whose reader did not take a write within Config.Write.
var ErrSlow = errors.New("the reader takes too long")

// flushAt bounds what is gathered before it is written.
const flushAt = 64 << 10

// Start answers the request with the headers of a stream. A Cache-Control that
// is already set stays. End must be called.
func Start(w http.ResponseWriter, r *http.Request, cfg Config) *Stream {
	header := w.Header()
	header.Set("Content-Type", ContentType)
	if header.Get("Cache-Control") == "" {
		header.Set("Cache-Control", "no-store")
	}
	header.Set("X-Accel-Buffering", "no") // a proxy must not buffer what is flushed
	if r.ProtoMajor == 1 {
		header.Set("Connection", "close") // the deadline of End would otherwise apply to the next request
		if cfg.KeepConnection {
			header.Set("Connection", "keep-alive")
		}
	}
	s := &Stream{cfg: cfg, w: w, control: http.NewResponseController(w)}
	w.WriteHeader(http.StatusOK)
	_ = s.write(nil) // a reader that is gone is noticed at the next write
	return s
}

// Event adds an event, as AppendEvent does.
func (s *Stream) Event(id, name string, data []byte) { s.buf = AppendEvent(s.buf, id, name, data) }

// Append adds events that AppendEvent made, perhaps once for many streams.
func (s *Stream) Append(events []byte) { s.buf = append(s.buf, events...) }

// Comment adds a comment.
func (s *Stream) Comment(text string) { s.buf = AppendComment(s.buf, text) }

// Buffered returns how many bytes were added and not yet written.
func (s *Stream) Buffered() int { return len(s.buf) }

// Flush writes what was gathered. A reader that does not take it in time is
// disconnected, and resumes from its last event.
func (s *Stream) Flush(ctx context.Context) error {
	if s.cfg.Before != nil {
		after, err := s.cfg.Before(ctx, len(s.buf))
		if err != nil {
			return err
		}
		if after != nil {
			defer after()
		}
	}
	began := time.Now()
	if err := s.write(s.buf); err != nil {
		if time.Since(began) >= s.cfg.Write { // HTTP/2 says only that the stream is closed
			err = fmt.Errorf("%w: %w", ErrSlow, err)
		}
		return err
	}
	if s.buf = s.buf[:0]; cap(s.buf) > 2*flushAt {
		s.buf = nil // an idle stream does not keep the memory of one large event
	}
	return nil
}

func (s *Stream) write(b []byte) error {
	if err := s.control.SetWriteDeadline(time.Now().Add(s.cfg.Write)); err != nil {
		return err
	}
	if len(b) > 0 {
		if _, err := s.w.Write(b); err != nil {
			return err
		}
	}
	if err := s.control.Flush(); err != nil {
		return err
	}
	// No deadline between writes: HTTP/2 ends a stream at its deadline,
	// whether it is written to or not.
	return s.control.SetWriteDeadline(time.Time{})
}

// Farewell writes one last event and nothing else: the reader may no longer be
// allowed to see what was gathered. Config.Before is not called.
func (s *Stream) Farewell(name string, data []byte) error {
	s.buf = nil
	return s.write(AppendEvent(nil, "", name, data))
}

// End bounds what net/http writes after the handler returns. With
// KeepConnection that is a few bytes after a write that was taken.
func (s *Stream) End() {
	if s.cfg.KeepConnection {
		return
	}
	_ = s.control.SetWriteDeadline(time.Now().Add(s.cfg.Write)) // if it fails, the connection is closed
}

// Run writes the events that next adds, until next or a write fails or ctx
// ends, and a comment after each Config.KeepAlive of silence. Next returns nil
// to be called again, or a channel to wait for; events are written before the
// stream waits. The events before next's error are written too.
func (s *Stream) Run(ctx context.Context, next func() (wake <-chan struct{}, err error)) error {
	quiet := time.NewTicker(s.cfg.KeepAlive)
	defer quiet.Stop()
	for {
		wake, failed := next()
		if failed == nil && wake == nil && len(s.buf) < flushAt {
			continue
		}
		if err := s.Flush(ctx); err != nil {
			return err
		}
		if failed != nil {
			return failed
		}
		if wake == nil {
			continue
		}
		select {
		case <-wake:
		case <-quiet.C:
			s.Comment("keepalive")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
