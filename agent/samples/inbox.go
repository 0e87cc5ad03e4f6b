package samples

import (
	"context"
	"slices"
	"sync"

	"github.com/parley-hub/parley/fault"
)

// ErrClosed is returned to callers that wait at an inbox that is closed.
var ErrClosed = fault.New(fault.Unavailable, "the inbox was closed")

// Inbox is one reader's buffer. One goroutine reads it at a time.
type Inbox[T Sample] struct {
	route    *Route[T]
	overflow Overflow
	ready    chan struct{} // something was put
	room     chan struct{} // something was taken
	closed   chan struct{}
	once     sync.Once

	mu      sync.Mutex
	ring    []Stamped[T]
	head    int
	count   int
	dropped uint64
}

// put adds a sample, or waits, or drops one.
func (b *Inbox[T]) put(ctx context.Context, s Stamped[T]) error {
	for {
		b.mu.Lock()
		if b.count < len(b.ring) {
			b.ring[(b.head+b.count)%len(b.ring)] = s
			b.count++
			b.mu.Unlock()
			b.route.delivered.Add(1)
			signal(b.ready)
			return nil
		}
		if b.overflow != Backpressure {
			b.dropped++
			b.route.dropped.Add(1)
			if b.overflow == DropOldest {
				b.ring[b.head] = s
				b.head = (b.head + 1) % len(b.ring)
				b.route.delivered.Add(1)
			}
			b.mu.Unlock()
			return nil
		}
		b.mu.Unlock()
		select {
		case <-b.room:
		case <-b.closed:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// TryRead takes the oldest sample, if there is one.
func (b *Inbox[T]) TryRead() (Stamped[T], bool) {
	var one [1]Stamped[T]
	n := b.TryReadBatch(one[:])
	return one[0], n == 1
}

// TryReadBatch takes as many samples as fit, oldest first, and returns how
// many.
func (b *Inbox[T]) TryReadBatch(into []Stamped[T]) int {
	b.mu.Lock()
	n := min(len(into), b.count)
	for i := range n {
		into[i] = b.ring[b.head]
		b.ring[b.head] = Stamped[T]{}
		b.head = (b.head + 1) % len(b.ring)
	}
	b.count -= n
	b.mu.Unlock()
	if n > 0 {
		signal(b.room)
	}
	return n
}

// Wait returns when there is something to read, when the inbox is closed or
// when ctx ends.
func (b *Inbox[T]) Wait(ctx context.Context) error {
	for {
		b.mu.Lock()
		waiting := b.count > 0
		b.mu.Unlock()
		if waiting {
			return nil
		}
		select {
		case <-b.ready:
		case <-b.closed:
			return ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Dropped returns how many samples this reader has lost.
func (b *Inbox[T]) Dropped() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.dropped
}

// Close ends the subscription. Emitters that wait for it go on; what is in the
// buffer can still be read. It is safe to call twice.
func (b *Inbox[T]) Close() {
	b.once.Do(func() {
		close(b.closed)
		b.route.change(func(list []*Inbox[T]) []*Inbox[T] {
			return slices.DeleteFunc(list, func(other *Inbox[T]) bool { return other == b })
		})
	})
}

// Observe calls fn for every sample of a type that is emitted while it runs,
// until ctx ends, which is not an error. Samples that fn is too slow for are
// dropped, oldest first: an observer never slows what it observes.
func Observe[T Sample](ctx context.Context, h *Hub, fn func(Stamped[T])) error {
	inbox, err := existing[T](h).Subscribe(SubscribeOptions{Overflow: DropOldest})
	if err != nil {
		return err
	}
	defer inbox.Close()
	batch := make([]Stamped[T], 64)
	for {
		if err := inbox.Wait(ctx); err != nil {
			return nil //nolint:nilerr // the end of ctx is the way to stop
		}
		for _, s := range batch[:inbox.TryReadBatch(batch)] {
			fn(s)
		}
	}
}
