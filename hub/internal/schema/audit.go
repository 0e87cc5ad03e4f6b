package schema

import (
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/internal/jsonbuf"
)

// EncodeAudit writes an audit record of some fields, with its time and kind: a JSON
// object with sorted keys. It writes texts and numbers without reflection, because
// some dialects write several records for each message.
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

// EncodeSortedAudit does the same as EncodeAudit for members that are sorted by
// name; none of them may be named at or kind.
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
// queries read. The log keeps all fields.
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
