package hub

import (
	"time"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/identity"
)

// wait is somebody who is being waited for; the channel as a whole is "".
type wait struct {
	agent string
	since instant
}

// due is when a wait has lasted too long. What became due while no hub ran
// could not be answered: it is given a moment from the opening on.
func (w *writing) due(r *rule, x wait) instant {
	due := x.since.plus(r.within)
	if due > w.hub.opened {
		return due
	}
	return max(due, w.hub.opened.plus(min(r.within, w.hub.opts.RestartGrace)))
}

// measure appends who is being waited for. It runs for every batch, so it
// writes into what the batch has room for.
type measure func(w *writing, r *rule, to []wait) []wait

// measures are the built-in evaluators, each with the seconds that it waits
// when none are given.
var measures = map[string]struct {
	measure measure
	seconds int
}{
	"acks_within":  {unacked, 30},
	"reply_within": {unreplied, 600},
	"max_silence":  {silent, 3600},
	"turn_within":  {turnless, 120},
}

// unacked waits for everyone who has not answered its invitation.
func unacked(w *writing, r *rule, to []wait) []wait {
	if w.meta.State != channel.Pending {
		return to
	}
	for _, agent := range w.meta.PendingAcks {
		if r.concerns(w.meta, agent) {
			to = append(to, wait{agent, instantOf(w.meta.CreatedAt)})
		}
	}
	return to
}

// unreplied waits for everyone who was told a text and has sent none since.
func unreplied(w *writing, r *rule, to []wait) []wait {
	if w.meta.State != channel.Active || w.watch.replies == nil {
		return to
	}
	for i, reply := range *w.watch.replies {
		agent := w.meta.Participants[i].Agent
		if !reply.inbound.IsZero() && reply.own < reply.inbound && r.concerns(w.meta, agent) {
			to = append(to, wait{agent, reply.inbound})
		}
	}
	return to
}

// silent waits for anyone to say anything.
func silent(w *writing, _ *rule, to []wait) []wait {
	if w.meta.State != channel.Active {
		return to
	}
	since := w.watch.content
	if since.IsZero() {
		since = instantOf(w.meta.CreatedAt)
	}
	return append(to, wait{"", since})
}

// Pausing is an adapter whose channels may wait for somebody other than the
// expected speaker, such as whoever was asked for a permission.
type Pausing interface {
	// Paused is how much of the time since the expected speaker's turn began
	// does not count against it.
	Paused(m *channel.Metadata, s channel.State, now time.Time) time.Duration
}

// turnless waits for the expected speaker. People think as long as they like,
// unless the expectation names them.
func turnless(w *writing, r *rule, to []wait) []wait {
	if w.meta.State != channel.Active {
		return to
	}
	turn, ok := w.ch.adapter.Expected(w.meta, w.state)
	if !ok || !r.concerns(w.meta, turn.Agent) {
		return to
	}
	if r.AppliesTo == nil {
		if m := w.hub.registry.byID(turn.Agent); m != nil && m.profile().Passport.Kind.Is(identity.Human) {
			return to
		}
	}
	since := instantOf(w.meta.CreatedAt)
	if turn.Trigger != "" && !w.watch.triggered.IsZero() {
		since = w.watch.triggered
	}
	if p, ok := w.ch.adapter.(Pausing); ok {
		since = since.plus(p.Paused(w.meta, w.state, w.now))
	}
	return append(to, wait{turn.Agent, since})
}
