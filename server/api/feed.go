package api

import (
	"context"
	"sync"
)

// feed runs a producer that waits, so that a stream can take what is there and
// flush before it waits itself.
type feed[T any] struct {
	items  chan T
	signal chan struct{} // something came, or it ended
	cancel context.CancelFunc
	done   sync.WaitGroup
	err    error // written before items is closed
}

// startFeed runs produce until it returns or the feed is stopped.
func startFeed[T any](ctx context.Context, produce func(ctx context.Context, put func(T) bool) error) *feed[T] {
	ctx, cancel := context.WithCancel(ctx)
	f := &feed[T]{items: make(chan T, 64), signal: make(chan struct{}, 1), cancel: cancel}
	f.done.Go(func() {
		f.err = produce(ctx, func(item T) bool {
			select {
			case f.items <- item:
				f.ring()
				return true
			case <-ctx.Done():
				return false
			}
		})
		if f.err == nil {
			f.err = context.Canceled
		}
		close(f.items)
		f.ring()
	})
	return f
}

func (f *feed[T]) ring() {
	select {
	case f.signal <- struct{}{}:
	default:
	}
}

// tryNext returns what is there, or what to wait for, or why it ended.
func (f *feed[T]) tryNext() (item T, wake <-chan struct{}, err error) {
	select {
	case item, ok := <-f.items:
		if !ok {
			return item, nil, f.err
		}
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
