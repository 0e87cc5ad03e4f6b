package hpd

import (
	"context"

	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/view/branch"
)

// bubble shows a run's events live on the streams of the parent branch, if the
// run's branch belongs to a sub-agent, until the run ends or stop is called.
// The parent need not exist.
func (s *Server) bubble(ctx context.Context, x *run, parent wire.Scope) (stop func()) {
	of, err := s.lookup(ctx, parent.Session)
	if err != nil {
		return func() {}
	}
	to, err := s.branch(ctx, of, parent.Branch)
	if err != nil || to.channel == x.scope.channel {
		return func() {}
	}
	f, err := s.hub.Follow(s.ctx, x.scope.channel, hub.FollowOptions{FromNow: true, Queue: s.cfg.Limits.Behind})
	if err != nil {
		s.log.Warn("a child branch is not shown on its parent's streams", "error", err)
		return func() {}
	}
	following, stop := context.WithCancel(s.ctx)
	s.background.Go(func() {
		defer stop()
		defer f.Close()
		for {
			ev, err := f.Next(following)
			if err != nil {
				return
			}
			if done := s.bubbleOne(x, to, &ev); done {
				return
			}
		}
	})
	return stop
}

// bubbleOne shows one event on the parent's streams, and reports whether it was
// the run's last.
func (s *Server) bubbleOne(x *run, to *scope, ev *hub.Event) (done bool) {
	if durableOnly(ev.Envelope) {
		return false
	}
	name, base, ok := s.baseOf(ev, x.scope.wire())
	if !ok {
		return false
	}
	e := &wire.Event{Base: base, Payload: wire.Opaque{Type: name, Data: ev.Envelope.Data}}
	if err := s.showIn(s.ctx, to.channel, x.agent, e); err != nil && fault.CodeOf(err) == fault.NotFound {
		return true // the parent is gone
	}
	return name == branch.BranchRunCompleted && !ev.Live
}
