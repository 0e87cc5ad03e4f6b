package agent

import (
	"context"
	"sync"

	"github.com/parley-hub/parley/envelope"
)

// maxMail bounds what a mailbox holds; what is older is dropped first, because
// whoever waits here waits for what comes last.
const maxMail = 1024

// mailbox holds the envelopes of a channel for one who waits for them.
type mailbox struct {
	mu   sync.Mutex
	mail []*envelope.Envelope
	wake chan struct{}
}

func (b *mailbox) put(e *envelope.Envelope) {
	b.mu.Lock()
	if len(b.mail) >= maxMail {
		b.mail = b.mail[1:]
	}
	b.mail = append(b.mail, e)
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// next waits for an envelope.
func (b *mailbox) next(ctx context.Context) (*envelope.Envelope, error) {
	for {
		b.mu.Lock()
		if len(b.mail) > 0 {
			e := b.mail[0]
			b.mail = b.mail[1:]
			b.mu.Unlock()
			return e, nil
		}
		b.mu.Unlock()
		select {
		case <-b.wake:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
