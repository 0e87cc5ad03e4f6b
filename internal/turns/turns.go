// Package turns shares work between principals: each has one piece of its work
// done at a time, and no more than a share of a rate each second. It never
// drops work; a principal that is ahead of its share waits.
package turns

import (
	"sync"
	"time"
)

// shares is how many principals can use the whole rate.
const shares = 4

// Gate bounds work in bytes a second, of all together and a quarter of it for each
// principal. A principal may be ahead of its share by one second, and by one piece of
// work, so that any piece can be done; a large piece counts against the total with no
// more than one share.
type Gate struct {
	rate float64 // bytes a second

	mu  sync.Mutex
	all debt
	by  map[string]*queue // principals with work, or with a debt
}

// queue is what one principal has to do and has done.
type queue struct {
	debt
	busy    bool
	waiting []*Turn     // in the order they came
	timer   *time.Timer // of the first that waits; nil: none waits, or for another
}

// debt is what was done and not yet paid off by time.
type debt struct {
	bytes float64
	at    time.Time
}

// pay reduces the debt by the time since the last call, and returns how long
// it takes until the debt is at most one second of the rate.
func (d *debt) pay(now time.Time, rate float64) time.Duration {
	d.bytes = max(0, d.bytes-now.Sub(d.at).Seconds()*rate)
	d.at = now
	if d.bytes <= rate {
		return 0
	}
	return max(time.Duration((d.bytes-rate)/rate*float64(time.Second)), time.Microsecond)
}

// New makes a gate for so many bytes a second.
func New(rate int) *Gate {
	return &Gate{rate: float64(max(rate, shares)), by: map[string]*queue{}}
}

// For makes a turn for work of a principal.
func (g *Gate) For(who string) *Turn { return &Turn{gate: g, who: who} }

// wait returns how long a principal must wait.
func (g *Gate) wait(q *queue) time.Duration {
	now := time.Now()
	return max(q.pay(now, g.rate/shares), g.all.pay(now, g.rate))
}

// queue returns a principal's queue.
func (g *Gate) queue(who string) *queue {
	q := g.by[who]
	if q == nil {
		g.forget()
		q = &queue{debt: debt{at: time.Now()}}
		g.by[who] = q
	}
	return q
}

// forget drops principals without work and without debt, some at a time.
func (g *Gate) forget() {
	looked := 0
	for who, q := range g.by {
		if q.pay(time.Now(), g.rate/shares); q.bytes == 0 && !q.busy && len(q.waiting) == 0 {
			delete(g.by, who)
		}
		if looked++; looked == 8 {
			return
		}
	}
}

// next gives the turn to the first that waits, now or when its principal may.
func (g *Gate) next(q *queue) {
	if q.busy || len(q.waiting) == 0 || q.timer != nil {
		return
	}
	if d := g.wait(q); d > 0 {
		q.timer = time.AfterFunc(d, func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			q.timer = nil
			g.next(q)
		})
		return
	}
	first := q.waiting[0]
	q.waiting = q.waiting[1:]
	first.has, q.busy = true, true
	close(first.wake)
	first.wake = nil
}
