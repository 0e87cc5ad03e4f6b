package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/internal/screen"
)

// maxLine bounds a line that is said.
const maxLine = 1 << 20

// awayPause is how long to wait before a hub that is away is asked again.
const awayPause = 200 * time.Millisecond

// talking is somebody in a channel.
type talking struct {
	app     *app
	hub     *v1.Client
	me      *v1.Agent
	ch      *v1.Channel
	printer *printer

	turn string // whose turn was said last

	mu    sync.Mutex    // of what is printed, and of what follows
	key   string        // of what is being said; empty: nothing is
	shown chan struct{} // closed when it was shown
}

// talk shows a channel and says what is typed, until the input or the channel
// ends.
func (a *app) talk(ctx context.Context, hub *v1.Client, me *v1.Agent, ch *v1.Channel) error {
	t := &talking{app: a, hub: hub, me: me, ch: ch}
	t.printer = &printer{app: a, ch: ch, json: a.output == "json", colour: a.colours()}
	t.tellTurn(ch)
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	ended := make(chan error, 1)
	go func() { ended <- t.follow(ctx) }()
	lines := make(chan string)
	go a.readLines(ctx, lines)
	if ch.State == "pending" {
		t.note("%s is invited: /accept or /decline", cell(me.Passport.Name))
	}
	for {
		select {
		case err := <-ended:
			return err
		case line, more := <-lines:
			if !more {
				return nil
			}
			said, stop, err := t.line(ctx, line)
			if err != nil {
				fmt.Fprintln(plain{a.err}, "parley:", strings.TrimSpace(advise(err).Error()))
			}
			if said {
				select { // what was said is shown before the next line is read
				case <-t.shown:
				case err := <-ended:
					return err
				}
			}
			if stop {
				return nil
			}
		}
	}
}

// readLines hands over what is typed, and closes lines at its end.
func (a *app) readLines(ctx context.Context, lines chan<- string) {
	defer close(lines)
	in := bufio.NewScanner(a.in)
	in.Buffer(nil, maxLine)
	for in.Scan() {
		select {
		case lines <- in.Text():
		case <-ctx.Done():
			return
		}
	}
	if err := in.Err(); err != nil {
		fmt.Fprintln(plain{a.err}, "parley: the input ends here:", err)
	}
}

// follow prints the channel's envelopes until it ends.
func (t *talking) follow(ctx context.Context) error {
	return t.hub.FollowEvents(ctx, t.ch.ID, v1.EventQuery{As: t.me.Passport.ID}, func(f v1.Frame) error {
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
		now, err := t.hub.Channel(ctx, t.ch.ID)
		if err == nil {
			t.tellTurn(now)
		}
		t.seen(ev)
		if ev.Type == envelope.TypeClosed && t.hub.HasEnded(ctx, t.ch.ID) {
			return v1.ErrStop
		}
		return nil
	})
}

// tellTurn says whose turn it is, where that has changed.
func (t *talking) tellTurn(now *v1.Channel) {
	whose := ""
	if now.Expected != nil && !now.Ended() {
		whose = *now.Expected
	}
	if whose == t.turn {
		return
	}
	t.turn = whose
	switch whose {
	case "":
	case t.me.Passport.ID:
		t.note("it is your turn, %s", cell(t.me.Passport.Name))
	default:
		t.note("it is the turn of %s", nameIn(now, whose))
	}
}

// note says something beside the channel.
func (t *talking) note(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(plain{t.app.err}, "-- "+format+"\n", args...)
}

// seen lets go on who waits for what was said.
func (t *talking) seen(ev *v1.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var with struct {
		Key string `json:"idempotency_key"`
	}
	if t.key == "" || ev.Sender != t.me.Passport.ID || json.Unmarshal(ev.Raw, &with) != nil || with.Key != t.key {
		return
	}
	t.key = ""
	close(t.shown)
}

// line does what a line says, and reports whether something was said that the
// channel will show.
func (t *talking) line(ctx context.Context, line string) (said, stop bool, err error) {
	words := strings.Fields(line)
	switch {
	case len(words) == 0:
		return false, false, nil
	case !strings.HasPrefix(line, "/") || strings.HasPrefix(line, "//"):
		text := strings.Replace(line, "//", "/", 1)
		if !strings.HasPrefix(line, "/") {
			text = line
		}
		err = t.say(ctx, v1.Posting{Text: &text})
		return err == nil, false, err
	}
	switch words[0] {
	case "/accept":
		err = t.say(ctx, v1.Posting{Type: envelope.TypeInviteAck})
		return err == nil, false, err
	case "/decline":
		err = t.say(ctx, v1.Posting{Type: envelope.TypeInviteReject})
		return false, err == nil, err
	case "/answer":
		if len(words) < 2 {
			return false, false, usageError("REQUEST is missing: /answer REQUEST [CHOICE]")
		}
		reply := v1.Reply{As: t.me.Passport.ID}
		if len(words) > 2 {
			reply.Choice = words[2]
		}
		r, err := t.hub.AnswerRequest(ctx, words[1], reply)
		if err == nil {
			t.note("request %s is %s", cell(r.ID), r.State)
		}
		return false, false, err
	case "/waiting":
		waits, err := whatWaits(ctx, t.hub, t.me)
		if err != nil {
			return false, false, err
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		return false, false, waits.write(plain{t.app.err}, cell(t.me.Passport.Name))
	case "/leave":
		return false, true, nil
	}
	return false, false, usageError("there is no %s: it is /accept, /decline, /answer, /waiting or /leave; // begins a line with a slash", words[0])
}

// say posts once, however often the hub has to be asked.
func (t *talking) say(ctx context.Context, p v1.Posting) error {
	p.Sender, p.Key = t.me.Passport.ID, rand.Text()
	t.mu.Lock()
	t.key, t.shown = p.Key, make(chan struct{})
	t.mu.Unlock()
	for {
		_, err := t.hub.Send(ctx, t.ch.ID, p)
		if !screen.Away(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(awayPause):
			t.hub.Relocate()
		}
	}
}
