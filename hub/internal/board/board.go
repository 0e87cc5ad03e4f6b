// Package board holds what every open channel waits for, in the orders in which lists and
// counts need it, so that none of them goes over all channels. It never reads a channel,
// and its caller locks it.
package board

import (
	"strconv"

	"github.com/parley-hub/parley/hub/internal/expect"
)

// Entry is what a channel waits for.
type Entry struct {
	Agent    string // whose turn it is; empty: nobody's
	Human    bool
	Since    expect.Instant
	Due      expect.Instant   // of the turn; 0: never
	Dues     []expect.Instant // of the open requests that have one
	Requests int              // that are open
	Broken   bool             // it cannot be folded
	Pending  bool             // it waits for acks
}

func (e *Entry) empty() bool { return e.Agent == "" && e.Requests == 0 && !e.Broken && !e.Pending }

// Board has the entries of all channels; New makes one.
type Board struct {
	entries       map[string]Entry
	turns, people order // turns by when they are due: all, and those of people
	of            map[string]*waiting
	requests      order // requests by when they are due

	open, broken, pending int
}

// waiting has the turns that wait for one agent.
type waiting struct{ due, since order }

// New returns an empty board.
func New() *Board { return &Board{entries: map[string]Entry{}, of: map[string]*waiting{}} }

// Put replaces the entry of a channel; an empty one removes it.
func (b *Board) Put(channel string, e Entry) {
	if old, ok := b.entries[channel]; ok {
		b.count(&old, -1)
		b.place(channel, &old, (*order).remove)
		delete(b.entries, channel)
	}
	if e.empty() {
		return
	}
	b.entries[channel] = e
	b.count(&e, 1)
	b.place(channel, &e, (*order).put)
}

func (b *Board) count(e *Entry, by int) {
	b.open += by * e.Requests
	if e.Broken {
		b.broken += by
	}
	if e.Pending {
		b.pending += by
	}
}

// place puts an entry into every order that it belongs to, or removes it there.
func (b *Board) place(channel string, e *Entry, change func(*order, key)) {
	for i, due := range e.Dues {
		change(&b.requests, key{due, channel + "#" + strconv.Itoa(i)})
	}
	if e.Agent == "" {
		return
	}
	at := dueKey(channel, e)
	change(&b.turns, at)
	if e.Human {
		change(&b.people, at)
	}
	of := b.of[e.Agent]
	if of == nil {
		of = &waiting{}
		b.of[e.Agent] = of
	}
	change(&of.due, at)
	if change(&of.since, key{e.Since, channel}); of.since.size == 0 {
		delete(b.of, e.Agent)
	}
}

func dueKey(channel string, e *Entry) key {
	if e.Due.IsZero() {
		return key{expect.Never, channel}
	}
	return key{e.Due, channel}
}

// Counts are totals of all channels.
type Counts struct {
	Requests, RequestsSoon, RequestsOverdue int
	Turns, Overdue, OfPeople                int // turns; past due; of people
	Broken, Pending                         int // channels
}

// Count counts as of a time; requests that are due before soon are due soon.
func (b *Board) Count(now, soon expect.Instant) Counts {
	overdue := b.requests.before(now)
	return Counts{
		Requests: b.open, RequestsOverdue: overdue, RequestsSoon: b.requests.before(soon) - overdue,
		Turns: b.turns.size, Overdue: b.turns.before(now), OfPeople: b.people.size, Broken: b.broken, Pending: b.pending,
	}
}
