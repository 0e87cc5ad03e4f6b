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
func (b *batch) due(r *rule, x wait) instant {
	due := x.since.plus(r.within)
	if due > b.hub.opened {
		return due
	}
	return max(due, b.hub.opened.plus(min(r.within, b.hub.opts.RestartGrace)))
}

// measure appends who is being waited for. It runs for every batch, so it
// writes into what the batch has room for.
type measure func(b *batch, r *rule, to []wait) []wait

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
func unacked(b *batch, r *rule, to []wait) []wait {
	if b.meta.State != channel.Pending {
		return to
	}
	for _, agent := range b.meta.PendingAcks {
		if r.concerns(b.meta, agent) {
			to = append(to, wait{agent, instantOf(b.meta.CreatedAt)})
		}
	}
	return to
}

// unreplied waits for everyone who was told a text and has sent none since.
func unreplied(b *batch, r *rule, to []wait) []wait {
	if b.meta.State != channel.Active || b.watch.replies == nil {
		return to
	}
	for i, reply := range *b.watch.replies {
		agent := b.meta.Participants[i].Agent
		if !reply.inbound.IsZero() && reply.outbound < reply.inbound && r.concerns(b.meta, agent) {
			to = append(to, wait{agent, reply.inbound})
		}
	}
	return to
}

// silent waits for anyone to say anything.
func silent(b *batch, _ *rule, to []wait) []wait {
	if b.meta.State != channel.Active {
		return to
	}
	since := b.watch.content
	if since.IsZero() {
		since = instantOf(b.meta.CreatedAt)
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
func turnless(b *batch, r *rule, to []wait) []wait {
	if b.meta.State != channel.Active {
		return to
	}
	turn, ok := b.ch.adapter.Expected(b.meta, b.state)
	if !ok || !r.concerns(b.meta, turn.Agent) {
		return to
	}
	if r.AppliesTo == nil {
		if m := b.hub.registry.byID(turn.Agent); m != nil && m.profile().Passport.Kind.Is(identity.Human) {
			return to
		}
	}
	since := instantOf(b.meta.CreatedAt)
	if turn.Trigger != "" && !b.watch.triggered.IsZero() {
		since = b.watch.triggered
	}
	if p, ok := b.ch.adapter.(Pausing); ok {
		since = since.plus(p.Paused(b.meta, b.state, b.now))
	}
	return append(to, wait{turn.Agent, since})
}
