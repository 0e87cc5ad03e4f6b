package message_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/value"
)

// The seven mandatory fields of an output, in order.
func envelope(typ, role, content, payload, metadata string) string {
	return `{"schema":"agents-api.message","version":1,"type":"` + typ + `","role":"` + role + `","content":` + content +
		`,"payload":` + payload + `,"metadata":` + metadata + `}`
}

// normalized returns the JSON that a JSON text normalizes to, or the error's text.
func normalized(text string) string {
	e, err := message.NormalizeJSON([]byte(text))
	return written(e, err)
}

// provided returns the projection of a JSON text.
func provided(text string) string {
	v, err := value.Decode([]byte(text))
	if err != nil {
		return err.Error()
	}
	p, err := message.ToProvider(v)
	return written(p, err)
}

// coalesced returns a list of messages merged, one JSON text each.
func coalesced(text string) []string {
	v, err := value.Decode([]byte(text))
	if err != nil {
		return []string{err.Error()}
	}
	list, err := message.Coalesce(v)
	if err != nil {
		return []string{err.Error()}
	}
	out := []string{}
	for _, e := range list {
		out = append(out, written(e, nil))
	}
	return out
}

func written(v json.Marshaler, err error) string {
	if err != nil {
		return err.Error()
	}
	text, err := v.MarshalJSON()
	if err != nil {
		return "unwritable: " + err.Error()
	}
	return string(text)
}

func decoded(t testing.TB, text string) any {
	t.Helper()
	v, err := value.Decode([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func object(t testing.TB, text string) *value.Map {
	t.Helper()
	m, ok := decoded(t, text).(*value.Map)
	if !ok {
		t.Fatalf("%s is no object", text)
	}
	return m
}

// holds checks one input of a statement's clause against its exact output.
func holds(t *testing.T, statement, input, want string) {
	t.Helper()
	spec.Check(t, statement, func(t *spec.T) { t.Equal(normalized(input), want) })
}

const (
	refusedVersion      = "invalid_ai_message_envelope: unsupported version"
	refusedType         = "invalid_ai_message_envelope: unsupported type"
	refusedRole         = "invalid_ai_message_envelope: role must be a non-empty string"
	refusedContent      = "invalid_ai_message_envelope: content must be a string or array"
	refusedSerializable = "invalid_ai_message_envelope: envelope must be JSON serializable"
	refusedContainer    = "invalid_ai_message_envelope: message must be an array"
)

// nested is n arrays in each other.
func nested(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
