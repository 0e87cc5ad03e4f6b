package transcript

import (
	"bytes"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
)

// Fold counts messages, and tracks details and the active run.
func (*Adapter) Fold(s channel.State, e *envelope.Envelope) channel.State {
	state, ok := s.(*State)
	if !ok || !marked(e) {
		return s
	}
	next := *state
	switch e.Type {
	case TypeCreated:
		next.Created = true
	case TypeAppended, TypeReplaced, TypeCompacted, TypeDescribed:
		var c Change
		if json.Unmarshal(e.Data, &c) != nil {
			return s
		}
		next.change(e, &c)
	case TypeStarted:
		var r Started
		if json.Unmarshal(e.Data, &r) != nil {
			return s
		}
		next.Run = &Run{ID: r.Run, Agent: r.Agent, Seq: e.Seq}
	case TypeEnded:
		var r Ended
		if json.Unmarshal(e.Data, &r) != nil {
			return s
		}
		next.Run, next.Talk = nil, max(next.Talk, r.Talk)
	default:
		return s
	}
	return &next
}

// change applies a change of messages and details to the state.
func (s *State) change(e *envelope.Envelope, c *Change) {
	switch e.Type {
	case TypeAppended:
		s.Messages += len(c.Rows)
	case TypeReplaced:
		if c.From < 0 || c.From > s.Messages {
			return
		}
		if c.From == 0 {
			s.Base = e.Seq
		}
		s.Messages = c.From + len(c.Rows)
	case TypeCompacted:
		if c.Through < 0 || c.Through > s.Messages {
			return
		}
		if c.Through == s.Messages {
			s.Base = e.Seq
		}
		s.Messages += len(c.Rows) - c.Through
	}
	if e.Type != TypeDescribed {
		s.Changed = e.Seq
	}
	s.Updated = e.CreatedAt
	if c.Details != nil {
		s.Details = s.Details.with(c.Details)
	}
}

// with returns the details, overwritten by the set fields of others.
func (d Details) with(other *Details) Details {
	for _, field := range []struct{ to, from **string }{
		{&d.Title, &other.Title}, {&d.Provider, &other.Provider}, {&d.Model, &other.Model}, {&d.ResponseID, &other.ResponseID},
	} {
		if *field.from != nil {
			*field.to = *field.from
		}
	}
	if other.Metadata != nil {
		d.Metadata = other.Metadata
	}
	return d
}

// FoldSide tracks the lock.
func (*Adapter) FoldSide(s channel.State, e *envelope.Envelope) channel.State {
	state, ok := s.(*State)
	var l Locked
	if !ok || !marked(e) || json.Unmarshal(e.Data, &l) != nil {
		return s
	}
	next := *state
	switch e.Type {
	case TypeLocked:
		next.Lock = &Lock{Token: l.Token, Ends: l.Ends, Run: l.Run}
	case TypeUnlocked:
		if state.Lock == nil || state.Lock.Token != l.Token {
			return s
		}
		next.Lock = nil
	default:
		return s
	}
	return &next
}

// marked reports whether the server wrote a record itself.
func marked(e *envelope.Envelope) bool { return bytes.Equal(e.Ext, Mark) }
