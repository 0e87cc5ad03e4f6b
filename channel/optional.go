package channel

import "github.com/parley-hub/parley/envelope"

// What some adapters offer beyond Adapter. The hub and views ask for these by
// type assertion.

// Supervised is an adapter that lets some agents speak out of turn: what a
// supervisor says is no turn and moves nothing.
type Supervised interface {
	Supervisor(m *Metadata, s State, agent string) bool
}

// Renderer shows an envelope as text to people and models. It answers false
// for what has nothing to show, which differs from the empty text.
type Renderer interface {
	Render(e *envelope.Envelope) (string, bool)
}
