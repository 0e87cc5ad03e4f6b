package board

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-hub/parley/hub/internal/expect"
)

// Waiting counts the turns that wait for an agent, and those of them that are overdue;
// oldest is since when the first waits.
func (b *Board) Waiting(agent string, now expect.Instant) (turns, overdue int, oldest expect.Instant) {
	of := b.of[agent]
	if of == nil {
		return 0, 0, 0
	}
	return of.due.size, of.due.before(now), of.since.chunks[0][0].at
}

// Query selects turns.
type Query struct {
	Agents []string // only theirs; nil: everybody's
	People bool     // only of people
	Until  expect.Instant
	After  string // the place after which the list begins
	Newest bool   // backward: the last due first
	Limit  int    // at most so many are looked at
}

// Turn is a turn on the board, with its place in the order.
type Turn struct {
	Channel, Place string
	Entry
}

// Turns lists turns by when they are due; those that are never due come last. Only those
// due before Until are listed, unless it is 0. Next is the last place that was looked at,
// and empty at the end.
func (b *Board) Turns(q Query) (list []Turn, next string) {
	in := &b.turns
	switch {
	case len(q.Agents) == 1 && b.of[q.Agents[0]] == nil:
		return nil, ""
	case len(q.Agents) == 1:
		in = &b.of[q.Agents[0]].due
	case q.People:
		in = &b.people
	}
	after := parsePlace(q.After)
	if until := (key{at: q.Until}); q.Newest && q.Until != 0 && (after == nil || after.compare(until) > 0) {
		after = &until
	}
	looked := 0
	var last key
	for k := range in.from(after, q.Newest) {
		if !q.Newest && q.Until != 0 && k.at >= q.Until {
			return list, ""
		}
		if looked == q.Limit {
			return list, last.place()
		}
		looked++
		last = k
		e := b.entries[k.id]
		if q.Agents != nil && !slices.Contains(q.Agents, e.Agent) || q.People && !e.Human {
			continue
		}
		list = append(list, Turn{Channel: k.id, Place: k.place(), Entry: e})
	}
	return list, ""
}

// place is a key as text. Texts are in the order of keys.
func (k key) place() string { return fmt.Sprintf("%016x.%s", uint64(k.at), k.id) }

// parsePlace reads a place; nil: it is empty or no place.
func parsePlace(text string) *key {
	at, id, ok := strings.Cut(text, ".")
	n, err := strconv.ParseUint(at, 16, 64)
	if !ok || err != nil {
		return nil
	}
	return &key{expect.Instant(n), id}
}
