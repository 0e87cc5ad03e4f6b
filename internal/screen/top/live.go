package top

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/internal/screen"
)

// patience is how long a hub may take for a snapshot or an answer.
const patience = 10 * time.Second

// Live is a hub that runs.
type Live struct {
	ctx    context.Context
	hub    *v1.Client
	colour bool

	// Of the model's own goroutine, which calls Tail and More.
	leave   context.CancelFunc // of what is followed
	follows *following
}

// following is a channel that is followed.
type following struct {
	number int
	lines  chan string
	ended  string // set before lines is closed
}

// NewLive serves a model from a hub until the context ends.
func NewLive(ctx context.Context, hub *v1.Client, colour bool) *Live {
	return &Live{ctx: ctx, hub: hub, colour: colour, leave: func() {}}
}

// Take asks for a snapshot after a pause.
func (l *Live) Take(after time.Duration, before *Snapshot) tea.Cmd {
	return func() tea.Msg {
		select {
		case <-time.After(after):
		case <-l.ctx.Done():
			return nil
		}
		ctx, cancel := context.WithTimeout(l.ctx, patience)
		defer cancel()
		s, err := Take(ctx, l.hub, before)
		if screen.Away(err) {
			l.hub.Relocate() // a hub that restarted may listen elsewhere
		}
		return Taken{Snapshot: s, Err: err, At: time.Now()}
	}
}

// Answer answers a request.
func (l *Live) Answer(r Request, choice string) tea.Cmd {
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(l.ctx, patience)
		defer cancel()
		_, err := l.hub.AnswerRequest(ctx, r.ID, v1.Reply{Choice: choice, Digest: r.Digest})
		return Answered{Title: r.Title, Choice: choice, Err: err}
	}
}

// Tail follows a channel, and ends the one that was followed before.
func (l *Live) Tail(number int, channel string) tea.Cmd {
	l.leave()
	l.leave, l.follows = func() {}, nil
	if channel == "" {
		return nil
	}
	ctx, leave := context.WithCancel(l.ctx)
	f := &following{number: number, lines: make(chan string, maxLines)}
	l.leave, l.follows = leave, f
	go func() {
		defer close(f.lines)
		f.ended = l.follow(ctx, channel, f.lines)
	}()
	return l.More()
}

// follow sends a channel's lines until it ends, and returns why no more come.
func (l *Live) follow(ctx context.Context, channel string, lines chan<- string) string {
	ch, err := l.hub.Channel(ctx, channel)
	if err != nil {
		return err.Error()
	}
	send := func(text string) error {
		select {
		case lines <- text:
			return nil
		case <-ctx.Done():
			return v1.ErrStop
		}
	}
	err = l.hub.FollowEvents(ctx, channel, v1.EventQuery{}, func(f v1.Frame) error {
		if f.Name == v1.GapFrame {
			return send("-- something is missing here")
		}
		ev, err := v1.ParseEvent(f.Data)
		if err != nil {
			return err
		}
		if err := send(screen.Line(ch, ev, l.colour)); err != nil {
			return err
		}
		if ev.Type == envelope.TypeClosed && l.hub.HasEnded(ctx, channel) {
			return v1.ErrStop
		}
		return nil
	})
	if err != nil {
		return err.Error()
	}
	return "the channel has ended"
}

// More waits for more lines of what is followed, and takes all that are there.
func (l *Live) More() tea.Cmd {
	f := l.follows
	if f == nil {
		return nil
	}
	return func() tea.Msg {
		line, ok := <-f.lines
		if !ok {
			return Lines{Number: f.number, Ended: f.ended}
		}
		got := Lines{Number: f.number, Lines: []string{line}}
		for len(got.Lines) < maxLines {
			select {
			case line, ok := <-f.lines:
				if !ok {
					got.Ended = f.ended
					return got
				}
				got.Lines = append(got.Lines, line)
			default:
				return got
			}
		}
		return got
	}
}
