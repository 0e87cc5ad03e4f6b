package reader

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
)

// Seats tracks how far each participant has read a channel in this process. Its
// lock is never held across a wait, because delivery takes it for every envelope.
type Seats struct {
	mu     sync.Mutex
	seats  []Seat                   // by place among the participants
	hidden atomic.Pointer[[]string] // nil: nobody is
}

// Seat is how far one participant has read.
type Seat struct {
	acked     string // id; everything up to it is acked
	delivered string // id of the last content delivered
	handed    int64  // time of the delivery, in nanoseconds
}

func (r *Seats) seat(m *channel.Metadata, agent string) *Seat {
	p, ok := m.Participant(agent)
	if !ok {
		return nil
	}
	if r.seats == nil {
		r.seats = make([]Seat, len(m.Participants))
	}
	return &r.seats[p.Order]
}

// Delivered records that an envelope was handed to a participant.
func (r *Seats) Delivered(m *channel.Metadata, agent string, e *envelope.Envelope, at time.Time) {
	if !envelope.IsContent(e.Type) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.seat(m, agent); s != nil && s.delivered < e.ID {
		s.delivered, s.handed = e.ID, at.UnixNano()
	}
}

// Handed returns when an envelope or a later one was handed to a participant; zero
// if it was not, as far as this process knows.
func (r *Seats) Handed(m *channel.Metadata, agent, envelopeID string) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.seat(m, agent)
	if s == nil || s.delivered == "" || envelopeID == "" || s.delivered < envelopeID {
		return time.Time{}
	}
	return time.Unix(0, s.handed).UTC()
}

// Acked records that a participant has read up to an envelope.
func (r *Seats) Acked(m *channel.Metadata, agent, envelopeID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.seat(m, agent); s != nil && s.acked < envelopeID {
		s.acked = envelopeID
	}
}

// Busy reports whether a participant was sent an envelope that it has not acked,
// which means that its turn is in progress.
func (r *Seats) Busy(m *channel.Metadata, agent string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.seat(m, agent)
	return s != nil && s.delivered > s.acked
}

// AtWork returns the seats if the turn of any participant is in progress.
func (r *Seats) AtWork() []Seat {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.ContainsFunc(r.seats, func(s Seat) bool { return s.delivered > s.acked }) {
		return r.seats
	}
	return nil
}

// Hides reports whether live deliveries to a participant are held back.
func (r *Seats) Hides(agent string) bool {
	hidden := r.hidden.Load()
	return hidden != nil && slices.Contains(*hidden, agent)
}

// Hide holds back live deliveries to these participants, and to no others.
func (r *Seats) Hide(agents []string) {
	if len(agents) == 0 {
		r.hidden.Store(nil)
		return
	}
	r.hidden.Store(&agents)
}

// Restore sets the seats that AtWork returned. The caller ensures that the seats
// are not in use.
func (r *Seats) Restore(seats []Seat) { r.seats = seats }
