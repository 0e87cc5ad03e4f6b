package hub

import (
	"context"
	"sync"
	"time"

	"github.com/parley-hub/parley/fault"
)

// sweepers look for what is due. Deadlines are a durable index ordered by
// time, so a sweep reads what is due and loads only those channels.
type sweepers struct {
	ctx context.Context // ends with the hub

	mu      sync.Mutex
	stopped bool
	custom  map[string]context.CancelFunc
	done    sync.WaitGroup
}

func (s *sweepers) init(ctx context.Context) { s.ctx = ctx }

// AddSweeper calls sweep at an interval, first after one interval, until it is
// removed or the hub closes. A sweep that panics is called again.
func (h *Hub) AddSweeper(name string, every time.Duration, sweep func(context.Context)) error {
	switch {
	case name == "":
		return fault.New(fault.Invalid, "a sweeper has a name; any non-empty text is accepted")
	case every <= 0:
		return fault.New(fault.Invalid, "sweeper '%s' would run every %s; a positive interval is wanted", name, every)
	}
	s := &h.sweepers
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return errClosed
	}
	if _, taken := s.custom[name]; taken {
		return fault.New(fault.Conflict, "a sweeper named '%s' runs already; remove it first, or choose another name", name)
	}
	ctx, stop := context.WithCancel(s.ctx)
	if s.custom == nil {
		s.custom = map[string]context.CancelFunc{}
	}
	s.custom[name] = stop
	s.done.Go(func() { h.tick(ctx, every, sweep) })
	return nil
}

// RemoveSweeper stops a sweeper; it reports whether there was one. A sweep that
// is under way sees its context end.
func (h *Hub) RemoveSweeper(name string) bool {
	s := &h.sweepers
	s.mu.Lock()
	defer s.mu.Unlock()
	stop, ok := s.custom[name]
	if ok {
		stop()
		delete(s.custom, name)
	}
	return ok
}

// stopWith stops every sweeper when the hub does.
func (s *sweepers) stopWith(ctx context.Context) {
	<-ctx.Done()
	s.mu.Lock()
	s.stopped = true
	for _, stop := range s.custom {
		stop()
	}
	s.mu.Unlock()
	s.done.Wait()
}

func (h *Hub) tick(ctx context.Context, every time.Duration, sweep func(context.Context)) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			h.hooks.isolated(func() { sweep(ctx) })
		}
	}
}
