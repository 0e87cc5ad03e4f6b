// Package gemini maps canonical messages to the JSON of Gemini's
// generateContent and back.
//
// It talks to nobody and keeps nothing: thoughts and thought signatures live
// in the messages' metadata under "gemini" and are returned verbatim.
package gemini

import "github.com/parley-hub/parley/message/value"

// Vendor is the key of Gemini's own in metadata.
const Vendor = "gemini"

// roleModel is what the interface calls the assistant.
const roleModel = "model"

func setIf(m *value.Map, key, text string) {
	if text != "" {
		m.Set(key, text)
	}
}
