package streams

import (
	"errors"
	"net/http"
	"sync"
)

// Flushing is the floor: a list of streams, each written and flushed for every
// event.
type Flushing struct {
	mu      sync.Mutex
	streams []http.ResponseWriter
	done    chan struct{}
}

// ServeHTTP adds a stream.
func (f *Flushing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	f.mu.Lock() // a reader that sees the stream begin is in the list when something is published
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush() // a reader that disconnected is noticed when it is written to
	if f.done == nil {
		f.done = make(chan struct{})
	}
	f.streams = append(f.streams, w)
	done := f.done
	f.mu.Unlock()
	select {
	case <-done:
	case <-r.Context().Done():
	}
}

// End ends the streams.
func (f *Flushing) End() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.done != nil {
		close(f.done)
	}
}

// Publish writes a frame n times to each stream.
func (f *Flushing) Publish(n int64, frame []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.streams) == 0 {
		return errors.New("nobody follows")
	}
	for range n {
		for _, w := range f.streams {
			if _, err := w.Write(frame); err != nil {
				return err
			}
			if err := http.NewResponseController(w).Flush(); err != nil {
				return err
			}
		}
	}
	return nil
}
