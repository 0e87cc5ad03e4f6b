package hub

import (
	"time"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
)

// watch is what expectations measure by, folded beside the adapter's state. It
// is a small value: one stands beside every folded channel.
type watch struct {
	content   time.Time // when somebody last said something
	triggered time.Time // when what the expected speaker answers was said
}

// after folds one more envelope.
func (w watch) after(a channel.Adapter, m *channel.Metadata, s channel.State, e *envelope.Envelope) watch {
	if envelope.IsContent(e.Type) {
		w.content = e.CreatedAt
	}
	if turn, ok := a.Expected(m, s); ok && turn.Trigger == e.ID {
		w.triggered = e.CreatedAt
	}
	return w
}

// reschedule sets the channel's next look at its expectations, if the batch
// brings it nearer. A later one is left to the look that comes too early.
func (w *writing) reschedule() error { return nil }

// unhide shows a participant the channel again once it has spoken.
func (w *writing) unhide(*envelope.Envelope) error { return nil }

// Violation is an expectation that was not met.
type Violation struct {
	Expectation channel.Expectation
	Violators   []string // empty: the channel as a whole
	Detail      []byte   // a JSON object
}

// Evaluator judges one expectation.
type Evaluator interface{}

// Handler acts on a violation.
type Handler interface{}
