package channel

import (
	"fmt"
	"time"

	"github.com/parley-hub/parley/internal/jsonbuf"
)

// AppendJSON writes the metadata in our own form: every key is present, lists
// and objects are never null, times end in Z, and the knobs are the bytes that
// were given.
func (m *Metadata) AppendJSON(buf []byte) ([]byte, error) { return m.append(buf, true) }

// AppendStored is AppendJSON without empty optional members. DecodeMetadata reads
// both.
func (m *Metadata) AppendStored(buf []byte) ([]byte, error) { return m.append(buf, false) }

// append writes the metadata. Unless all is set, empty optional members are left out.
func (m *Metadata) append(buf []byte, all bool) ([]byte, error) {
	// Refuse metadata that could not be decoded.
	if m.Manifest == nil || m.State == Unset {
		return nil, fmt.Errorf("channel: metadata of '%s' has no manifest or no state", m.ID)
	}
	b := &jsonbuf.Buffer{Bytes: buf}
	b.Open('{')
	b.Key("channel_id").String(m.ID)
	m.Manifest.write(b.Key("manifest"))
	b.Key("creator_id").String(m.Creator)
	b.Key("participants").Open('[')
	for i := range m.Participants {
		m.Participants[i].write(b)
	}
	b.Close(']')
	b.Key("state").String(m.State.String())
	writeTime(b.Key("created_at"), m.CreatedAt)
	if all || !m.ExpiresAt.IsZero() {
		writeTime(b.Key("expires_at"), m.ExpiresAt)
	}
	if all || !m.ClosedAt.IsZero() {
		writeTime(b.Key("closed_at"), m.ClosedAt)
	}
	if all || m.CloseReason != "" {
		b.Key("close_reason").String(m.CloseReason)
	}
	if all || m.Parent != "" {
		b.Key("parent_channel_id").Optional(m.Parent)
	}
	if all || len(m.Knobs) > 0 {
		b.Key("knobs").Object(m.Knobs)
	}
	if all || len(m.Labels) > 0 {
		b.Key("labels").StringMap(m.Labels)
	}
	if all || m.RequiredAcks != nil {
		writeInt(b.Key("required_acks"), m.RequiredAcks)
	}
	if all || len(m.PendingAcks) > 0 {
		b.Key("pending_acks").Strings(m.PendingAcks)
	}
	if all || len(m.RejectedBy) > 0 {
		b.Key("rejected_by").Strings(m.RejectedBy)
	}
	if m.Name != "" {
		b.Key("name").String(m.Name)
	}
	if m.MembersOf != "" {
		b.Key("members_of").String(m.MembersOf)
	}
	b.Close('}')
	return b.Result()
}

// MarshalJSON is AppendJSON for encoders that embed the metadata; they may
// reformat the knobs.
func (m *Metadata) MarshalJSON() ([]byte, error) { return m.AppendJSON(nil) }

// AppendJSON writes the manifest as AG2 does, and as ours.
func (m *Manifest) AppendJSON(buf []byte) ([]byte, error) {
	b := &jsonbuf.Buffer{Bytes: buf}
	m.write(b)
	return b.Result()
}

// MarshalJSON is AppendJSON for encoders that embed the manifest.
func (m *Manifest) MarshalJSON() ([]byte, error) { return m.AppendJSON(nil) }

func (m *Manifest) write(b *jsonbuf.Buffer) {
	b.Open('{')
	b.Key("type").String(m.Type)
	b.Key("version").Int(m.Version)
	b.Key("participants").Open('{')
	b.Key("min").Int(m.Participants.Min)
	writeInt(b.Key("max"), m.Participants.Max)
	b.Key("roles").Open('[')
	for _, role := range m.Participants.Roles {
		b.String(string(role))
	}
	b.Close(']').Close('}')
	b.Key("knobs_schema").Object(m.KnobsSchema)
	b.Key("default_view_policy").String(m.DefaultView)
	b.Key("expectations").Open('[')
	for i := range m.Expectations {
		m.Expectations[i].write(b)
	}
	b.Close(']').Close('}')
}

// AppendJSON writes the expectation.
func (x *Expectation) AppendJSON(buf []byte) ([]byte, error) {
	b := &jsonbuf.Buffer{Bytes: buf}
	x.write(b)
	return b.Result()
}

func (x *Expectation) write(b *jsonbuf.Buffer) {
	b.Open('{')
	b.Key("name").String(x.Name)
	b.Key("on_violation").String(x.OnViolation)
	b.Key("params").Object(x.Params)
	b.Key("applies_to")
	if x.AppliesTo == nil {
		b.Null()
	} else {
		b.Strings(x.AppliesTo)
	}
	b.Close('}')
}

// AppendJSON writes the participant.
func (p *Participant) AppendJSON(buf []byte) ([]byte, error) {
	b := &jsonbuf.Buffer{Bytes: buf}
	p.write(b)
	return b.Result()
}

func (p *Participant) write(b *jsonbuf.Buffer) {
	b.Open('{')
	b.Key("agent_id").String(p.Agent)
	b.Key("role").String(string(p.Role))
	b.Key("order").Int(p.Order)
	b.Key("joined_at").Time(p.JoinedAt)
	b.Close('}')
}

func writeTime(b *jsonbuf.Buffer, t time.Time) {
	if t.IsZero() {
		b.Null()
		return
	}
	b.Time(t)
}

func writeInt(b *jsonbuf.Buffer, n *int) {
	if n == nil {
		b.Null()
		return
	}
	b.Int(*n)
}
