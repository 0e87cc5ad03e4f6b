package hub

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/parley-hub/parley/channel"
)

// Clock is the time as the hub has it: what it stores and what is due go by it.
func (h *Hub) Clock() time.Time { return h.now().UTC() }

// Opened is when the hub was opened.
func (h *Hub) Opened() time.Time { return h.opened.Time() }

// Epoch names the life of the store: it changes when a backup is restored or
// something was lost, and positions of before are then gone.
func (h *Hub) Epoch(ctx context.Context) (string, error) {
	at, err := h.storePosition(ctx)
	if err != nil {
		return "", err
	}
	epochs := make([]string, len(at))
	for shard, place := range at {
		epochs[shard] = strconv.FormatUint(place.Epoch, 10)
	}
	return strings.Join(epochs, "-"), nil
}

// AdapterFor is the adapter that governs a channel; nil if it is not loaded.
func (h *Hub) AdapterFor(m *channel.Metadata) channel.Adapter { return h.adapterOf(m.Manifest.Key()) }
