package hub

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/hub/internal/marks"
	"github.com/parley-hub/parley/journal"
)

// Folded returns a text of everything that is folded of a channel, including what
// no method of the hub shows.
func (h *Hub) Folded(ctx context.Context, id string) (string, error) {
	return answer(ctx, h, id, func(ch *loadedChannel) (string, error) {
		if ch.meta.State.Terminal() {
			if _, err := h.folded(ctx, ch); err != nil {
				return "", err
			}
		}
		state, err := ch.adapter.Codec().Encode(ch.state)
		if err != nil {
			return "", err
		}
		var m marks.Marks
		if ch.extras != nil {
			m = ch.extras.marks
		}
		saved, err := marks.Save(m)
		if err != nil {
			return "", err
		}
		rest, err := json.Marshal(savedHead{LastID: ch.lastID, Watch: ch.watch.Watch, Replies: ch.watch.plan.replies, Marks: saved})
		return fmt.Sprintf("%s\n%s\n%+v", state, rest, ch.heads), err
	})
}

// SnapshotKey returns the key of the snapshot of a channel's fold, SnapshotVersion
// its version.
func (h *Hub) SnapshotKey(id string) journal.ValueKey {
	return savedKey(h.tenant.Channel(id))
}

func (h *Hub) SnapshotVersion(ctx context.Context, id string) (uint64, error) {
	a, err := h.Adapter(ctx, id)
	if err != nil {
		return 0, err
	}
	return savedVersion(a.Codec()), nil
}
