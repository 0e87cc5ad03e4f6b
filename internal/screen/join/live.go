package join

import (
	"context"
	"net/url"
	"time"

	tea "charm.land/bubbletea/v2"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/internal/loop"
	"github.com/parley-hub/parley/internal/screen"
)

// patience is how long a hub may take to answer.
const patience = 10 * time.Second

// Live is a hub that runs.
type Live struct {
	ctx    context.Context
	hub    *v1.Client
	me     *v1.Agent
	colour bool

	// Only the model's goroutine, which calls every method, uses these.
	talk *Talk
	tail *screen.Tail
}

// NewLive serves a person's model from a hub until the context ends.
func NewLive(ctx context.Context, hub *v1.Client, me *v1.Agent, colour bool) *Live {
	return &Live{ctx: ctx, hub: hub, me: me, colour: colour}
}

// Look asks, after a pause, what waits and for the state of the open channel.
func (l *Live) Look(number int, after time.Duration) tea.Cmd {
	talk := l.talk
	return func() tea.Msg {
		if loop.Pause(l.ctx, after) != nil {
			return nil
		}
		ctx, cancel := context.WithTimeout(l.ctx, patience)
		defer cancel()
		seen := Looked{Number: number}
		seen.Waiting, seen.Err = WhatWaits(ctx, l.hub, l.me.Passport.ID)
		switch {
		case seen.Err != nil:
		case talk != nil:
			seen.Channel, seen.Err = l.hub.Channel(ctx, talk.Channel.ID)
		default:
			var page *v1.Page[v1.Row]
			page, seen.Err = l.hub.Rows(ctx, url.Values{"agent": {l.me.Passport.ID}, "state": {"active", "pending"}, "sort": {"activity"}, "newest": {"true"}})
			if seen.Err == nil {
				seen.Rows = page.Items
			}
		}
		if screen.Away(seen.Err) {
			l.hub.Relocate() // a hub that restarted may listen elsewhere
		}
		seen.At = time.Now()
		return seen
	}
}

// Open finds a channel.
func (l *Live) Open(channel string) tea.Cmd {
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(l.ctx, patience)
		defer cancel()
		talk, err := Open(ctx, l.hub, l.me, channel)
		if err != nil {
			return Opened{Err: err}
		}
		return Opened{Channel: talk.Channel, talk: talk}
	}
}

// Follow follows the opened channel, and leaves the one that was followed
// before.
func (l *Live) Follow(o Opened) tea.Cmd {
	l.tail.Leave()
	l.talk, l.tail = o.talk, nil
	if o.talk == nil {
		return nil
	}
	l.tail = screen.Follow(l.ctx, l.hub, o.Channel.ID, v1.EventQuery{As: l.me.Passport.ID}, l.colour)
	return l.More()
}

// More waits for more lines of the open channel.
func (l *Live) More() tea.Cmd {
	tail := l.tail
	if tail == nil {
		return nil
	}
	return func() tea.Msg {
		lines, ended := tail.More()
		return Lines{Channel: tail.Channel, Lines: lines, Ended: ended}
	}
}

// Do executes a line in the open channel.
func (l *Live) Do(line string) tea.Cmd {
	talk := l.talk
	return func() tea.Msg {
		if talk == nil {
			return Did{Line: line}
		}
		did, err := talk.Do(l.ctx, line)
		return Did{Line: line, Outcome: did, Err: err}
	}
}
