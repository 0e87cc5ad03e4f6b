package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/internal/screen/join"
)

// maxLine bounds a line to say.
const maxLine = 1 << 20

// talking is a person who talks line by line.
type talking struct {
	*join.Talk
	app     *app
	printer *printer

	turn string // the turn that was last printed

	mu    sync.Mutex    // guards the output and the fields below
	key   string        // of the text being sent; empty: none
	shown chan struct{} // closed when it is shown
}

// talk shows a channel and sends each line that is typed, until the input or the
// channel ends.
func (a *app) talk(ctx context.Context, talk *join.Talk) error {
	t := &talking{Talk: talk, app: a}
	t.Saying = func(key string) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.key, t.shown = key, make(chan struct{})
	}
	t.printer = &printer{app: a, ch: t.Channel, json: a.output == "json", colour: a.colours()}
	t.tellTurn(t.Channel)
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	ended := make(chan error, 1)
	go func() { ended <- t.follow(ctx) }()
	lines, cut := make(chan string), make(chan error, 1)
	go func() { cut <- a.readLines(ctx, lines) }()
	if join.Invited(t.Channel, t.Me) {
		t.note("-- %s is invited: /accept or /decline", cell(t.Me.Passport.Name))
	}
	for {
		select {
		case err := <-ended:
			return err
		case line, more := <-lines:
			if !more {
				return <-cut
			}
			did, err := t.Do(ctx, line)
			if err != nil {
				fmt.Fprintln(cleanWriter{a.err}, "parley:", strings.TrimSpace(advise(err).Error()))
			}
			for _, note := range did.Notes {
				t.note("%s", note)
			}
			if did.Said {
				select { // a text is shown before the next line is read
				case <-t.shown:
				case err := <-ended:
					return err
				}
			}
			if did.Leave {
				return nil
			}
		}
	}
}

// readLines hands over what is typed, and closes lines at its end.
func (a *app) readLines(ctx context.Context, lines chan<- string) error {
	defer close(lines)
	in := bufio.NewScanner(a.in)
	in.Buffer(nil, maxLine)
	for in.Scan() {
		select {
		case lines <- in.Text():
		case <-ctx.Done():
			return nil
		}
	}
	if errors.Is(in.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("a line of the input has more than %d bytes; it was not said, nor what follows it", maxLine)
	}
	return in.Err()
}

// follow prints the channel's envelopes until it ends.
func (t *talking) follow(ctx context.Context) error {
	return t.Hub.FollowEvents(ctx, t.Channel.ID, v1.EventQuery{As: t.Me.Passport.ID}, func(f v1.Frame) error {
		if f.Name == v1.GapFrame {
			return t.printer.gap(f.Data)
		}
		ev, err := v1.ParseEvent(f.Data)
		if err != nil {
			return err
		}
		t.mu.Lock()
		err = t.printer.event(ev)
		t.mu.Unlock()
		if err != nil {
			return err
		}
		now, err := t.Hub.Channel(ctx, t.Channel.ID)
		if err == nil {
			t.tellTurn(now)
		}
		t.seen(ev)
		if ev.Type == envelope.TypeClosed && t.Hub.HasEnded(ctx, t.Channel.ID) {
			return v1.ErrStop
		}
		return nil
	})
}

// tellTurn prints whose turn it is, if that has changed.
func (t *talking) tellTurn(now *v1.Channel) {
	turn := join.Turn(now, t.Me)
	if turn == t.turn {
		return
	}
	if t.turn = turn; turn != "" {
		t.note("-- %s", turn)
	}
}

// note prints a line that is not part of the channel.
func (t *talking) note(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(cleanWriter{t.app.err}, format+"\n", args...)
}

// seen wakes the sender of a text when it is shown.
func (t *talking) seen(ev *v1.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var with struct {
		Key string `json:"idempotency_key"`
	}
	if t.key == "" || ev.Sender != t.Me.Passport.ID || json.Unmarshal(ev.Raw, &with) != nil || with.Key != t.key {
		return
	}
	t.key = ""
	close(t.shown)
}
