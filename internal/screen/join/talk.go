package join

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/loop"
	"github.com/parley-hub/parley/internal/screen"
	"github.com/parley-hub/parley/request"
)

// awayPause is how long to wait before a hub that is away is asked again.
const awayPause = 200 * time.Millisecond

// minPrefix is how much of a request's id names it.
const minPrefix = 6

// Talk is a person in a channel.
type Talk struct {
	Hub     *v1.Client
	Me      *v1.Agent
	Channel *v1.Channel
	// Saying is called with the key of a text before it is posted; may be nil.
	Saying func(key string)
}

// Open finds the channel, in which the person must take part.
func Open(ctx context.Context, hub *v1.Client, me *v1.Agent, id string) (*Talk, error) {
	ch, err := hub.Channel(ctx, id)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(ch.Participants, func(p v1.Participant) bool { return p.Agent == me.Passport.ID }) {
		return nil, fault.New(fault.AccessDenied, "%s is not in this channel; it is between %s", screen.Cell(me.Passport.Name), People(ch))
	}
	return &Talk{Hub: hub, Me: me, Channel: ch}, nil
}

// Outcome is the result of a line.
type Outcome struct {
	Said  bool // the channel will show it
	Leave bool
	Notes []string // to be shown
}

// Do executes a line: a command if it begins with one slash, otherwise a text
// that is posted.
func (t *Talk) Do(ctx context.Context, line string) (Outcome, error) {
	words := strings.Fields(line)
	switch {
	case len(words) == 0:
		return Outcome{}, nil
	case strings.HasPrefix(line, "//"):
		return t.say(ctx, v1.Posting{Text: new(line[1:])})
	case !strings.HasPrefix(line, "/"):
		return t.say(ctx, v1.Posting{Text: &line})
	}
	switch words[0] {
	case "/accept":
		return t.reply(ctx, envelope.TypeInviteAck)
	case "/decline":
		_, err := t.reply(ctx, envelope.TypeInviteReject)
		return Outcome{Leave: err == nil}, err
	case "/answer":
		return t.answer(ctx, words[1:])
	case "/waiting":
		waits, err := WhatWaits(ctx, t.Hub, t.Me.Passport.ID)
		if err != nil {
			return Outcome{}, err
		}
		return Outcome{Notes: waits.Lines(screen.Cell(t.Me.Passport.Name), time.Now())}, nil
	case "/leave":
		return Outcome{Leave: true}, nil
	}
	return Outcome{}, fault.New(fault.Invalid, "%s is not a command; use /accept, /decline, /answer, /waiting or /leave, and // for a line that begins with a slash", words[0])
}

// answer answers a request: with one of its choices, or in words.
func (t *Talk) answer(ctx context.Context, words []string) (Outcome, error) {
	if len(words) == 0 {
		return Outcome{}, fault.New(fault.Invalid, "REQUEST is missing: /answer REQUEST [CHOICE or words]; /waiting lists them")
	}
	r, rest, err := t.find(ctx, words)
	if err != nil {
		return Outcome{}, err
	}
	reply := v1.Reply{As: t.Me.Passport.ID}
	if r.Action != nil {
		reply.Digest = r.Action.Digest
	}
	switch {
	case len(r.Choices) == 0:
		reply.Text = strings.Join(rest, " ")
	case len(rest) > 0:
		reply.Choice, reply.Note = rest[0], strings.Join(rest[1:], " ")
	}
	if r, err = t.Hub.AnswerRequest(ctx, r.ID, reply); err != nil {
		return Outcome{}, err
	}
	return Outcome{Notes: []string{fmt.Sprintf("-- request %s is %s", screen.Cell(r.ID), r.State)}}, nil
}

// find finds the request that an answer is for, and the rest of the answer. It
// is named by its id, or by the beginning of an open one's id; a single open
// request needs no name.
func (t *Talk) find(ctx context.Context, words []string) (*v1.Request, []string, error) {
	waits, err := WhatWaits(ctx, t.Hub, t.Me.Passport.ID)
	if err != nil {
		return nil, nil, err
	}
	var named []*v1.Request
	for i := range waits.Requests {
		if strings.HasPrefix(waits.Requests[i].ID, words[0]) && len(words[0]) >= minPrefix {
			named = append(named, &waits.Requests[i])
		}
	}
	if len(named) == 1 {
		return named[0], words[1:], nil
	}
	if len(waits.Requests) == 1 {
		only := &waits.Requests[0]
		choice := func(c request.Choice) bool { return c.ID == words[0] }
		if len(only.Choices) == 0 || slices.ContainsFunc(only.Choices, choice) {
			return only, words, nil
		}
	}
	r, _, err := t.Hub.Request(ctx, words[0])
	return r, words[1:], err
}

// reply answers the invitation to the channel, if one waits for the person: a hub
// takes such an envelope also later, and everyone would read it.
func (t *Talk) reply(ctx context.Context, eventType string) (Outcome, error) {
	now := t.Channel
	err := t.patiently(ctx, func() (err error) {
		now, err = t.Hub.Channel(ctx, t.Channel.ID)
		return err
	})
	if err != nil {
		return Outcome{}, err
	}
	if !Invited(now, t.Me) {
		return Outcome{}, fault.New(fault.Invalid, "no invitation waits for %s here: the channel is %s", screen.Cell(t.Me.Passport.Name), now.State)
	}
	return t.say(ctx, v1.Posting{Type: eventType})
}

// say posts once, however often the request has to be repeated.
func (t *Talk) say(ctx context.Context, p v1.Posting) (Outcome, error) {
	p.Sender, p.Key = t.Me.Passport.ID, rand.Text()
	if t.Saying != nil {
		t.Saying(p.Key)
	}
	err := t.patiently(ctx, func() error {
		_, err := t.Hub.Send(ctx, t.Channel.ID, p)
		return err
	})
	return Outcome{Said: err == nil}, err
}

// patiently asks the hub again for as long as it is away.
func (t *Talk) patiently(ctx context.Context, ask func() error) error {
	for {
		err := ask()
		if !screen.Away(err) {
			return err
		}
		if err := loop.Pause(ctx, awayPause); err != nil {
			return err
		}
		t.Hub.Relocate()
	}
}

// Turn returns in words whose turn it is; empty: nobody's in particular.
func Turn(ch *v1.Channel, me *v1.Agent) string {
	switch {
	case ch.Expected == nil || ch.Ended():
		return ""
	case *ch.Expected == me.Passport.ID:
		return "it is your turn, " + screen.Cell(me.Passport.Name)
	}
	return "it is the turn of " + screen.Cell(ch.Name(*ch.Expected))
}

// Invited reports whether the person has yet to answer the invitation.
func Invited(ch *v1.Channel, me *v1.Agent) bool {
	return ch.State == "pending" && slices.Contains(ch.PendingAcks, me.Passport.ID)
}
