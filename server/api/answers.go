package api

import (
	"context"
	"sync"
	"time"

	"github.com/parley-hub/parley/fault"
)

// answers bounds the bytes of answers that are being made or wait for their
// readers, in all and for each principal, so that readers who do not read cost
// others nothing but their own share.
type answers struct {
	total, share int64

	mu    sync.Mutex
	used  int64
	by    map[string]int64 // by principal
	freed chan struct{}    // closed when something is given back; nil: nobody waits
}

// shares is how many principals can hold all there is.
const shares = 4

func newAnswers(total int64) *answers {
	return &answers{total: total, share: max(total/shares, 1), by: map[string]int64{}}
}

// tally is what one answer holds.
type tally struct {
	of   *answers
	who  string
	held int64
}

// hold counts n more bytes, or fewer if n is negative. An answer that is alone
// always fits: each has a limit of its own.
func (t *tally) hold(n int64) error {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	return t.add(n)
}

func (t *tally) add(n int64) error {
	a := t.of
	mine, all := a.by[t.who]+n, a.used+n
	switch {
	case n <= 0:
	case mine > a.share && mine > t.held+n:
		return busy("your answers that are not yet read hold %d bytes, which is one key's share of limits.answers; read them, then try again", a.share)
	case all > a.total && all > t.held+n:
		return busy("answers that are not yet read hold %d bytes (limits.answers); try again", a.total)
	}
	t.held += n
	a.used = all
	if a.by[t.who] = mine; mine <= 0 {
		delete(a.by, t.who)
	}
	if n < 0 && a.freed != nil {
		close(a.freed)
		a.freed = nil
	}
	return nil
}

// wait is hold that waits for its turn, until the context ends.
func (t *tally) wait(ctx context.Context, n int64) error {
	for {
		t.of.mu.Lock()
		err := t.add(n)
		if err == nil {
			t.of.mu.Unlock()
			return nil
		}
		if t.of.freed == nil {
			t.of.freed = make(chan struct{})
		}
		freed := t.of.freed
		t.of.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
			return err
		}
	}
}

// release gives back all.
func (t *tally) release() { _ = t.hold(-t.held) }

func busy(format string, args ...any) error {
	err := fault.New(fault.Unavailable, format, args...)
	err.RetryAfter = time.Second
	return err
}
