package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// event is an envelope as the hub's own interface shows it.
type event struct {
	Position  string          `json:"position"`
	Sequence  uint64          `json:"sequence"`
	ID        string          `json:"envelope_id"`
	Channel   string          `json:"channel_id"`
	Sender    string          `json:"sender_id"`
	Audience  []string        `json:"audience"`
	Type      string          `json:"event_type"`
	Data      json.RawMessage `json:"event_data"`
	CreatedAt time.Time       `json:"created_at"`

	raw json.RawMessage // the whole of it, as it was sent
}

// pages reads a channel from a position to where it ends now, through the eyes
// of whoever as names.
func (h *hubClient) pages(ctx context.Context, channel, as, after string, visit func(*event) error) error {
	for {
		q := url.Values{"limit": {"1000"}}
		if as != "" {
			q.Set("as", as)
		}
		if after != "" {
			q.Set("after", after)
		}
		var page struct {
			Events []json.RawMessage `json:"events"`
			Next   string            `json:"next"`
			More   bool              `json:"more"`
		}
		path := "/v1/channels/" + url.PathEscape(channel) + "/events?" + q.Encode()
		if err := h.call(ctx, http.MethodGet, path, nil, &page); err != nil {
			return err
		}
		for _, raw := range page.Events {
			ev := &event{raw: raw}
			if err := json.Unmarshal(raw, ev); err != nil {
				return err
			}
			if err := visit(ev); err != nil {
				return err
			}
		}
		if after = page.Next; !page.More {
			return nil
		}
	}
}

// frame is one server sent event.
type frame struct {
	id, name string
	data     []byte
}

// maxFrame bounds one line of a stream.
const maxFrame = 8 << 20

// follow streams a path and hands every frame to visit. A connection that
// breaks, or a hub that restarts, is waited for: the stream goes on after the
// last frame, without gap or repeat. It returns when visit fails, when the
// hub refuses, or when ctx ends.
//
// What a live event said is not kept: after a break only stored ones follow.
func (h *hubClient) follow(ctx context.Context, path, after string, visit func(frame) error) error {
	pause := minPause
	for {
		err := h.connect(ctx, path, after, func(f frame) error {
			pause = minPause
			if err := visit(f); err != nil {
				return &visitError{err}
			}
			after = f.id
			return nil
		})
		var visited *visitError
		var refused *refusedError
		switch {
		case errors.As(err, &visited):
			return visited.err
		case errors.As(err, &refused):
			return refused.err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		pause = min(pause*2, maxPause)
		if h.again != nil {
			h.again()
		}
	}
}

const (
	minPause = 100 * time.Millisecond
	maxPause = 2 * time.Second
)

type (
	visitError   struct{ err error } // the visitor's own
	refusedError struct{ err error } // the hub's: asking again would not help
)

func (e *visitError) Error() string   { return e.err.Error() }
func (e *refusedError) Error() string { return e.err.Error() }

// connect is one connection's worth of frames.
func (h *hubClient) connect(ctx context.Context, path, after string, visit func(frame) error) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, h.base+path, nil)
	if err != nil {
		return &refusedError{err}
	}
	request.Header.Set("Accept", "text/event-stream")
	if after != "" {
		request.Header.Set("Last-Event-ID", after)
	}
	if h.token != "" {
		request.Header.Set("Authorization", "Bearer "+h.token)
	}
	// No time-out: the hub is silent for as long as nothing happens.
	patient := &http.Client{Transport: h.http.Transport}
	answer, err := patient.Do(request)
	if err != nil {
		return fmt.Errorf("ask the hub: %w; is it running?", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		raw, _ := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
		err := h.refusal(answer, raw)
		if answer.StatusCode >= http.StatusInternalServerError {
			return err
		}
		return &refusedError{err}
	}
	return readFrames(answer.Body, visit)
}

func readFrames(r io.Reader, visit func(frame) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxFrame)
	var f frame
	for lines.Scan() {
		line := lines.Text()
		switch {
		case line == "" && f.data != nil:
			if err := visit(f); err != nil {
				return err
			}
			f = frame{}
		case strings.HasPrefix(line, "id: "):
			f.id = line[4:]
		case strings.HasPrefix(line, "event: "):
			f.name = line[7:]
		case strings.HasPrefix(line, "data: "):
			f.data = []byte(line[6:])
		}
	}
	return errors.Join(lines.Err(), io.ErrUnexpectedEOF)
}
