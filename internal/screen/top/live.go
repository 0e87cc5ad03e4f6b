package top

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/internal/loop"
	"github.com/parley-hub/parley/internal/screen"
)

// patience is how long a hub may take for a snapshot or an answer.
const patience = 10 * time.Second

// Live is a hub that runs.
type Live struct {
	ctx    context.Context
	hub    *v1.Client
	colour bool

	// Only the model's goroutine, which calls Tail and More, uses these.
	number int
	tail   *screen.Tail
}

// NewLive serves a model from a hub until the context ends.
func NewLive(ctx context.Context, hub *v1.Client, colour bool) *Live {
	return &Live{ctx: ctx, hub: hub, colour: colour}
}

// Take asks for a snapshot after a pause.
func (l *Live) Take(after time.Duration, before *Snapshot) tea.Cmd {
	return func() tea.Msg {
		if loop.Pause(l.ctx, after) != nil {
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
	l.tail.Leave()
	l.number, l.tail = number, nil
	if channel == "" {
		return nil
	}
	l.tail = screen.Follow(l.ctx, l.hub, channel, v1.EventQuery{}, l.colour)
	return l.More()
}

// More waits for more lines of what is followed.
func (l *Live) More() tea.Cmd {
	number, tail := l.number, l.tail
	if tail == nil {
		return nil
	}
	return func() tea.Msg {
		lines, ended := tail.More()
		return Lines{Number: number, Lines: lines, Ended: ended}
	}
}
