package samples

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"

	"github.com/parley-hub/parley/fault"
)

// Route is the lane of one type of sample. Safe for concurrent use.
type Route[T Sample] struct {
	options  RouteOptions
	turn     chan struct{} // held by the emitter that hands out
	mu       sync.Mutex    // guards changes of inboxes
	inboxes  atomic.Pointer[[]*Inbox[T]]
	sequence atomic.Uint64

	emitted   atomic.Uint64
	delivered atomic.Uint64
	dropped   atomic.Uint64
}

func newRoute[T Sample](options RouteOptions) *Route[T] {
	r := &Route[T]{options: options, turn: make(chan struct{}, 1)}
	r.inboxes.Store(&[]*Inbox[T]{})
	return r
}

func (r *Route[T]) kind() string {
	var zero T
	return zero.SampleKind()
}

func (r *Route[T]) stats() Stats { return r.Stats() }

// Stats returns the route's stats.
func (r *Route[T]) Stats() Stats {
	return Stats{Emitted: r.emitted.Load(), Delivered: r.delivered.Load(), Dropped: r.dropped.Load(), Subscribers: len(*r.inboxes.Load())}
}

// Emit gives a sample with its producer's time to every reader. Without
// readers it only counts. It waits, until ctx ends, while a reader with
// Backpressure is full.
func (r *Route[T]) Emit(ctx context.Context, at int64, value T) error {
	r.emitted.Add(1)
	if len(*r.inboxes.Load()) == 0 {
		if r.options.Sequenced {
			r.sequence.Add(1)
		}
		return nil
	}
	if err := r.acquire(ctx); err != nil {
		return err
	}
	defer r.release()
	return r.hand(ctx, at, value)
}

// EmitBatch gives several samples of one time, in order and without others
// between them. It stops where ctx ends.
func (r *Route[T]) EmitBatch(ctx context.Context, at int64, values []T) error {
	r.emitted.Add(uint64(len(values)))
	if len(*r.inboxes.Load()) == 0 {
		if r.options.Sequenced {
			r.sequence.Add(uint64(len(values)))
		}
		return nil
	}
	if err := r.acquire(ctx); err != nil {
		return err
	}
	defer r.release()
	for _, value := range values {
		if err := r.hand(ctx, at, value); err != nil {
			return err
		}
	}
	return nil
}

func (r *Route[T]) acquire(ctx context.Context) error {
	select {
	case r.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *Route[T]) release() { <-r.turn }

func (r *Route[T]) hand(ctx context.Context, at int64, value T) error {
	s := Stamped[T]{Time: at, Value: value}
	if r.options.Sequenced {
		s.Sequence = r.sequence.Add(1)
	}
	for _, inbox := range *r.inboxes.Load() {
		if err := inbox.put(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// Overflow is what happens to a sample that finds a reader's buffer full.
type Overflow uint8

// Ways to overflow. One reader's dropping never affects another.
const (
	Backpressure Overflow = iota // the emitter waits
	DropOldest
	DropNewest
)

// Buffer sizes of readers.
const (
	DefaultBuffer = 1024
	MaxBuffer     = 1 << 20
)

// SubscribeOptions configure a reader.
type SubscribeOptions struct {
	Buffer   int // samples; 0 is DefaultBuffer
	Overflow Overflow
}

// Subscribe adds a reader. It gets what is emitted from now on: nothing is
// replayed. Close it.
func (r *Route[T]) Subscribe(o SubscribeOptions) (*Inbox[T], error) {
	o.Buffer = cmp.Or(o.Buffer, DefaultBuffer)
	if o.Buffer < 0 || o.Buffer > MaxBuffer {
		return nil, fault.New(fault.Invalid, "a buffer of %d samples is not possible; it has 1 to %d", o.Buffer, MaxBuffer)
	}
	inbox := &Inbox[T]{
		route: r, overflow: o.Overflow, ring: make([]Stamped[T], o.Buffer),
		ready: make(chan struct{}, 1), room: make(chan struct{}, 1), closed: make(chan struct{}),
	}
	r.change(func(list []*Inbox[T]) []*Inbox[T] { return append(list, inbox) })
	return inbox, nil
}

// change replaces the list of readers, which emitters read without a lock.
func (r *Route[T]) change(edit func([]*Inbox[T]) []*Inbox[T]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := edit(append([]*Inbox[T](nil), *r.inboxes.Load()...))
	r.inboxes.Store(&list)
}
