package transcript

import (
	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
)

// MaxRunID bounds a run's id, which is part of a key of the index.
const MaxRunID = 256

// ValidateSend returns an error for records that do not fit the current transcript,
// and for envelopes of other surfaces.
func (a *Adapter) ValidateSend(_ *channel.Metadata, s channel.State, e *envelope.Envelope) error {
	state, ok := s.(*State)
	if !ok {
		return fault.New(fault.Internal, "the session has no state")
	}
	if !marked(e) {
		return fault.New(fault.Protocol, "a session holds its messages only, and `%.100s` is not one; POST /v1/chat says something in it", e.Type)
	}
	switch e.Type {
	case TypeCreated:
		if state.Created {
			return fault.New(fault.Conflict, "the session exists")
		}
		return nil
	case TypeAppended, TypeReplaced, TypeCompacted, TypeDescribed:
		return a.judge(state, e)
	case TypeStarted:
		return state.starts(e)
	case TypeEnded:
		return state.ends(e)
	}
	return fault.New(fault.Protocol, "`%.100s` is not a record of a session", e.Type)
}

// judge returns an error if a change is based on another transcript, or makes this
// one too long.
func (a *Adapter) judge(s *State, e *envelope.Envelope) error {
	var c Change
	if err := json.Unmarshal(e.Data, &c); err != nil {
		return fault.Wrap(fault.Invalid, err, "a change of messages cannot be read: %v", err)
	}
	if c.Of != 0 && c.Of != s.Changed {
		return fault.New(fault.Conflict, "the transcript was changed by another writer")
	}
	n := s.Messages + len(c.Rows)
	switch e.Type {
	case TypeReplaced:
		if c.From < 0 || c.From > s.Messages {
			return fault.New(fault.Invalid, "the tail from message %d is replaced, and there are %d", c.From, s.Messages)
		}
		n = c.From + len(c.Rows)
	case TypeCompacted:
		if c.Through < 0 || c.Through > s.Messages {
			return fault.New(fault.Invalid, "%d messages are compacted, and there are %d", c.Through, s.Messages)
		}
		n -= c.Through
	}
	if n > a.messages && n > s.Messages {
		return fault.New(fault.TooLarge, "the session would have %d messages; at most %d (chat.messages): begin a new session, or compact this one", n, a.messages)
	}
	if c.Details != nil {
		if details := s.Details.with(c.Details); details.size() > a.record {
			return a.tooLong(details.size())
		}
	}
	return nil
}

func (a *Adapter) tooLong(n int) error {
	return fault.New(fault.TooLarge, "title, metadata and the provider's names have %d bytes together; at most %d (limits.record)", n, a.record)
}

// starts returns an error if a run is already active.
func (s *State) starts(e *envelope.Envelope) error {
	var r Started
	switch err := json.Unmarshal(e.Data, &r); {
	case err != nil:
		return fault.Wrap(fault.Invalid, err, "a run cannot be read: %v", err)
	case r.Run == "" || len(r.Run) > MaxRunID:
		return fault.New(fault.Invalid, "a run's id has 1 to %d bytes, not %d", MaxRunID, len(r.Run))
	case s.Run != nil:
		return fault.New(fault.Conflict, "the session is busy with run %s; wait for its end", s.Run.ID).Because(fault.RunActive)
	}
	return nil
}

// ends returns an error if the record does not end the active run.
func (s *State) ends(e *envelope.Envelope) error {
	var r Ended
	if err := json.Unmarshal(e.Data, &r); err != nil {
		return fault.Wrap(fault.Invalid, err, "the end of a run cannot be read: %v", err)
	}
	if s.Run == nil || s.Run.ID != r.Run {
		return fault.New(fault.Conflict, "run %.100q is not active", r.Run).Because(fault.NoRun)
	}
	return nil
}

// ValidateSide accepts a lock if none is held, or if the record names the
// token of the lock that it replaces. An adapter has no clock, so the caller
// decides whether the other lock has expired.
func (*Adapter) ValidateSide(_ *channel.Metadata, s channel.State, e *envelope.Envelope) error {
	state, ok := s.(*State)
	if !ok || !marked(e) {
		return fault.New(fault.Protocol, "`%.100s` is not a record of a session", e.Type)
	}
	var l Locked
	if err := json.Unmarshal(e.Data, &l); err != nil || l.Token == "" {
		return fault.New(fault.Invalid, "a lock has a token")
	}
	held := ""
	if state.Lock != nil {
		held = state.Lock.Token
	}
	switch e.Type {
	case TypeLocked:
		if held != l.Replaces {
			return fault.New(fault.Conflict, "the session is locked by another writer")
		}
		return nil
	case TypeUnlocked:
		if held != l.Token {
			return fault.New(fault.Conflict, "the lock belongs to another writer")
		}
		return nil
	}
	return fault.New(fault.Protocol, "`%.100s` is not a record of a session", e.Type)
}
