package hub

import (
	"context"
	"errors"
)

// errNothing ends a batch that turns out to have nothing to write.
var errNothing = errors.New("nothing to write")

// idle reports whether a batch has nothing to write and leaves the next check of
// the expectations where it is.
func (b *batch) idle() bool {
	return len(b.history)+len(b.metas)+len(b.side)+len(b.sides)+len(b.audits)+len(b.tasks) == 0 && b.nextCheck() == b.watch.NextCheck
}

// writeBatch writes one batch to a channel and returns it while it is pending, or
// nil if there was nothing to write. It calls put again if the fold that the batch
// was computed from is gone.
func (h *Hub) writeBatch(ctx context.Context, channelID string, put func(b *batch) error) (*Pending, error) {
	if err := h.delivery.await(ctx); err != nil {
		return nil, err
	}
	for {
		ch, err := h.lock(ctx, channelID)
		if err != nil {
			return nil, err
		}
		b := h.newBatch(ch)
		var p *Pending
		err = h.guarded(func() error {
			if err := put(b); err != nil {
				return err
			}
			p, err = b.order(ctx)
			return err
		})
		if retryFold(err) {
			h.abandon(ch)
			continue
		}
		ch.mu.Unlock()
		if errors.Is(err, errNothing) {
			return nil, nil
		}
		return p, err
	}
}
