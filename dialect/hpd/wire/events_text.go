package wire

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/view/branch"
)

// Events of this file: streamed text and reasoning.
type (
	// TextMessageStart opens a message's text.
	TextMessageStart struct {
		MessageID   string            `json:"messageId" need:"true"`
		Role        string            `json:"role"`
		Source      MessageSource     `json:"source,omitzero"`
		Visibility  MessageVisibility `json:"visibility,omitzero"`
		Persistence *string           `json:"persistence,omitzero"`
		Extra
	}

	// TextDelta is the next piece of a message's text.
	TextDelta struct {
		Text      string `json:"text" need:"true"`
		MessageID string `json:"messageId" need:"true"`
		Extra
	}

	// TextMessageEnd closes a message's text.
	TextMessageEnd struct {
		MessageID string `json:"messageId" need:"true"`
		Extra
	}

	// ReasoningMessageStart opens a message's reasoning.
	ReasoningMessageStart struct {
		MessageID   string            `json:"messageId" need:"true"`
		Role        string            `json:"role"`
		Source      MessageSource     `json:"source,omitzero"`
		Visibility  MessageVisibility `json:"visibility,omitzero"`
		Persistence *string           `json:"persistence,omitzero"`
		Extra
	}

	// ReasoningDelta is the next piece of a message's reasoning.
	ReasoningDelta struct {
		Text          string  `json:"text" need:"true"`
		MessageID     string  `json:"messageId" need:"true"`
		ProtectedData *string `json:"protectedData,omitzero"`
		Extra
	}

	// ReasoningMessageEnd closes a message's reasoning.
	ReasoningMessageEnd struct {
		MessageID string `json:"messageId" need:"true"`
		Extra
	}
)

// EventType returns the name on the wire.
func (TextMessageStart) EventType() string { return branch.TextMessageStart }

// EventType returns the name on the wire.
func (TextDelta) EventType() string { return branch.TextDelta }

// EventType returns the name on the wire.
func (TextMessageEnd) EventType() string { return branch.TextMessageEnd }

// EventType returns the name on the wire.
func (ReasoningMessageStart) EventType() string { return branch.ReasoningMessageStart }

// EventType returns the name on the wire.
func (ReasoningDelta) EventType() string { return branch.ReasoningDelta }

// EventType returns the name on the wire.
func (ReasoningMessageEnd) EventType() string { return branch.ReasoningMessageEnd }

// quick writes the most frequent event without reflection, with the same result as
// json.Marshal. It returns nil if json.Marshal is needed.
func (d TextDelta) quick() []byte {
	if len(d.Members) > 0 {
		return nil
	}
	data := make([]byte, 0, len(d.Text)+len(d.MessageID)+32)
	data, err := jsontext.AppendQuote(append(data, `{"text":`...), d.Text)
	if err != nil {
		return nil
	}
	if data, err = jsontext.AppendQuote(append(data, `,"messageId":`...), d.MessageID); err != nil {
		return nil
	}
	return append(data, '}')
}
