package hub

import (
	"sync"
	"sync/atomic"

	"github.com/parley-hub/parley/fault"
)

// stats count what the hub did since it was opened.
type stats struct {
	loaded      atomic.Int64 // channels folded from the journal
	foldedBytes atomic.Int64 // read for that
	lostLive    atomic.Int64 // live deliveries that a reader could not take

	mu      sync.Mutex
	refused map[fault.Code]int64
}

func (s *stats) refuse(code fault.Code) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused == nil {
		s.refused = map[fault.Code]int64{}
	}
	s.refused[code]++
}

// Stats is a snapshot of a hub's counters.
type Stats struct {
	ChannelsLoaded int64 // folded from the journal since opening
	BytesFolded    int64
	LiveLost       int64 // live deliveries that a reader could not take
	Refused        map[fault.Code]int64
	Loaded         int // channels in memory now
	Waiting        int // batches on their way now
	Opening        int // creators who wait for their channel now
}

// Stats returns the counters.
func (h *Hub) Stats() Stats {
	s := Stats{
		ChannelsLoaded: h.stats.loaded.Load(),
		BytesFolded:    h.stats.foldedBytes.Load(),
		LiveLost:       h.stats.lostLive.Load(),
		Refused:        map[fault.Code]int64{},
		Loaded:         h.channels.size(),
		Waiting:        h.delivery.waiting(),
		Opening:        h.openings.size(),
	}
	h.stats.mu.Lock()
	defer h.stats.mu.Unlock()
	for code, n := range h.stats.refused {
		s.Refused[code] = n
	}
	return s
}

// Shards is how many shards the journal has, each with positions of its own.
func (h *Hub) Shards() int { return h.journal.Shards() }

// shardOf is the shard that a channel is stored in.
func (h *Hub) shardOf(channelID string) int {
	return h.journal.Shard(h.tenant.Channel(channelID).Partition())
}
