// Package listcost bounds the cost of lists for a hub.
package listcost

import (
	"sync"
	"time"

	"github.com/parley-hub/parley/fault"
)

// Gate bounds the bytes of lists in a second, for all readers together, and for
// each reader to a quarter of that. A reader that has used up its share waits. A
// single list may exceed the share, so that every list can be read.
type Gate struct {
	rate int // bytes a second, for all readers
	now  func() time.Time

	mu  sync.Mutex
	all bucket
	by  map[string]*bucket // readers whose last lists are not paid off
}

// New returns a gate with a rate in bytes a second.
func New(rate int, now func() time.Time) *Gate {
	return &Gate{rate: rate, now: now, by: map[string]*bucket{}}
}

// bucket is the debt of a reader, in bytes; it is paid off with time.
type bucket struct {
	owes float64
	at   time.Time
}

const (
	// listShares is how many readers together can use the whole rate.
	listShares = 4
	// leastList is the minimum cost of a list, because an empty result has to be
	// searched too.
	leastList = 4 << 10
)

// pay reduces the debt by the time since the last call.
func (b *bucket) pay(now time.Time, rate float64) {
	b.owes = max(0, b.owes-now.Sub(b.at).Seconds()*rate)
	b.at = now
}

// May returns an error if the recent lists of a reader, or of all readers, have
// cost more than limits.lists.
func (l *Gate) May(who string) error {
	now := l.now()
	rate := float64(l.rate)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all.pay(now, rate)
	own := l.by[who]
	if own != nil {
		own.pay(now, rate/listShares)
	}
	switch {
	case own != nil && own.owes > rate/listShares:
		return tooManyLists("your lists", l.rate/listShares, (own.owes-rate/listShares)/(rate/listShares))
	case l.all.owes > rate:
		return tooManyLists("all lists together", l.rate, (l.all.owes-rate)/rate)
	}
	return nil
}

func tooManyLists(whose string, rate int, seconds float64) error {
	wait := max(time.Duration(seconds*float64(time.Second)), time.Millisecond)
	err := fault.New(fault.RateLimited, "%s have more than %d bytes a second (limits.lists); wait %s", whose, rate, wait.Round(time.Millisecond))
	err.RetryAfter = wait
	return err
}

// Count adds the cost of a reader's list.
func (l *Gate) Count(who string, bytes int) {
	now := l.now()
	cost := float64(max(bytes, leastList))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all.pay(now, float64(l.rate))
	l.all.owes += cost
	own := l.by[who]
	if own == nil {
		l.forget(now)
		own = &bucket{at: now}
		l.by[who] = own
	}
	own.pay(now, float64(l.rate)/listShares)
	own.owes += cost
}

// forget removes readers without debt, some at a time.
func (l *Gate) forget(now time.Time) {
	looked := 0
	for who, b := range l.by {
		if b.pay(now, float64(l.rate)/listShares); b.owes == 0 {
			delete(l.by, who)
		}
		if looked++; looked == 8 {
			return
		}
	}
}
