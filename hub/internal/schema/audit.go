package schema

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// EncodeAudit writes an audit record: a JSON object with sorted keys.
func EncodeAudit(line map[string]any) ([]byte, error) {
	return json.Marshal(line, json.Deterministic(true), jsontext.AllowInvalidUTF8(true), jsontext.PreserveRawStrings(true))
}

// ShortAudit writes an audit record without its long fields, for the index that
// queries read. The log keeps all of them.
func ShortAudit(line map[string]any) ([]byte, error) {
	short := map[string]any{"truncated": true}
	for k, v := range line {
		text, err := EncodeAudit(map[string]any{k: v})
		if err != nil {
			return nil, err
		}
		if len(text) <= 1<<10 {
			short[k] = v
		}
	}
	return EncodeAudit(short)
}
