package api

import (
	"context"
	"sync"
)

// feed runs a producer that blocks, so that a stream can take all items that are
// ready and flush before it blocks itself.
type feed[T any] struct {
	size   func(T) int
	items  chan T
	room   chan struct{} // something was taken
	signal chan struct{} // something came, or it ended
	cancel context.CancelFunc
	done   sync.WaitGroup
	err    error // written before items is closed

	mu    sync.Mutex
	bytes int // of what waits
}

// Bounds of the items that wait for the reader; a single item may have more bytes.
const (
	feedItems = 64
	feedBytes = 64 << 10
)

// startFeed runs produce until it returns or the feed is stopped. The size function
// returns how many bytes an item holds.
func startFeed[T any](ctx context.Context, produce func(ctx context.Context, put func(T) bool) error, size func(T) int) *feed[T] {
	ctx, cancel := context.WithCancel(ctx)
	f := &feed[T]{
		size: size, items: make(chan T, feedItems), room: make(chan struct{}, 1), signal: make(chan struct{}, 1), cancel: cancel,
	}
	f.done.Go(func() {
		f.err = produce(ctx, func(item T) bool {
			if !f.reserve(ctx, size(item)) {
				return false
			}
			select {
			case f.items <- item:
				ring(f.signal)
				return true
			case <-ctx.Done():
				return false
			}
		})
		if f.err == nil {
			f.err = context.Canceled
		}
		close(f.items)
		ring(f.signal)
	})
	return f
}

// reserve waits until there is room for n more bytes.
func (f *feed[T]) reserve(ctx context.Context, n int) bool {
	for !f.count(n) {
		select {
		case <-f.room:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// count adds n to the bytes that wait, unless they would exceed the bound.
func (f *feed[T]) count(n int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n > 0 && f.bytes > 0 && f.bytes+n > feedBytes {
		return false
	}
	f.bytes += n
	return true
}

func ring(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}

// tryNext returns an item, or a channel to wait on, or the error that ended the feed.
func (f *feed[T]) tryNext() (item T, wake <-chan struct{}, err error) {
	select {
	case item, ok := <-f.items:
		if !ok {
			return item, nil, f.err
		}
		f.count(-f.size(item))
		ring(f.room)
		return item, nil, nil
	default:
		return item, f.signal, nil
	}
}

// stop ends the producer and waits for it.
func (f *feed[T]) stop() {
	f.cancel()
	f.done.Wait()
}
