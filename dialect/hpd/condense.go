package hpd

import (
	"context"
	"iter"

	adapter "github.com/parley-hub/parley/adapter/branch"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/view/branch"
)

// Bounds of condensing.
const (
	condenseAfter = 256      // events at the end of a log that are read as they are
	condensedPart = 32 << 10 // bytes after which a part is complete
	condensing    = 2        // branches at once
)

// condenseSoon condenses a branch in the background, unless enough others are being
// condensed. An uncondensed part is read from the log, and condensed later.
func (s *Server) condenseSoon(x *scope) {
	select {
	case s.condensing <- struct{}{}:
	default:
		return
	}
	s.background.Go(func() {
		defer func() { <-s.condensing }()
		if err := s.condense(s.ctx, x); err != nil && !hub.Deleted(err) && s.ctx.Err() == nil {
			s.log.Warn("a branch's history was not condensed", "error", err)
		}
	})
}

// condense writes a short form of the part of a log after its last condensed part,
// if that is long. Several calls may run at once: overlapping parts are not read.
func (s *Server) condense(ctx context.Context, x *scope) error {
	last, err := s.condensedTo(ctx, x)
	if err != nil {
		return err
	}
	at, err := s.hub.Position(ctx, x.channel)
	if err != nil || at.Seq < last+condenseAfter {
		return err
	}
	sender, err := s.user(ctx)
	if err != nil {
		return err
	}
	var c branch.Condenser
	flush := func() error {
		part, err := c.Take()
		if err != nil {
			return err
		}
		data, err := marshal(part)
		if err != nil || len(data) > adapter.MaxCondensed || part.From == 0 {
			return err // this part is then read from the log
		}
		return s.noteRaw(ctx, x.channel, sender, adapter.TypeCondensed, data, branch.Ext{})
	}
	for e, err := range s.events(ctx, x, last+1, at.Seq) {
		if err != nil {
			return err
		}
		// A large event is a part of its own, so that reading its neighbours
		// stays cheap.
		large := len(e.Data) > condensedPart
		if large || c.Size()+len(e.Data) > condensedPart {
			if err := flush(); err != nil {
				return err
			}
		}
		c.Add(e)
		if large {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// condensedTo returns the end of the last condensed part; 0 if there is none.
func (s *Server) condensedTo(ctx context.Context, x *scope) (uint64, error) {
	page, err := s.hub.Entries(ctx, hub.EntryQuery{
		Type: adapter.Type, Home: x.session.home, Prefix: adapter.CondensedPrefix(x.channel), Reverse: true, Limit: 1,
	})
	if err != nil || len(page.Entries) == 0 {
		return 0, err
	}
	part, err := adapter.ParseCondensed(page.Entries[0].Value)
	return part.To, err
}

// events yields the events of a log from one sequence through another; 0 is its
// end.
func (s *Server) events(ctx context.Context, x *scope, from, to uint64) iter.Seq2[branch.Event, error] {
	return func(yield func(branch.Event, error) bool) {
		for e, err := range s.hub.Log(ctx, x.channel, from, to) {
			if err != nil {
				yield(branch.Event{}, err)
				return
			}
			if event, ok := branch.FromEnvelope(e); ok && !yield(event, nil) {
				return
			}
		}
	}
}

// projection returns a branch's current history: the condensed parts, and the rest
// from the log.
func (s *Server) projection(ctx context.Context, x *scope) (*branch.History, error) {
	h := &branch.History{}
	read := func(from, to uint64) error {
		for e, err := range s.events(ctx, x, from, to) {
			if err != nil {
				return err
			}
			h.Apply(e)
		}
		return nil
	}
	last := uint64(0)
	q := hub.EntryQuery{Home: x.session.home, Prefix: adapter.CondensedPrefix(x.channel)}
	for part, err := range entries(ctx, s.hub, q, adapter.ParseCondensed) {
		if err != nil {
			return nil, err
		}
		if part.From <= last || part.To < part.From {
			continue // another call wrote the same part
		}
		if part.From > last+1 {
			if err := read(last+1, part.From-1); err != nil {
				return nil, err
			}
		}
		part.Apply(h)
		last = part.To
	}
	return h, read(last+1, 0)
}
