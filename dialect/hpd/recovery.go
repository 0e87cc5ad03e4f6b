package hpd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/loop"
)

// Times between two attempts to settle the runs that a restart left.
const (
	recoverAgain   = time.Second
	recoverSlowest = 30 * time.Second
)

// recovery is the state of settling the runs that a restart left.
type recovery struct {
	started sync.Once
	// seen is closed after the first attempt to settle every run of an earlier
	// process.
	seen chan struct{}

	mu   sync.Mutex
	busy bool
	left int   // runs; negative: not yet known
	err  error // why the last attempt did not settle them
}

// unfinished returns an error that names what is not yet settled, or nil.
func (r *recovery) unfinished() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !r.busy:
		return nil
	case r.err != nil:
		return fmt.Errorf("the hub cannot end the HPD runs that a restart interrupted, and tries again: %w", r.err)
	case r.left < 0:
		return errors.New("the hub is looking for HPD runs that a restart interrupted")
	}
	return fmt.Errorf("the hub is ending the HPD runs that a restart interrupted: %d are left", r.left)
}

func (r *recovery) report(busy bool, left int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy, r.left, r.err = busy, left, err
}

// Start looks for runs that a restart left. They are settled in the
// background; a request for one of their sessions waits for that session only.
func (s *Server) Start(ctx context.Context) error {
	s.recovery.started.Do(func() {
		if all, err := s.activeRuns(ctx); err == nil && len(all) == 0 {
			close(s.recovery.seen)
			return
		}
		s.recovery.report(true, -1, nil)
		s.background.Go(s.recoverAll)
	})
	return nil
}

// recoverAll settles every session with a run of an earlier process, and tries
// again those that cannot be settled now.
func (s *Server) recoverAll() {
	looked := sync.OnceFunc(func() { close(s.recovery.seen) })
	for wait := recoverAgain; ; wait = min(2*wait, recoverSlowest) {
		left, err := s.recoverOnce()
		looked()
		s.recovery.report(err != nil, left, err)
		if err == nil || s.ctx.Err() != nil {
			return
		}
		s.log.Error("runs that a restart interrupted were not ended", "left", left, "error", err)
		if loop.Pause(s.ctx, wait) != nil {
			return
		}
	}
}

// recoverOnce settles what it can, and returns how many runs are left.
func (s *Server) recoverOnce() (left int, err error) {
	all, err := s.activeRuns(s.ctx)
	if err != nil {
		return -1, err
	}
	for i, b := range all {
		s.recovery.report(true, len(all)-i+left, err)
		if failed := s.recoverSession(b.Session); failed != nil {
			left, err = left+1, failed
		}
	}
	return left, err
}

func (s *Server) recoverSession(id string) error {
	x, err := s.lookup(s.ctx, id)
	if err == nil {
		err = s.settle(s.ctx, x)
	}
	if fault.CodeOf(err) == fault.NotFound {
		return nil // deleted meanwhile
	}
	return err
}
