package wire

import "strings"

// Preview is what an envelope says in one text, trimmed and not cut: what is
// said, what a capability is for, what a receipt or trace tells. It needs
// Content.
func (e *Envelope) Preview() string {
	var text string
	switch c := e.Content.(type) {
	case *GreetBody:
		text = c.Card.Summarize(c.Summary)
	case *WhoisBody:
		if !c.Response {
			text = c.Query
		}
	case *SayBody:
		text = c.Text
	case *CapabilityBody:
		text = c.Capability.Summary
	case *ReceiptBody:
		text = c.Detail
	case *TraceBody:
		text = c.Message
	}
	return strings.TrimSpace(text)
}
