package hub

import (
	"context"
	"errors"
)

// errNothing ends a batch that turns out to have nothing to write.
var errNothing = errors.New("nothing to write")

// idle reports whether a batch has nothing to write, apart from moving the next
// look to where it is.
func (w *writing) idle() bool {
	return len(w.history)+len(w.metas)+len(w.side)+len(w.audits)+len(w.tasks) == 0 && w.nextLook() == w.watch.look
}

// batch puts one batch into a channel, and returns it on its way; nil if there
// was nothing to write. What is put together is put together again if the fold
// that it was computed from is gone.
func (h *Hub) batch(ctx context.Context, channelID string, put func(w *writing) error) (*Pending, error) {
	if err := h.delivery.await(ctx); err != nil {
		return nil, err
	}
	for {
		ch, err := h.lock(ctx, channelID)
		if err != nil {
			return nil, err
		}
		w := h.write(ch)
		var p *Pending
		err = h.guarded(func() error {
			if err := put(w); err != nil {
				return err
			}
			p, err = w.order(ctx)
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
