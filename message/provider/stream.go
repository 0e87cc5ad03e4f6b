package provider

import (
	"errors"
	"fmt"

	"github.com/parley-hub/parley/message"
)

// MaxReply is the default bound of a stream.
const MaxReply = 64 << 20

// ErrReplySize says that a streamed reply is larger than allowed.
var ErrReplySize = errors.New("provider: the streamed reply is too large")

// Stream turns a provider's chunks into deltas, and collects the reply that
// would have come in one piece. It is for one goroutine.
type Stream interface {
	// Add takes one chunk and returns its deltas.
	Add(chunk []byte) ([]message.Envelope, error)
	// Reply returns the reply so far; Finish is empty until the model stopped.
	Reply() Reply
}

// Budget bounds a stream.
type Budget struct{ used, limit int }

// NewBudget returns the bound a reply is read with.
func NewBudget(o ReadOptions) Budget {
	if o.MaxBytes > 0 {
		return Budget{limit: o.MaxBytes}
	}
	return Budget{limit: MaxReply}
}

// Take counts a chunk.
func (b *Budget) Take(n int) error {
	b.used += n
	if b.used > b.limit {
		return fmt.Errorf("%w: over %d bytes", ErrReplySize, b.limit)
	}
	return nil
}
