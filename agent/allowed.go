package agent

import (
	"context"
	"time"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/loop"
)

// How often SendWhenAllowed checks.
const (
	firstAsk = 50 * time.Millisecond
	slowAsk  = 2 * time.Second
)

// SendWhenAllowed waits until the channel's adapter would accept the envelope and
// then posts it. It keeps waiting when another sender is faster. It ends with any
// other refusal, or when ctx ends.
func SendWhenAllowed(ctx context.Context, link Link, e *envelope.Envelope) (string, error) {
	pause := firstAsk
	for {
		ok, err := link.CanSend(ctx, e.Channel, e.Type)
		if err != nil {
			return "", err
		}
		if ok {
			id, err := link.Post(ctx, e)
			if err == nil || fault.ReasonOf(err) != fault.OutOfTurn {
				return id, err
			}
		}
		if err := loop.Pause(ctx, pause); err != nil {
			return "", err
		}
		pause = min(2*pause, slowAsk)
	}
}
