package chat

import (
	"bytes"
	"context"
	"crypto/rand"
	"time"

	adapter "github.com/parley-hub/parley/adapter/transcript"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/message/transcript"
)

// Update replaces a transcript: the beginning that both have in common stays.
func (s *Store) Update(ctx context.Context, id string, update transcript.Update) (bool, error) {
	rows, err := transcript.Rows(update.Messages)
	if err != nil {
		return false, err
	}
	details, err := detailsOf(update)
	if err != nil {
		return false, err
	}
	return s.replace(ctx, id, rows, details, "", nil)
}

func detailsOf(update transcript.Update) (*adapter.Details, error) {
	metadata, err := encodeMap(update.Metadata)
	if err != nil {
		return nil, err
	}
	details := &adapter.Details{Metadata: metadata, ResponseID: update.ProviderResponseID}
	if update.Provider != "" {
		details.Provider = &update.Provider
	}
	if update.Model != "" {
		details.Model = &update.Model
	}
	return details, nil
}

// replace writes the records that turn the stored transcript into another, and
// whatever else belongs to the same batch.
func (s *Store) replace(ctx context.Context, id string, rows adapter.Rows, details *adapter.Details, run string, also *envelope.Envelope) (bool, error) {
	for {
		channelID, m, state, err := s.open(ctx, id)
		if err != nil || channelID == "" {
			return false, err
		}
		stored, changed, err := s.rows(ctx, channelID, state)
		if err != nil {
			return false, missing(err)
		}
		list, err := s.changes(stored, rows, adapter.Change{Of: changed, Details: details, Run: run})
		if err != nil {
			return false, err
		}
		if also != nil {
			list = append(list, also.Clone())
		}
		err = s.post(ctx, channelID, m.Creator, list)
		switch {
		case hub.Deleted(err):
			return false, nil
		case conflict(err) && fault.ReasonOf(err) != fault.NoRun:
			continue // another writer was faster
		}
		return err == nil, err
	}
}

// Compact replaces the first messages of a transcript, and leaves the rest.
func (s *Store) Compact(ctx context.Context, id string, through int, messages any) (bool, error) {
	rows, err := transcript.Rows(messages)
	if err != nil {
		return false, err
	}
	data, err := adapter.Encode(adapter.Change{Through: through, Rows: rows})
	if err != nil {
		return false, fault.Wrap(fault.Invalid, err, "the messages cannot be written: %v", err)
	}
	channelID, m, _, err := s.open(ctx, id)
	if err != nil || channelID == "" {
		return false, err
	}
	err = s.post(ctx, channelID, m.Creator, []*envelope.Envelope{record(m.Creator, adapter.TypeCompacted, data, "")})
	return err == nil, fault.IgnoreNotFound(err)
}

// open finds a session to write to; an empty channel says that there is none.
func (s *Store) open(ctx context.Context, id string) (string, *channel.Metadata, *adapter.State, error) {
	channelID, err := s.find(ctx, id)
	if err != nil || channelID == "" {
		return "", nil, nil, err
	}
	m, err := s.hub.Channel(ctx, channelID)
	if hub.Deleted(err) {
		return "", nil, nil, nil
	}
	if err != nil {
		return "", nil, nil, err
	}
	state, err := s.state(ctx, channelID)
	if hub.Deleted(err) {
		return "", nil, nil, nil
	}
	return channelID, m, state, err
}

func (s *Store) post(ctx context.Context, channelID, writer string, list []*envelope.Envelope) error {
	for _, e := range list {
		e.Channel, e.Sender = channelID, writer
	}
	_, err := s.hub.AdmitAll(ctx, list, nil).Wait(ctx)
	return err
}

// recordRoom is left in a record for what is not messages.
const recordRoom = 4 << 10

// changes returns the records that turn one transcript into another, each of
// which fits into an envelope.
func (s *Store) changes(stored, rows adapter.Rows, first adapter.Change) ([]*envelope.Envelope, error) {
	common := 0
	for common < len(stored) && common < len(rows) && bytes.Equal(stored[common], rows[common]) {
		common++
	}
	kind := adapter.TypeAppended
	if common < len(stored) {
		kind, first.From = adapter.TypeReplaced, common
	}
	rest := rows[common:]
	if kind == adapter.TypeAppended && len(rest) == 0 {
		kind = adapter.TypeDescribed
	}
	var list []*envelope.Envelope
	for next := first; len(list) == 0 || len(rest) > 0; next = (adapter.Change{Run: first.Run}) {
		room := s.cfg.Event - recordRoom
		if next.Details != nil {
			room -= len(next.Details.Metadata)
		}
		n := 0
		for n < len(rest) && len(rest[n])+1 <= room {
			room -= len(rest[n]) + 1
			n++
		}
		if n == 0 && len(rest) > 0 && (len(list) > 0 || next.Details == nil || len(rest[0]) > s.cfg.Event-recordRoom) {
			return nil, fault.Wrap(fault.TooLarge, errTooLarge, "a message has %d bytes; at most %d (limits.event)", len(rest[0]), s.cfg.Event-recordRoom)
		}
		next.Rows, rest = rest[:n], rest[n:]
		data, err := adapter.Encode(next)
		if err != nil {
			return nil, fault.Wrap(fault.Invalid, err, "the messages cannot be written: %v", err)
		}
		list = append(list, record("", kind, data, ""))
		kind = adapter.TypeAppended
	}
	return list, nil
}

// SetTitle renames a session.
func (s *Store) SetTitle(ctx context.Context, id, title string) (bool, error) {
	channelID, m, _, err := s.open(ctx, id)
	if err != nil || channelID == "" {
		return false, err
	}
	data, err := adapter.Encode(adapter.Change{Details: &adapter.Details{Title: &title}})
	if err != nil {
		return false, fault.Wrap(fault.Invalid, err, "a title is text: %v", err)
	}
	err = s.post(ctx, channelID, m.Creator, []*envelope.Envelope{record(m.Creator, adapter.TypeDescribed, data, "")})
	if hub.Deleted(err) {
		return false, nil
	}
	return err == nil, err
}

// runOf is the run that a call is made for, if it is one.
type runOf struct{}

// Acquire takes a session's lock if it is free, has expired, or was taken by
// the same run before a restart.
func (s *Store) Acquire(ctx context.Context, id string, ttl time.Duration) (string, error) {
	channelID, m, state, err := s.open(ctx, id)
	if err != nil || channelID == "" {
		return "", err
	}
	run, _ := ctx.Value(runOf{}).(string)
	lock := adapter.Locked{Token: rand.Text(), Ends: s.lockTime(ttl), Run: run}
	if held := state.Lock; held != nil {
		if s.hub.Clock().UnixNano() < held.Ends && (run == "" || held.Run != run) {
			return "", nil
		}
		lock.Replaces = held.Token
	}
	err = s.appendSide(ctx, channelID, m.Creator, adapter.TypeLocked, lock)
	if conflict(err) || hub.Deleted(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return lock.Token, nil
}

// Release releases a lock.
func (s *Store) Release(ctx context.Context, id, token string) (bool, error) {
	channelID, m, state, err := s.open(ctx, id)
	if err != nil || channelID == "" || token == "" || state.Lock == nil || state.Lock.Token != token {
		return false, err
	}
	err = s.appendSide(ctx, channelID, m.Creator, adapter.TypeUnlocked, adapter.Locked{Token: token})
	if conflict(err) || hub.Deleted(err) {
		return false, nil
	}
	return err == nil, err
}

func (s *Store) appendSide(ctx context.Context, channelID, writer, kind string, lock adapter.Locked) error {
	data, err := adapter.Encode(lock)
	if err != nil {
		return err
	}
	e := record(writer, kind, data, "")
	e.Channel = channelID
	_, err = s.hub.AdmitSide(ctx, e, nil).Wait(ctx)
	return err
}

// locked reports whether a session's lock is valid now.
func (s *Store) locked(state *adapter.State) bool {
	return state.Lock != nil && s.hub.Clock().UnixNano() < state.Lock.Ends
}
