package hub

import (
	"context"
	"maps"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/feed"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// Health is a snapshot of how a hub is doing.
type Health struct {
	ActiveChannels       int64  `json:"active_channels"` // not ended, and governed by an adapter that is loaded
	RegisteredAgents     int    `json:"registered_agents"`
	PendingInboxTotal    int64  `json:"pending_inbox_total"`
	MaxPendingInboxDepth *int64 `json:"max_pending_inbox_depth"` // null: nothing was delivered yet
	RegisteredListeners  int    `json:"registered_listeners"`    // the audit is one
	AdaptersLoaded       int    `json:"adapters_loaded"`
	AuditLogBytes        int64  `json:"audit_log_bytes"`     // written by this process
	TelemetryLogBytes    int64  `json:"telemetry_log_bytes"` // the same of Options.SpanLog
}

// Health returns a snapshot.
func (h *Hub) Health(ctx context.Context) (Health, error) {
	s := Health{
		RegisteredAgents:    h.registry.Size(),
		RegisteredListeners: h.hooks.count(),
		AuditLogBytes:       h.ledger.AuditBytes(),
	}
	if h.opts.SpanLog != nil {
		s.TelemetryLogBytes = h.opts.SpanLog.Written()
	}
	for _, m := range h.registry.All() {
		pending, used := m.Places.Seen()
		if !used {
			continue
		}
		s.PendingInboxTotal += pending
		if s.MaxPendingInboxDepth == nil || pending > *s.MaxPendingInboxDepth {
			s.MaxPendingInboxDepth = &pending
		}
	}
	open, err := h.openChannels(ctx)
	if err != nil {
		return Health{}, err
	}
	h.adaptersMu.RLock()
	defer h.adaptersMu.RUnlock()
	s.AdaptersLoaded = len(h.adapters)
	for k := range h.adapters {
		s.ActiveChannels += open[k]
	}
	return s, nil
}

// census counts the channels that have not ended. Those that existed when the hub opened
// are counted at first use: opening reads none of them.
type census struct {
	mu      sync.Mutex
	known   bool
	before  map[channel.Key]int64 // when the hub opened
	since   map[channel.Key]int64 // opened less ended in this process
	changes int64
}

func (c *census) note(kind string, k channel.Key) {
	by := int64(1)
	switch kind {
	case "created":
	case "closed", "expired":
		by = -1
	default:
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.since == nil {
		c.since = map[channel.Key]int64{}
	}
	c.since[k] += by
	c.changes++
}

func (c *census) read() (open map[channel.Key]int64, changes int64, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	open = map[channel.Key]int64{}
	for _, counts := range []map[channel.Key]int64{c.before, c.since} {
		for k, n := range counts {
			open[k] += n
		}
	}
	return open, c.changes, c.known
}

// settle keeps a count, if nothing changed meanwhile.
func (c *census) settle(found map[channel.Key]int64, changes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known || c.changes != changes {
		return
	}
	for k, n := range c.since {
		found[k] -= n
	}
	c.before, c.known = found, true
}

// openChannels counts the channels that have not ended, by their manifest.
func (h *Hub) openChannels(ctx context.Context) (map[channel.Key]int64, error) {
	open, changes, known := h.census.read()
	if known {
		return open, nil
	}
	found := map[channel.Key]int64{}
	for entry, err := range journal.IndexAll(ctx, h.journal, journal.ScanOptions{Prefix: []byte(schema.IndexOwned)}) {
		if err != nil {
			return nil, unavailable(err)
		}
		found[schema.DecodeManifestKey(entry.Value)]++
	}
	h.census.settle(maps.Clone(found), changes)
	return found, nil
}

// stats count what the hub did since it was opened.
type stats struct {
	loaded      atomic.Int64 // channels folded from the journal
	foldedBytes atomic.Int64 // read for that
	lostLive    atomic.Int64 // live deliveries that a reader could not take
	admitted    atomic.Int64 // envelopes of histories
	delivered   atomic.Int64 // envelopes handed to endpoints
	turnsFailed atomic.Int64 // that agents reported

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
	Admitted       int64 // envelopes of histories
	Delivered      int64 // envelopes handed to endpoints
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
		Admitted:       h.stats.admitted.Load(),
		Delivered:      h.stats.delivered.Load(),
		Refused:        map[fault.Code]int64{},
		Loaded:         h.channels.size(),
		Waiting:        h.delivery.waiting(),
		Opening:        h.openings.size(),
	}
	h.stats.mu.Lock()
	defer h.stats.mu.Unlock()
	maps.Copy(s.Refused, h.stats.refused)
	return s
}

// Shards is how many shards the journal has, each with positions of its own.
func (h *Hub) Shards() int { return h.journal.Shards() }

// shardOf is the shard that a channel is stored in.
func (h *Hub) shardOf(channelID string) int {
	return h.journal.Shard(h.tenant.Channel(channelID).Partition())
}

// Clock returns the hub's time, which decides the times that it stores and when
// something is due.
func (h *Hub) Clock() time.Time { return h.now().UTC() }

// Opened is when the hub was opened.
func (h *Hub) Opened() time.Time { return h.opened.Time() }

// Epoch names the incarnation of the store. It changes when a backup is restored or
// data was lost; older positions are then gone.
func (h *Hub) Epoch(ctx context.Context) (string, error) {
	at, err := feed.End(ctx, h.journal)
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
