package schema

import (
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

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
		if s, ok := v.(string); ok {
			size += len(s)
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
