package v1

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// GapFrame is the Name of a frame that says that events are missing.
const GapFrame = "gap"

// Frame is one server-sent event.
type Frame struct {
	ID   string // the position to go on after
	Name string
	Data []byte
}

// ErrStop ends a stream when visit returns it. Follow then returns nil.
var ErrStop = errors.New("stop the stream")

const (
	minPause = 100 * time.Millisecond
	maxPause = 2 * time.Second
)

// Follow streams a path and calls visit with every frame. When the connection breaks
// or the hub restarts, Follow waits for the hub and continues after the last frame,
// without gap or repeat. Live events, which are not stored, are lost during a break.
// Follow returns the error of visit or the hub's refusal, or nil when ctx ends or
// visit returns ErrStop.
func (c *Client) Follow(ctx context.Context, path, after string, visit func(Frame) error) error {
	return c.FollowFrom(ctx, path, after, func() {}, visit)
}

// FollowFrom is like Follow, and calls begun each time the hub accepts the
// request, before the first frame.
func (c *Client) FollowFrom(ctx context.Context, path, after string, begun func(), visit func(Frame) error) error {
	pause, search := minPause, c.search()
	away := false // and Notify was called
	say := func(now bool, text string) {
		if away != now && c.opts.Notify != nil {
			c.opts.Notify(text)
		}
		away = now
	}
	for {
		err := c.connect(ctx, path, after, func() { say(false, "the hub is back"); begun() }, func(f Frame) error {
			pause = minPause
			if err := visit(f); err != nil {
				return &visitError{err}
			}
			after = cmp.Or(f.ID, after) // frames without an id are not stored
			return nil
		})
		var visited *visitError
		var refused *refusedError
		var absent *absentError
		switch {
		case errors.As(err, &visited):
			if errors.Is(visited.err, ErrStop) {
				return nil
			}
			return visited.err
		case errors.As(err, &refused):
			return refused.err
		case errors.As(err, &absent) && ctx.Err() == nil:
			say(true, "the hub does not answer; waiting for it ("+absent.Error()+")")
			if search.elsewhere(absent.err) && ctx.Err() == nil && pause == minPause {
				pause *= 2 // the first retry is immediate; two nodes may each name the other, so later ones wait
				continue
			}
		}
		if !c.pause(ctx, pause) {
			return nil
		}
		pause = min(pause*2, maxPause)
	}
}

// pause waits before the next request, and then calls Relocate. It returns false when
// ctx ends.
func (c *Client) pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		c.Relocate()
		return true
	}
}

type (
	visitError   struct{ err error } // an error of visit
	refusedError struct{ err error } // the hub refused; a retry does not help
	absentError  struct{ err error } // the hub cannot be reached, or is not ready
)

func (e *visitError) Error() string   { return e.err.Error() }
func (e *refusedError) Error() string { return e.err.Error() }
func (e *absentError) Error() string  { return e.err.Error() }

// connect reads the frames of one connection. It calls begun when the hub has
// accepted the request.
func (c *Client) connect(ctx context.Context, path, after string, begun func(), visit func(Frame) error) error {
	request, err := c.request(ctx, http.MethodGet, path, nil)
	if err != nil {
		return &refusedError{err}
	}
	request.Header.Set("Accept", "text/event-stream")
	if after != "" {
		request.Header.Set("Last-Event-ID", after)
	}
	answer, err := c.HTTP().Do(request)
	if err != nil {
		return &absentError{err}
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		err := refusal(answer)
		if answer.StatusCode >= http.StatusInternalServerError {
			return &absentError{err}
		}
		return &refusedError{err}
	}
	begun()
	err = ReadFrames(answer.Body, visit)
	if errors.Is(err, bufio.ErrTooLong) {
		return &refusedError{fmt.Errorf("an event is over %d MiB, which is what is read at once", MaxAnswer>>20)}
	}
	return err
}

// ReadFrames calls visit with the frames of a stream. It returns visit's error, or
// io.ErrUnexpectedEOF when the stream ends.
func ReadFrames(r io.Reader, visit func(Frame) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, MaxAnswer)
	var f Frame
	for lines.Scan() {
		line := lines.Bytes()
		if len(line) == 0 {
			if f.Data != nil {
				if err := visit(f); err != nil {
					return err
				}
			}
			f = Frame{}
			continue
		}
		if len(f.Data)+len(line) > MaxAnswer {
			return bufio.ErrTooLong
		}
		f.add(line)
	}
	return errors.Join(lines.Err(), io.ErrUnexpectedEOF)
}
