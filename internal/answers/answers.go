// Package answers bounds what callers cost the hub, whatever dialect they
// speak: the bytes of answers that are being made or wait to be read, in all
// and for each key, and the turns in which logs are read for them. A client
// that does not read uses up only its own share.
package answers

import (
	"context"
	"sync"
	"time"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/turns"
)

// Budget enforces limits.answers.
type Budget struct {
	total, share int64

	mu    sync.Mutex
	used  int64
	by    map[string]int64 // by key
	freed chan struct{}    // closed when something is given back; nil: nobody waits
}

// shares is how many keys can use the whole budget.
const shares = 4

// Default is limits.answers where nothing is set.
const Default = 256 << 20

// New makes a budget of so many bytes; 0 is the default.
func New(total int64) *Budget {
	if total <= 0 {
		total = Default
	}
	return &Budget{total: total, share: max(total/shares, 1), by: map[string]int64{}}
}

// Used returns what all answers hold now.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// Reader names a key where turns and lists are counted. What a key reads counts
// together, whichever dialect it speaks over HTTP.
func Reader(key string) string { return "key/" + key }

// Answer counts what one request holds and reads. It is used by one goroutine, which
// calls Close.
type Answer struct {
	of   *Budget
	key  string
	used int64
	turn *turns.Turn // to read logs; nil: its reads are not counted
	cost int         // bytes that were read in this turn
}

// For makes the answer to a request with a key. Its logs are read when turn allows;
// with a nil turn, at any time.
func (b *Budget) For(key string, turn *turns.Turn) *Answer {
	return &Answer{of: b, key: key, turn: turn}
}

// Used returns what the answer holds.
func (a *Answer) Used() int64 { return a.used }

// Hold counts n more bytes. A single answer always fits: each has a limit of
// its own.
func (a *Answer) Hold(n int64) error {
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	return a.add(n)
}

// Keep holds n bytes in place of all that was used so far.
func (a *Answer) Keep(n int64) error { return a.Hold(n - a.used) }

func (a *Answer) add(n int64) error {
	b := a.of
	mine, all := b.by[a.key]+n, b.used+n
	switch {
	case n <= 0:
	case mine > b.share && mine > a.used+n:
		return busy("your answers that are not yet read hold %d bytes, which is one key's share of limits.answers; read them, then try again", b.share)
	case all > b.total && all > a.used+n:
		return busy("answers that are not yet read hold %d bytes (limits.answers); try again", b.total)
	}
	a.used += n
	b.used = all
	if b.by[a.key] = mine; mine <= 0 {
		delete(b.by, a.key)
	}
	if n < 0 && b.freed != nil {
		close(b.freed)
		b.freed = nil
	}
	return nil
}

// Wait is like Hold, but waits until there is room, up to a given time.
func (a *Answer) Wait(ctx context.Context, n int64, most time.Duration) error {
	err := a.Hold(n)
	if err == nil {
		return nil // the usual case, without a timer
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	b := a.of
	for {
		b.mu.Lock()
		if err = a.add(n); err == nil {
			b.mu.Unlock()
			return nil
		}
		if b.freed == nil {
			b.freed = make(chan struct{})
		}
		freed := b.freed
		b.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
			return err
		}
	}
}

// Release gives back what is used.
func (a *Answer) Release() { _ = a.Hold(-a.used) }

// Close gives back everything, also the turn.
func (a *Answer) Close() {
	a.EndTurn()
	a.Release()
}

func busy(format string, args ...any) error {
	err := fault.New(fault.Unavailable, format, args...)
	err.RetryAfter = time.Second
	return err
}
