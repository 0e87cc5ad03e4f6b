// Package imported caches the positions of the requests of imported channels in
// their side logs. An imported channel has ended, so its rows never change. They
// are not stored in any index.
package imported

import (
	"slices"
	"sync"
)

// MaxRows is how many requests of one imported channel are listed, and how many of all
// such channels are kept.
const MaxRows = 1 << 16

// Row is the sequence at which a request was asked in the side log, and at which it
// ended; 0 if it did not.
type Row struct {
	ID           string
	Asked, Ended uint64
}

// Lists caches the rows of the channels that were listed last.
type Lists struct {
	mu    sync.Mutex
	known map[string][]Row
	size  int
}

// Of returns the rows of a channel, which the caller must not change; false if they are
// not cached.
func (l *Lists) Of(channelID string) ([]Row, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	rows, ok := l.known[channelID]
	return rows, ok
}

// Keep caches the rows of a channel. If there are too many rows, those of all other
// channels are removed.
func (l *Lists) Keep(channelID string, rows []Row) {
	l.mu.Lock()
	defer l.mu.Unlock()
	cost := len(rows) + 1 // a channel without requests takes room too
	if l.known == nil || l.size+cost > MaxRows {
		l.known, l.size = map[string][]Row{}, 0
	}
	if _, twice := l.known[channelID]; !twice {
		l.known[channelID], l.size = rows, l.size+cost
	}
}

// Page returns at most a number of rows between two ids, both excluded: the first
// rows or the last. An empty id is no bound. Missing is a bound that no row has.
func Page(rows []Row, after, before string, most int, last bool) (page []Row, more bool, missing string) {
	from, to := 0, len(rows)
	place := func(id string) int { return slices.IndexFunc(rows, func(r Row) bool { return r.ID == id }) }
	if after != "" {
		if from = place(after) + 1; from == 0 {
			return nil, false, after
		}
	}
	if before != "" {
		if to = place(before); to < 0 {
			return nil, false, before
		}
	}
	rows = rows[from:max(from, to)]
	switch more = len(rows) > most; {
	case more && last:
		rows = rows[len(rows)-most:]
	case more:
		rows = rows[:most]
	}
	return rows, more, ""
}
