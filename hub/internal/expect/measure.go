package expect

import (
	"time"

	"github.com/parley-hub/parley/channel"
)

// Wait is an awaited participant; an empty Agent is the channel as a whole.
type Wait struct {
	Agent string
	Since Instant
}

// Humans reports which identities are people.
type Humans interface {
	Human(id string) bool
}

// Situation is the state of a channel that expectations are measured against. It is
// passed by value, so that measuring allocates nothing.
type Situation struct {
	Adapter channel.Adapter
	Meta    *channel.Metadata
	State   channel.State
	Watch   Watch
	Now     time.Time
	Humans  Humans
	Asked   []Asked
}

// Asked is the time during which an identity waited for the answer to a request.
type Asked struct {
	Request string  `json:"request"`
	By      string  `json:"by"`
	From    Instant `json:"from"`
	To      Instant `json:"to,omitzero"` // 0: still open
}

// waited returns how long an agent has waited for answers since an instant, and
// whether it still waits. The list is sorted by From.
func waited(list []Asked, agent string, since Instant) (total time.Duration, waits bool) {
	for i := range list {
		a := &list[i]
		switch {
		case a.By != agent:
		case a.To.IsZero():
			return 0, true
		case a.To > since:
			from := max(a.From, since)
			total += time.Duration(a.To - from)
			since = a.To // overlapping times count once
		}
	}
	return total, false
}

// measure appends the awaited participants. It runs for every batch, so it appends
// to the caller's slice instead of allocating one.
type measure func(s Situation, r *Rule, to []Wait) []Wait

// measures are the built-in evaluators, each with its default number of seconds.
var measures = map[string]struct {
	measure measure
	seconds int
}{
	"acks_within":  {unacked, 30},
	"reply_within": {unreplied, 600},
	"max_silence":  {silent, 3600},
	"turn_within":  {turnless, 120},
}

// unacked waits for every participant who has not answered its invitation.
func unacked(s Situation, r *Rule, to []Wait) []Wait {
	if s.Meta.State != channel.Pending {
		return to
	}
	for _, agent := range s.Meta.PendingAcks {
		if r.Concerns(s.Meta, agent) {
			to = append(to, Wait{agent, InstantOf(s.Meta.CreatedAt)})
		}
	}
	return to
}

// unreplied waits for every participant who received a text and has sent none
// since.
func unreplied(s Situation, r *Rule, to []Wait) []Wait {
	if s.Meta.State != channel.Active || s.Watch.Replies == nil {
		return to
	}
	for i, reply := range *s.Watch.Replies {
		agent := s.Meta.Participants[i].Agent
		if !reply.Inbound.IsZero() && reply.Outbound < reply.Inbound && r.Concerns(s.Meta, agent) {
			to = append(to, Wait{agent, reply.Inbound})
		}
	}
	return to
}

// silent waits for any participant to say something.
func silent(s Situation, _ *Rule, to []Wait) []Wait {
	if s.Meta.State != channel.Active {
		return to
	}
	since := s.Watch.Content
	if since.IsZero() {
		since = InstantOf(s.Meta.CreatedAt)
	}
	return append(to, Wait{"", since})
}

// turnless waits for the expected speaker. It applies to a human only if
// AppliesTo is set. The time in which the speaker itself waits for the answer to a
// request does not count.
func turnless(s Situation, r *Rule, to []Wait) []Wait {
	if s.Meta.State != channel.Active {
		return to
	}
	turn, ok := s.Adapter.Expected(s.Meta, s.State)
	if !ok || !r.Concerns(s.Meta, turn.Agent) {
		return to
	}
	if r.AppliesTo == nil {
		if s.Humans.Human(turn.Agent) {
			return to
		}
	}
	since := InstantOf(s.Meta.CreatedAt)
	if turn.Trigger != "" && !s.Watch.Triggered.IsZero() {
		since = s.Watch.Triggered
	}
	if p, ok := s.Adapter.(channel.Pausing); ok {
		since = since.Plus(p.Paused(s.Meta, s.State, s.Now))
	}
	paused, waits := waited(s.Asked, turn.Agent, since)
	if waits {
		return to
	}
	return append(to, Wait{turn.Agent, since.Plus(paused)})
}
