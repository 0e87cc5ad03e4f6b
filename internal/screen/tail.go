package screen

import (
	"context"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/envelope"
)

// tailAhead bounds how many lines wait to be taken.
const tailAhead = 1000

// Tail is a followed channel, as lines.
type Tail struct {
	Channel string
	lines   chan string
	ended   string // set before lines is closed
	leave   context.CancelFunc
}

// Follow follows a channel until it ends, the context does, or Leave is
// called. It waits for a hub that restarts.
func Follow(ctx context.Context, hub *v1.Client, channel string, query v1.EventQuery, colour bool) *Tail {
	ctx, leave := context.WithCancel(ctx)
	t := &Tail{Channel: channel, lines: make(chan string, tailAhead), leave: leave}
	go func() {
		defer close(t.lines)
		t.ended = t.follow(ctx, hub, query, colour)
	}()
	return t
}

// follow sends the lines, and returns why no more will come.
func (t *Tail) follow(ctx context.Context, hub *v1.Client, query v1.EventQuery, colour bool) string {
	ch, err := hub.Channel(ctx, t.Channel)
	if err != nil {
		return err.Error()
	}
	send := func(text string) error {
		select {
		case t.lines <- text:
			return nil
		case <-ctx.Done():
			return v1.ErrStop
		}
	}
	err = hub.FollowEvents(ctx, ch.ID, query, func(f v1.Frame) error {
		if f.Name == v1.GapFrame {
			return send("-- something is missing here")
		}
		ev, err := v1.ParseEvent(f.Data)
		if err != nil {
			return err
		}
		if err := send(Line(ch, ev, colour)); err != nil {
			return err
		}
		// A client may post this type too, so the hub is asked.
		if ev.Type == envelope.TypeClosed && hub.HasEnded(ctx, ch.ID) {
			return v1.ErrStop
		}
		return nil
	})
	if err != nil {
		return err.Error()
	}
	return "the channel has ended"
}

// More waits for lines, and takes all that are there. Ended says why no more
// will come; empty: more may.
func (t *Tail) More() (lines []string, ended string) {
	line, ok := <-t.lines
	for ok {
		lines = append(lines, line)
		if len(lines) == tailAhead {
			return lines, ""
		}
		select {
		case line, ok = <-t.lines:
		default:
			return lines, ""
		}
	}
	return lines, t.ended
}

// Leave ends the tail. A nil Tail has ended.
func (t *Tail) Leave() {
	if t != nil {
		t.leave()
	}
}
