package expect

import (
	"slices"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
)

// Watch is the state that expectations are measured against, folded together with
// the adapter's state. It is small, because every folded channel has one.
type Watch struct {
	Active    Instant // the minute of the channel's entry by activity; 0: it has none
	Content   Instant // when content was last said
	Triggered Instant // when the envelope that the expected speaker answers was sent
	NextCheck Instant // when the expectations are checked next: the channel's one entry in the due index
	Replies   *[]Reply
}

// Reply holds the times of the last texts to and from one participant; the list is
// in the order of the participants.
type Reply struct {
	Inbound  Instant
	Outbound Instant
}

// After folds one more envelope. It tracks replies only if an expectation measures
// them.
func (w Watch) After(a channel.Adapter, m *channel.Metadata, s channel.State, e *envelope.Envelope, replies bool) Watch {
	if envelope.IsContent(e.Type) {
		w.Content = InstantOf(e.CreatedAt)
	}
	if turn, ok := a.Expected(m, s); ok && turn.Trigger == e.ID {
		w.Triggered = InstantOf(e.CreatedAt)
	}
	if e.Type == envelope.TypeText && replies {
		w.Replies = heardBy(w.Replies, m, e)
	}
	return w
}

// heardBy folds a text into a copy, because the batch that contains the text may
// still fail.
func heardBy(old *[]Reply, m *channel.Metadata, e *envelope.Envelope) *[]Reply {
	var next []Reply
	if old == nil {
		next = make([]Reply, len(m.Participants))
	} else {
		next = slices.Clone(*old)
	}
	at := InstantOf(e.CreatedAt)
	for i := range next {
		switch agent := m.Participants[i].Agent; {
		case agent == e.Sender:
			next[i].Outbound = max(next[i].Outbound, at)
		case e.Audience == nil || slices.Contains(e.Audience, agent):
			next[i].Inbound = at
		}
	}
	return &next
}
