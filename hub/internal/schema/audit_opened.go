package schema

import (
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/internal/jsonbuf"
)

// AuditBy names who acted in an audit record.
type AuditBy struct {
	Agents                []string
	Connection, Key, Role string
}

// Map returns the value as a member for EncodeAudit.
func (by *AuditBy) Map() map[string]any {
	m := map[string]any{}
	if len(by.Agents) > 0 {
		m["agents"] = by.Agents
	}
	for name, text := range map[string]string{"connection": by.Connection, "key": by.Key, "role": by.Role} {
		if text != "" {
			m[name] = text
		}
	}
	return m
}

// EncodeOpened writes the audit record of a channel's creation, with the same bytes
// as EncodeAudit; it is faster, because every opening writes one. By is nil if
// nobody is named.
func EncodeOpened(at string, m *channel.Metadata, by *AuditBy) ([]byte, error) {
	b := &jsonbuf.Buffer{Bytes: make([]byte, 0, 384+36*len(m.Participants)+len(m.Manifest.Type))}
	b.Open('{').Key("at").String(at)
	if by != nil {
		b.Key("by").Open('{')
		if len(by.Agents) > 0 {
			if err := auditField(b, "agents", by.Agents); err != nil {
				return nil, err
			}
		}
		for _, f := range [...]AuditField{{Name: "connection", Text: by.Connection}, {Name: "key", Text: by.Key}, {Name: "role", Text: by.Role}} {
			if f.Text == "" {
				continue
			}
			if err := auditField(b, f.Name, f.Text); err != nil {
				return nil, err
			}
		}
		b.Close('}')
	}
	b.Key("channel_id").String(m.ID).Key("creator_id").String(m.Creator).Key("kind").String(AuditOpened)
	b.Key("manifest_type").String(m.Manifest.Type).Key("manifest_version").Int(m.Manifest.Version)
	b.Key("participants").Open('[')
	for i := range m.Participants {
		b.String(m.Participants[i].Agent)
	}
	return b.Close(']').Close('}').Result()
}

// AuditOpened is the kind of the record of a channel's creation.
const AuditOpened = "channel_created"
