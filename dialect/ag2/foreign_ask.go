package ag2

import (
	"context"
	"strings"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/dialect/ag2/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

// readForeign implements read_wal for a foreign channel: it returns the log that
// AG2's clients would have written.
func (c *conn) readForeign(ctx context.Context, m *channel.Metadata, p wire.ReadWALParams) ([]byte, error) {
	f, err := c.foreignHere(ctx, m)
	if err != nil {
		return nil, err
	}
	r := walReader{full: p.Since == 0 && p.Until == nil}
	if r.full {
		err = c.server.readAll(ctx, f, r.add)
	} else {
		err = c.server.readSlice(ctx, f, p, r.add)
	}
	if err != nil {
		return nil, err
	}
	return r.result()
}

// readSlice passes a slice of the log of a foreign channel to take, until take
// returns false. If the channel's reader allows it, reading begins near the slice.
func (s *Server) readSlice(ctx context.Context, f *foreign, p wire.ReadWALParams, take func(*envelope.Envelope) bool) error {
	head, err := f.head()
	if err != nil {
		return err
	}
	k, err := s.folded(ctx, f, "", f.sight())
	if err != nil {
		return err
	}
	first := uint64(len(head))
	from, to := slice(p.Since, p.Until, first+k.shown)
	begin, end := k.mark(from-min(from, first)), k.seq
	k.mu.Unlock()
	if from >= to {
		return nil
	}
	for at := from; at < min(first, to); at++ {
		if !take(head[at]) {
			return nil
		}
	}
	at, r := first+begin.shown, f.reader("")
	var list []*envelope.Envelope
	for e, err := range s.cfg.Hub.Log(ctx, f.meta.ID, begin.seq+1, end) {
		if err != nil {
			return err
		}
		list = r.read(list[:0], e)
		for _, shown := range list {
			if at++; at > to || at > from && !take(shown) {
				return nil
			}
		}
		if at == to {
			return nil
		}
	}
	return nil
}

// asked implements can_send in a foreign channel. In a channel without turns AG2's
// clients answer every text that they may answer, so only an identity that a text
// addresses may send, once. A client calls can_send for each text that it receives,
// without naming the text, so the answer is false until the client has received the
// text that asks it.
func (c *conn) asked(ctx context.Context, m *channel.Metadata, agent, eventType string) (bool, error) {
	if m.State != channel.Active || eventType != "" && eventType != envelope.TypeText {
		return false, nil
	}
	trigger, err := c.server.triggerOf(ctx, m, agent)
	return trigger != nil && c.feeds.told(feedKey{agent, m.ID}, trigger.ID), err
}

// question is a text that asks for an answer.
type question struct {
	work string // the work that the question is about; empty: none
	from string // the identity that asks
}

// mayAnswer returns the text that asks for an answer. It returns an error if the
// answered text does not ask for one.
func (s *Server) mayAnswer(ctx context.Context, m *channel.Metadata, e *envelope.Envelope) (q question, err error) {
	f, err := s.foreign(ctx, m, []string{e.Sender}, nil)
	if err != nil {
		return q, err
	}
	k, err := s.folded(ctx, f, e.Sender, "")
	if err != nil {
		return q, err
	}
	late := k.reader.late
	q, found, known := k.asked(e.Causation)
	k.mu.Unlock()
	switch {
	case late == e.Causation:
		return q, fault.New(fault.Protocol, "the turn in which '%s' asked '%s' to answer has ended", e.Causation, e.Sender).Because(fault.OutOfTurn)
	case found:
		return q, nil
	case !known:
		return s.askedLongAgo(ctx, f, e)
	}
	id, _, _ := strings.Cut(e.Causation, ".") // one envelope may be shown as several texts
	if _, err := s.cfg.Hub.SequenceOf(ctx, m.ID, id); err != nil {
		return q, fault.IgnoreNotFound(err) // not in this channel
	}
	return q, notAsked(m, e)
}

// askedLongAgo searches the log for a question.
func (s *Server) askedLongAgo(ctx context.Context, f *foreign, e *envelope.Envelope) (q question, err error) {
	r := f.reader(e.Sender)
	var list []*envelope.Envelope
	for stored, err := range s.cfg.Hub.Log(ctx, f.meta.ID, 0, 0) {
		if err != nil {
			return q, err
		}
		list = r.read(list[:0], stored)
		for _, shown := range list {
			switch {
			case shown.ID != e.Causation:
			case r.asked == shown:
				return question{r.work, stored.Sender}, nil
			default:
				return q, notAsked(f.meta, e)
			}
		}
	}
	return q, nil
}

func notAsked(m *channel.Metadata, e *envelope.Envelope) error {
	return fault.New(fault.Protocol, "'%s' does not ask '%s' to answer: channel '%.100s' is a %s of another dialect, in which only those answer whom a text addresses",
		e.Causation, e.Sender, m.ID, m.Manifest.Type).Because(fault.OutOfTurn)
}

// triggerOf returns the text that asks an identity to answer in a foreign channel,
// or nil if there is none.
func (s *Server) triggerOf(ctx context.Context, m *channel.Metadata, agent string) (*envelope.Envelope, error) {
	f, err := s.foreign(ctx, m, []string{agent}, nil)
	if err != nil || len(f.readers) == 0 {
		return nil, err
	}
	k, err := s.folded(ctx, f, agent, "")
	if err != nil {
		return nil, err
	}
	defer k.mu.Unlock()
	return k.reader.asked, nil
}

// foreignAnswer finds the last text that answers another in a foreign channel.
func (c *conn) foreignAnswer(ctx context.Context, m *channel.Metadata, p wire.CausationParams) ([]byte, error) {
	if p.Causation == "" || m.State.Terminal() {
		return nil, nil
	}
	f, err := c.foreignHere(ctx, m)
	if err != nil {
		return nil, err
	}
	last, err := c.server.cfg.Hub.AnswerTo(ctx, m.ID, p.Sender, p.Causation)
	if err != nil || last == nil {
		return nil, err
	}
	// The last envelope that the text caused may not be a text. The log is then
	// searched.
	near := last.Seq - min(last.Seq-1, nearby)
	answer, err := c.server.textBetween(ctx, f, p, near, last.Seq)
	if err == nil && answer == nil {
		answer, err = c.server.textBetween(ctx, f, p, 0, last.Seq)
	}
	if err != nil || answer == nil {
		return nil, err
	}
	return wire.AppendEnvelope(nil, answer), nil
}

// textBetween finds the last answer in a part of the log.
func (s *Server) textBetween(ctx context.Context, f *foreign, p wire.CausationParams, from, to uint64) (answer *envelope.Envelope, err error) {
	r := f.reader("")
	var list []*envelope.Envelope
	for e, err := range s.cfg.Hub.Log(ctx, f.meta.ID, from, to) {
		if err != nil {
			return nil, err
		}
		list = r.read(list[:0], e)
		for _, shown := range list {
			if shown.Type == envelope.TypeText && shown.Causation == p.Causation && shown.Sender == p.Sender {
				answer = shown
			}
		}
	}
	return answer, nil
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
