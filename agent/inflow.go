package agent

import (
	"context"
	"sync"

	"github.com/parley-hub/parley/envelope"
)

// maxMail bounds what waits for a turn that delegates, and what is received
// past a full queue to find its reply.
const maxMail = 1024

// inflow holds envelopes for those who wait for them. It is bounded: the oldest
// is dropped first, because waiters want the newest, and the log has the rest.
type inflow struct {
	mu    sync.Mutex
	mail  []*envelope.Envelope
	limit int
	wake  chan struct{} // closed and replaced with every arrival
}

func newInflow(limit int) *inflow { return &inflow{limit: limit, wake: make(chan struct{})} }

func (b *inflow) put(e *envelope.Envelope) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.mail) >= b.limit {
		b.mail = b.mail[1:]
	}
	b.mail = append(b.mail, e)
	close(b.wake)
	b.wake = make(chan struct{})
}

// next waits for an envelope. Envelopes that have arrived can still be read
// after the end.
func (b *inflow) next(ctx context.Context, over <-chan struct{}) (*envelope.Envelope, error) {
	for {
		e, wake := b.take()
		if e != nil {
			return e, nil
		}
		select {
		case <-wake:
		case <-over:
			if e, _ := b.take(); e != nil {
				return e, nil
			}
			return nil, ErrDisconnected
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// take returns the first envelope, or what to wait for.
func (b *inflow) take() (*envelope.Envelope, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.mail) == 0 {
		return nil, b.wake
	}
	e := b.mail[0]
	b.mail = b.mail[1:]
	return e, nil
}
