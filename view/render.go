package view

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/envelope"
)

// TextOnly renders texts and nothing else.
type TextOnly struct{}

// Render returns the text of a text envelope. A missing text is empty; a text
// that is not a string is not shown.
func (TextOnly) Render(e *envelope.Envelope) (string, bool) {
	if e.Type != envelope.TypeText {
		return "", false
	}
	var data struct {
		Text jsontext.Value `json:"text"`
	}
	// Payloads are opaque to the hub; one of another shape has no text.
	if err := json.Unmarshal(e.Data, &data, jsontext.AllowDuplicateNames(true)); err != nil {
		return "", false
	}
	if data.Text == nil {
		return "", true
	}
	text, err := jsontext.AppendUnquote(nil, data.Text)
	if data.Text.Kind() != '"' || err != nil {
		return "", false
	}
	return string(text), true
}
