package ag2

import (
	"context"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/dialect/ag2/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

// readForeign is read_wal of a foreign channel: its log as AG2's clients would
// have written it.
func (c *conn) readForeign(ctx context.Context, m *channel.Metadata, p wire.ReadWALParams) ([]byte, error) {
	f, err := c.foreignHere(ctx, m)
	if err != nil {
		return nil, err
	}
	length := uint64(0)
	if p.Since < 0 || p.Until != nil { // places are counted from the end, or may lie behind it
		if _, err := c.server.readAll(ctx, f, "", func(*envelope.Envelope) bool { length++; return true }); err != nil {
			return nil, err
		}
	} else {
		length = 1 << 62
	}
	from, to := slice(p.Since, p.Until, length)
	r := walReader{full: p.Since == 0 && p.Until == nil}
	at := uint64(0)
	_, err = c.server.readAll(ctx, f, "", func(e *envelope.Envelope) bool {
		at++
		return at <= from || at <= to && r.add(e)
	})
	if err != nil {
		return nil, err
	}
	return r.result()
}

// asked is can_send in a foreign channel. Where nobody has turns, AG2's clients
// answer whatever they may: so only whoever a text addresses may, once. A client
// asks for each text that it is told, and does not say for which: so none may
// before it is told the one that asks it.
func (c *conn) asked(ctx context.Context, m *channel.Metadata, agent, eventType string) (bool, error) {
	if m.State != channel.Active || eventType != "" && eventType != envelope.TypeText {
		return false, nil
	}
	trigger, err := c.server.triggerOf(ctx, m, agent)
	return trigger != nil && c.feeds.told(feedKey{agent, m.ID}, trigger.ID), err
}

// mayAnswer refuses an answer to a text that did not ask for it.
func (s *Server) mayAnswer(ctx context.Context, m *channel.Metadata, e *envelope.Envelope) error {
	f, err := s.foreign(ctx, m, []string{e.Sender}, nil)
	if err != nil {
		return err
	}
	r := f.reader(e.Sender)
	var list []*envelope.Envelope
	for stored, err := range s.cfg.Hub.Log(ctx, m.ID, 0, 0) {
		if err != nil {
			return err
		}
		list = r.read(list[:0], stored)
		for _, shown := range list {
			if shown.ID == e.Causation && r.asked != shown {
				return fault.New(fault.Protocol, "'%s' does not ask '%s' to answer: channel '%.100s' is a %s of another dialect, in which only those answer whom a text addresses",
					shown.ID, e.Sender, m.ID, m.Manifest.Type).Because(fault.OutOfTurn)
			}
		}
	}
	if r.late == e.Causation {
		return fault.New(fault.Protocol, "the turn in which '%s' asked '%s' to answer has ended", e.Causation, e.Sender).Because(fault.OutOfTurn)
	}
	return nil
}

// triggerOf is the text that asks an identity to answer in a foreign channel; nil:
// none does.
func (s *Server) triggerOf(ctx context.Context, m *channel.Metadata, agent string) (*envelope.Envelope, error) {
	f, err := s.foreign(ctx, m, []string{agent}, nil)
	if err != nil || len(f.readers) == 0 {
		return nil, err
	}
	r, err := s.readAll(ctx, f, agent, func(*envelope.Envelope) bool { return true })
	if err != nil {
		return nil, err
	}
	return r.asked, nil
}

// foreignAnswer finds the last text by which somebody answered another in a
// foreign channel.
func (c *conn) foreignAnswer(ctx context.Context, m *channel.Metadata, p wire.CausationParams) ([]byte, error) {
	if p.Causation == "" || m.State.Terminal() {
		return nil, nil
	}
	f, err := c.foreignHere(ctx, m)
	if err != nil {
		return nil, err
	}
	var answer *envelope.Envelope
	_, err = c.server.readAll(ctx, f, "", func(e *envelope.Envelope) bool {
		if e.Type == envelope.TypeText && e.Causation == p.Causation && e.Sender == p.Sender {
			answer = e
		}
		return true
	})
	if err != nil || answer == nil {
		return nil, err
	}
	return wire.AppendEnvelope(nil, answer), nil
}

// foreignTurns adds the turns that an identity has to take in foreign channels.
func (s *Server) foreignTurns(ctx context.Context, list []wire.PendingTurn, agent string) ([]wire.PendingTurn, error) {
	for m, err := range s.foreignOf(ctx, agent) {
		if err != nil {
			return nil, err
		}
		trigger, err := s.triggerOf(ctx, m, agent)
		if err != nil && fault.CodeOf(err) != fault.NotFound {
			return nil, err
		}
		if trigger != nil {
			list = append(list, wire.PendingTurn{Channel: m.ID, Trigger: trigger.ID, ExpectedAt: trigger.CreatedAt})
		}
	}
	return list, nil
}

// foreignOf lists the foreign channels of an identity that have not ended, the
// newest first, at most ag2.limits.foreign.
func (s *Server) foreignOf(ctx context.Context, agent string) func(yield func(*channel.Metadata, error) bool) {
	return func(yield func(*channel.Metadata, error) bool) {
		left := s.cfg.Limits.Foreign
		for o := (hub.ListOptions{Agent: agent, Open: true, Newest: true, Limit: fetched}); left > 0; {
			list, next, err := s.cfg.Hub.Channels(ctx, o)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, m := range list {
				if m.State != channel.Active || !s.isForeign(m) {
					continue
				}
				if left--; left < 0 || !yield(m, nil) {
					return
				}
			}
			if o.After = next; next == "" {
				return
			}
		}
	}
}
