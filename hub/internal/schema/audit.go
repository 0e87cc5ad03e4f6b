package schema

import (
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/internal/jsonbuf"
)

// EncodeAudit writes an audit record of some fields, with its time and kind: a
// JSON object with sorted keys. Some dialects write several for each message,
// so that texts and numbers are written without reflection.
func EncodeAudit(at, kind string, fields map[string]any) ([]byte, error) {
	names := make([]string, 0, 32)
	size := len(at) + len(kind) + 32
	for name, v := range fields {
		if name == "at" || name == "kind" {
			continue
		}
		names = append(names, name)
		size += len(name) + 16
		switch v := v.(type) {
		case string:
			size += len(v)
		case []string:
			for _, s := range v {
				size += len(s) + 3
			}
		case map[string]any:
			size += 64 * len(v)
		}
	}
	names = append(names, "at", "kind")
	slices.Sort(names)
	b := &jsonbuf.Buffer{Bytes: make([]byte, 0, size)}
	b.Open('{')
	for _, name := range names {
		v := fields[name]
		switch name {
		case "at":
			v = at
		case "kind":
			v = kind
		}
		if err := auditField(b, name, v); err != nil {
			return nil, err
		}
	}
	return b.Close('}').Result()
}

// AuditField is a member of an audit record: a text, or a number.
type AuditField struct {
	Name     string
	Text     string
	IsNumber bool
	Number   int64
}

// EncodeSortedAudit is EncodeAudit for members in the order of their names, of which
// none is at or kind.
func EncodeSortedAudit(at, kind string, fields []AuditField) ([]byte, error) {
	size := len(at) + len(kind) + 32
	for i := range fields {
		size += len(fields[i].Name) + len(fields[i].Text) + 16
	}
	b := &jsonbuf.Buffer{Bytes: make([]byte, 0, size)}
	b.Open('{')
	own := [...]AuditField{{Name: "at", Text: at}, {Name: "kind", Text: kind}}
	rest := own[:]
	for i := range fields {
		for len(rest) > 0 && rest[0].Name < fields[i].Name {
			b.Key(rest[0].Name).String(rest[0].Text)
			rest = rest[1:]
		}
		if f := &fields[i]; f.IsNumber {
			b.Key(f.Name).Int(int(f.Number))
		} else if err := auditField(b, f.Name, f.Text); err != nil {
			return nil, err
		}
	}
	for i := range rest {
		b.Key(rest[i].Name).String(rest[i].Text)
	}
	return b.Close('}').Result()
}

// AuditBy is who acted, as audit records tell it.
type AuditBy struct {
	Agents                []string
	Connection, Key, Role string
}

// Map is the same as a member of EncodeAudit.
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

// EncodeOpened writes the audit record of a channel's creation, as EncodeAudit would:
// every opening writes one. By is nil if nobody is named.
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

func auditField(b *jsonbuf.Buffer, name string, v any) error {
	switch v := v.(type) {
	case string:
		if utf8.ValidString(v) {
			b.Key(name).String(v)
			return nil
		}
	case int:
		b.Key(name).Int(v)
		return nil
	case []string:
		if !slices.ContainsFunc(v, func(s string) bool { return !utf8.ValidString(s) }) {
			b.Key(name).Strings(v)
			return nil
		}
	case map[string]any:
		members := slices.Sorted(maps.Keys(v))
		if slices.ContainsFunc(members, func(s string) bool { return !utf8.ValidString(s) }) {
			break
		}
		b.Key(name).Open('{')
		for _, member := range members {
			if err := auditField(b, member, v[member]); err != nil {
				return err
			}
		}
		b.Close('}')
		return nil
	}
	text, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true), jsontext.PreserveRawStrings(true))
	if err != nil {
		return err
	}
	b.Key(name).Checked(text)
	return nil
}

// ShortAudit writes an audit record without its long fields, for the index that
// queries read. The log keeps all of them.
func ShortAudit(at, kind string, fields map[string]any) ([]byte, error) {
	short := map[string]any{"truncated": true}
	for k, v := range fields {
		b := &jsonbuf.Buffer{}
		if err := auditField(b, k, v); err != nil {
			return nil, err
		}
		if len(b.Bytes) <= 1<<10 {
			short[k] = v
		}
	}
	return EncodeAudit(at, kind, short)
}
