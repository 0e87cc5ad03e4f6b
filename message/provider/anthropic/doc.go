// Package anthropic maps canonical messages to the JSON of Anthropic's messages
// interface and back.
//
// It talks to nobody and keeps nothing: thinking blocks with their signatures,
// citations and cache hints live in the messages' metadata under "anthropic"
// and are returned verbatim.
package anthropic

import "github.com/parley-hub/parley/message/value"

// Vendor is the key of Anthropic's own in metadata.
const Vendor = "anthropic"

func setIf(m *value.Map, key, text string) {
	if text != "" {
		m.Set(key, text)
	}
}
