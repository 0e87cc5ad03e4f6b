package v1

import (
	"context"
	"errors"

	"github.com/parley-hub/parley/fault"
)

// HasEnded reports whether a channel has ended, which the type of an envelope alone
// does not prove. It waits for a hub that does not answer. If the hub refuses, or ctx
// ends, it returns false.
func (c *Client) HasEnded(ctx context.Context, channel string) bool {
	for {
		ch, err := c.Channel(ctx, channel)
		if err == nil {
			return ch.Ended()
		}
		var refusal *fault.Error
		if errors.As(err, &refusal) && !fault.Retryable(err) || !c.pause(ctx, minPause) {
			return false
		}
	}
}
