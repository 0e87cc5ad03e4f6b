package agh

import (
	"sync"
	"time"
)

// budget is how many messages one source may send: a rate in messages a second, and a
// burst of the same size.
type budget struct {
	rate float64

	mu   sync.Mutex
	left float64
	at   time.Time
}

func newBudget(perSecond int) *budget {
	return &budget{rate: float64(perSecond), left: float64(perSecond)}
}

// take reports whether one more message is within the budget.
func (b *budget) take(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.at.IsZero() {
		b.left = min(b.left+now.Sub(b.at).Seconds()*b.rate, b.rate)
	}
	b.at = now
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}

// budgets has the budgets of many sources. When there are too many, idle ones are
// removed.
type budgets struct {
	mu    sync.Mutex
	all   map[string]*budget
	swept time.Time // when idle ones were last forgotten
}

// mostBudgets is how many sources have separate budgets; further ones share one.
const mostBudgets = 10_000

// sweepBudgets bounds how often idle ones are searched for: sources can be invented
// faster than they become idle.
const sweepBudgets = time.Second

func (b *budgets) of(source string, perSecond int, now time.Time) *budget {
	b.mu.Lock()
	defer b.mu.Unlock()
	if one := b.all[source]; one != nil {
		return one
	}
	if len(b.all) >= mostBudgets && now.Sub(b.swept) >= sweepBudgets {
		b.swept = now
		for name, one := range b.all {
			one.mu.Lock()
			idle := now.Sub(one.at) > 2*time.Second
			one.mu.Unlock()
			if idle && name != "" {
				delete(b.all, name)
			}
		}
	}
	if len(b.all) >= mostBudgets {
		source = ""
		if one := b.all[source]; one != nil {
			return one
		}
	}
	if b.all == nil {
		b.all = map[string]*budget{}
	}
	one := newBudget(perSecond)
	b.all[clone(source)] = one
	return one
}
