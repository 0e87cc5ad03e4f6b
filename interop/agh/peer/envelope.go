package peer

import (
	"bytes"
	"encoding/json"
	"maps"
)

// Envelope is a message as JSON has it.
type Envelope map[string]any

// Text is a member that is a string; empty: it is absent, null or another type.
func (e Envelope) Text(name string) string {
	s, _ := e[name].(string)
	return s
}

// Body is a member of the body that is a string.
func (e Envelope) Body(name string) string {
	body, _ := e["body"].(map[string]any)
	s, _ := body[name].(string)
	return s
}

// With is the envelope with members changed; nil removes one.
func (e Envelope) With(members Envelope) Envelope {
	next := maps.Clone(e)
	for name, value := range members {
		if value == nil {
			delete(next, name)
		} else {
			next[name] = value
		}
	}
	return next
}

// Canonical is the envelope with sorted members and as few escapes as RFC 8785
// has, for the texts and whole numbers that these peers send.
func (e Envelope) Canonical() []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(e); err != nil {
		panic(err) // it is made of texts, numbers, lists and objects
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
