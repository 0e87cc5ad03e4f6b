package schema

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
)

// metaRecord is one record of a channel's metadata: the creation, or later a
// change.
type metaRecord struct {
	Created jsontext.Value `json:"created,omitzero"`
	Change  *metaChange    `json:"change,omitzero"`
	Deleted bool           `json:"deleted,omitzero"`
	Listed  bool           `json:"listed,omitzero"`
	Schedule
}

// Schedule holds a channel's positions in the lists by time, in nanoseconds: by its
// last activity, and by the next check of its expectations. The record of the
// creation holds it until the first side record does; 0 is none.
type Schedule struct {
	Active int64 `json:"active,omitzero"`
	Check  int64 `json:"look,omitzero"`
}

type metaChange struct {
	State       string   `json:"state"`
	ClosedAt    string   `json:"closed_at,omitzero"`
	CloseReason string   `json:"close_reason,omitzero"`
	PendingAcks []string `json:"pending_acks,omitzero"`
	RejectedBy  []string `json:"rejected_by,omitzero"`
}

// Buffer sizes: of the record of a creation without its long parts, of each
// participant, and at most of a schedule.
const (
	createdRoom     = 640
	participantRoom = 128
	scheduleRoom    = 64
)

// EncodeCreated writes the record of a channel's creation.
func EncodeCreated(m *channel.Metadata) ([]byte, error) {
	_, record, err := AppendCreated(nil, m)
	return record, err
}

// AppendCreated appends the record of a channel's creation to a buffer, which it
// returns. There is space after the record for WithSchedule.
func AppendCreated(b []byte, m *channel.Metadata) (buffer, record []byte, err error) {
	// Written by hand: an encoder would reformat the knobs.
	room := createdRoom + len(m.Knobs) + len(m.Name) + participantRoom*len(m.Participants)
	from := len(b)
	if b, err = m.AppendStored(append(slices.Grow(b, room), `{"created":`...)); err != nil {
		return nil, nil, err
	}
	b = append(b, '}')
	to := len(b)
	b = slices.Grow(b, scheduleRoom)[:to+scheduleRoom]
	return b, b[from:to:len(b)], nil
}

// WithSchedule adds the schedule to a record that EncodeCreated wrote.
func WithSchedule(created []byte, s Schedule) []byte {
	b := append(created[:len(created)-1], `,"active":`...)
	b = strconv.AppendInt(b, s.Active, 10)
	if s.Check != 0 {
		b = strconv.AppendInt(append(b, `,"look":`...), s.Check, 10)
	}
	return append(b, '}')
}

// EncodeChange writes the record of a change of a channel's metadata.
func EncodeChange(m *channel.Metadata) ([]byte, error) {
	c := metaChange{
		State: m.State.String(), CloseReason: m.CloseReason,
		PendingAcks: m.PendingAcks, RejectedBy: m.RejectedBy,
	}
	if !m.ClosedAt.IsZero() {
		c.ClosedAt = m.ClosedAt.Format(time.RFC3339Nano)
	}
	return json.Marshal(metaRecord{Change: &c})
}

// EncodeDeleted writes the record of a channel's deletion. From then on the channel
// does not exist, though some of its logs may.
func EncodeDeleted() []byte { return []byte(`{"deleted":true}`) }

// EncodeListed writes a record that changes nothing but the index.
func EncodeListed() []byte { return []byte(`{"listed":true}`) }

// ApplyMeta applies one record to the metadata before it, which is nil at first. It
// returns nil if the channel is deleted. The schedule is set for a creation only.
func ApplyMeta(m *channel.Metadata, data []byte, shared *channel.Interner) (*channel.Metadata, Schedule, error) {
	var r metaRecord
	if err := json.Unmarshal(data, &r); err != nil {
		return m, Schedule{}, err
	}
	switch {
	case r.Deleted:
		return nil, Schedule{}, nil
	case r.Listed:
		return m, Schedule{}, nil
	case r.Change != nil:
		next, err := r.Change.apply(m, shared)
		return next, Schedule{}, err
	}
	m, err := channel.DecodeMetadata(r.Created, shared)
	return m, r.Schedule, err
}

func (c *metaChange) apply(m *channel.Metadata, shared *channel.Interner) (*channel.Metadata, error) {
	state, err := channel.ParseLifecycle(c.State)
	if err != nil {
		return m, err
	}
	next := *m
	next.State, next.CloseReason = state, shared.Name(c.CloseReason)
	next.PendingAcks, next.RejectedBy = c.PendingAcks, c.RejectedBy
	if c.ClosedAt != "" {
		if next.ClosedAt, err = envelope.ParseTime(c.ClosedAt); err != nil {
			return m, err
		}
	}
	return &next, nil
}

// EncodeManifestKey returns the value of the index entry of a channel that has not
// ended: its manifest and, after a zero byte, its home, if it has one.
func EncodeManifestKey(k channel.Key, home string) []byte {
	value := strconv.Itoa(k.Version) + "/" + k.Type
	if home != "" {
		value += "\x00" + home
	}
	return []byte(value)
}

// DecodeManifestKey reads what EncodeManifestKey writes.
func DecodeManifestKey(value []byte) channel.Key {
	text, _, _ := strings.Cut(string(value), "\x00")
	version, kind, _ := strings.Cut(text, "/")
	n, _ := strconv.Atoi(version) // written by EncodeManifestKey
	return channel.Key{Type: kind, Version: n}
}
