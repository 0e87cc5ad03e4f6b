package wire

import (
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/identity"
)

// AppendPassport writes a passport.
func AppendPassport(buf []byte, p *identity.Passport) ([]byte, error) { return appendRecord(buf, p) }

// AppendResume writes a resume.
func AppendResume(buf []byte, r *identity.Resume) ([]byte, error) { return appendRecord(buf, r) }

// AppendRule writes a rule.
func AppendRule(buf []byte, r *identity.Rule) ([]byte, error) { return appendRecord(buf, r) }

func appendRecord(buf []byte, record any) ([]byte, error) {
	data, err := json.Marshal(record, form, json.Deterministic(true))
	return append(buf, data...), err
}

// AppendMetadata writes a channel's metadata.
func AppendMetadata(buf []byte, m *channel.Metadata) ([]byte, error) {
	buf = append(buf, `{"channel_id":`...)
	buf = appendText(buf, m.ID)
	buf = append(buf, `,"manifest":`...)
	buf, err := m.Manifest.AppendJSON(buf)
	if err != nil {
		return nil, err
	}
	buf = append(buf, `,"creator_id":`...)
	buf = appendText(buf, m.Creator)
	buf = append(buf, `,"participants":[`...)
	for i, p := range m.Participants {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = appendParticipant(buf, p)
	}
	buf = append(buf, `],"state":`...)
	buf = appendText(buf, m.State.String())
	buf = append(buf, `,"created_at":`...)
	buf = appendTime(buf, m.CreatedAt)
	buf = append(buf, `,"expires_at":`...)
	buf = appendOptionalTime(buf, m.ExpiresAt)
	buf = append(buf, `,"closed_at":`...)
	buf = appendOptionalTime(buf, m.ClosedAt)
	buf = append(buf, `,"close_reason":`...)
	buf = appendText(buf, m.CloseReason)
	buf = append(buf, `,"parent_channel_id":`...)
	buf = appendOptional(buf, m.Parent)
	buf = append(buf, `,"knobs":`...)
	buf = appendObject(buf, m.Knobs)
	buf = append(buf, `,"labels":`...)
	if buf, err = appendRecord(buf, m.Labels); err != nil {
		return nil, err
	}
	buf = append(buf, `,"required_acks":`...)
	if m.RequiredAcks == nil {
		buf = append(buf, "null"...)
	} else {
		buf = appendInt(buf, int64(*m.RequiredAcks))
	}
	buf = append(buf, `,"pending_acks":`...)
	buf = appendTexts(buf, m.PendingAcks)
	buf = append(buf, `,"rejected_by":`...)
	buf = appendTexts(buf, m.RejectedBy)
	return append(buf, '}'), nil
}

func appendParticipant(buf []byte, p channel.Participant) []byte {
	buf = append(buf, `{"agent_id":`...)
	buf = appendText(buf, p.Agent)
	buf = append(buf, `,"role":`...)
	buf = appendText(buf, string(p.Role))
	buf = append(buf, `,"order":`...)
	buf = appendInt(buf, int64(p.Order))
	buf = append(buf, `,"joined_at":`...)
	buf = appendTime(buf, p.JoinedAt)
	return append(buf, '}')
}

// PendingTurn is a turn that an identity owes a channel.
type PendingTurn struct {
	Channel    string
	Trigger    string // empty before the first text
	ExpectedAt time.Time
}

// AppendPendingTurns writes a list of pending turns.
func AppendPendingTurns(buf []byte, list []PendingTurn) []byte {
	buf = append(buf, '[')
	for i, t := range list {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = append(buf, `{"channel_id":`...)
		buf = appendText(buf, t.Channel)
		buf = append(buf, `,"triggering_envelope_id":`...)
		buf = appendOptional(buf, t.Trigger)
		buf = append(buf, `,"expected_at":`...)
		buf = appendTime(buf, t.ExpectedAt)
		buf = append(buf, '}')
	}
	return append(buf, ']')
}

// AppendTextMap writes an object of strings, in the order of its keys.
func AppendTextMap(buf []byte, m map[string]string) ([]byte, error) { return appendRecord(buf, m) }

// AppendBool writes true or false.
func AppendBool(buf []byte, v bool) []byte {
	if v {
		return append(buf, "true"...)
	}
	return append(buf, "false"...)
}

// AppendString writes a JSON string.
func AppendString(buf []byte, s string) []byte { return appendText(buf, s) }
