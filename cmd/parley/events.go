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
// of whoever as names. One event at a time is held, however long a page is.
func (h *hubClient) pages(ctx context.Context, channel, as, after string, visit func(*event) error) error {
	for {
		q := url.Values{"limit": {"1000"}}
		if as != "" {
			q.Set("as", as)
		}
		if after != "" {
			q.Set("after", after)
		}
		path := "/v1/channels/" + url.PathEscape(channel) + "/events?" + q.Encode()
		page, err := h.page(ctx, path, visit)
		if err != nil {
			return err
		}
		if after = page.Next; !page.More {
			return nil
		}
	}
}

// page reads one page. It should begin soon, and takes as long as visit does.
func (h *hubClient) page(ctx context.Context, path string, visit func(*event) error) (pageEnd, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := time.AfterFunc(callTimeout, func() { cancel(fmt.Errorf("no answer in %s", callTimeout)) })
	answer, err := h.download(ctx, http.MethodGet, path)
	late.Stop()
	if err != nil {
		return pageEnd{}, err
	}
	defer answer.Close()
	return readEvents(answer, visit)
}

// pageEnd is what a page says of those after it.
type pageEnd struct {
	Next string
	More bool
}

// readEvents hands every event of a page to visit as it comes.
func readEvents(r io.Reader, visit func(*event) error) (end pageEnd, err error) {
	body := &bounded{r: r, left: maxAnswer}
	in := json.NewDecoder(body)
	wanted := func(err error) error {
		return fmt.Errorf("the hub's answer is not the page that was expected: %w", err)
	}
	if _, err := in.Token(); err != nil {
		return end, wanted(err)
	}
	for in.More() {
		name, err := in.Token()
		if err != nil {
			return end, wanted(err)
		}
		switch name {
		case "events":
			var failed error
			err = eachOf(in, func(raw json.RawMessage) error {
				body.left = maxAnswer
				ev := &event{raw: raw}
				if err := json.Unmarshal(raw, ev); err != nil {
					return err
				}
				failed = visit(ev)
				return failed
			})
			if failed != nil {
				return end, failed
			}
		case "next":
			err = in.Decode(&end.Next)
		case "more":
			err = in.Decode(&end.More)
		default:
			err = in.Decode(new(json.RawMessage))
		}
		if err != nil {
			return end, wanted(err)
		}
	}
	if _, err := in.Token(); err != nil {
		return end, wanted(err)
	}
	return end, nil
}

// eachOf reads an array, one item at a time.
func eachOf(in *json.Decoder, each func(json.RawMessage) error) error {
	if open, err := in.Token(); err != nil || open != json.Delim('[') {
		return errors.Join(err, fmt.Errorf("%v stands where a list is wanted", open))
	}
	for in.More() {
		var raw json.RawMessage
		if err := in.Decode(&raw); err != nil {
			return err
		}
		if err := each(raw); err != nil {
			return err
		}
	}
	_, err := in.Token()
	return err
}

// frame is one server sent event.
type frame struct {
	id, name string
	data     []byte
}

// maxFrame bounds one line of a stream.
const maxFrame = maxAnswer

// follow streams a path and hands every frame to visit. A connection that
// breaks, or a hub that restarts, is waited for: the stream goes on after the
// last frame, without gap or repeat. It returns when visit fails, when the
// hub refuses, or when ctx ends.
//
// What a live event said is not kept: after a break only stored ones follow.
func (h *hubClient) follow(ctx context.Context, path, after string, visit func(frame) error) error {
	pause := minPause
	away := false // and whoever reads has been told
	say := func(now bool, text string) {
		if away != now && h.tell != nil {
			h.tell(text)
		}
		away = now
	}
	for {
		err := h.connect(ctx, path, after, func() { say(false, "the hub is back") }, func(f frame) error {
			pause = minPause
			if err := visit(f); err != nil {
				return &visitError{err}
			}
			after = f.id
			return nil
		})
		var visited *visitError
		var refused *refusedError
		var none *noAnswerError
		switch {
		case errors.As(err, &visited):
			return visited.err
		case errors.As(err, &refused):
			return refused.err
		case errors.As(err, &none) && ctx.Err() == nil:
			say(true, "the hub does not answer; waiting for it ("+none.Error()+")")
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
	visitError    struct{ err error } // the visitor's own
	refusedError  struct{ err error } // the hub's: asking again would not help
	noAnswerError struct{ err error } // the hub is away, or not ready
)

func (e *visitError) Error() string    { return e.err.Error() }
func (e *refusedError) Error() string  { return e.err.Error() }
func (e *noAnswerError) Error() string { return e.err.Error() }

// connect is one connection's worth of frames.
func (h *hubClient) connect(ctx context.Context, path, after string, begun func(), visit func(frame) error) error {
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
		return &noAnswerError{err}
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		raw, _ := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
		err := h.refusal(answer, raw)
		if answer.StatusCode >= http.StatusInternalServerError {
			return &noAnswerError{err}
		}
		return &refusedError{err}
	}
	begun()
	err = readFrames(answer.Body, visit)
	if errors.Is(err, bufio.ErrTooLong) {
		return &refusedError{fmt.Errorf("an event is over %d MiB, which is what is read at once", maxFrame>>20)}
	}
	return err
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
