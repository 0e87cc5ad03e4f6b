package agent

// Delta is the payload of envelope.TypeDelta: a part of the text that an agent is
// about to say in a channel. It is shown live and never stored.
type Delta struct {
	// Trigger is the envelope that the text answers.
	Trigger string `json:"causation_id,omitzero"`
	// At is how many bytes of the text came before.
	At   int    `json:"at"`
	Text string `json:"text,omitzero"`
	// Reset takes back what came before: the text begins again.
	Reset bool `json:"reset,omitzero"`
}
