package siegebench

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/parley-hub/parley/internal/bench"
)

// bounds are the settings of the hub under siege: small, so that hostile
// clients reach them.
type bounds struct {
	connections, peer, sockets     int
	answers, view, event, frame    int
	queue, profile, record, header int
	agents, inFlight, cache        int
	recent, lists, reads, commits  int
	patience                       time.Duration // with what is not sent or not read
}

var settings = bounds{
	connections: 768, peer: 384, sockets: 192,
	answers: 32 << 20, view: 16 << 20, event: 1 << 20, frame: 1 << 20,
	queue: 1 << 20, profile: 64 << 10, record: 16 << 10, header: 64 << 10,
	agents: 1000, inFlight: 256, cache: 4 << 20, recent: 4 << 20, commits: 2 << 20, lists: 2 << 20, reads: 32 << 20, patience: 500 * time.Millisecond,
}

// env returns the settings as a hub takes them. Fewer clients make fewer lists.
func (b bounds) env(scale int) []string {
	return []string{
		fmt.Sprint("PARLEY_HTTP_MAX_CONNECTIONS=", b.connections), fmt.Sprint("PARLEY_LIMITS_CONNECTIONS_PEER=", b.peer),
		fmt.Sprint("PARLEY_AG2_LIMITS_CONNECTIONS=", b.sockets), fmt.Sprint("PARLEY_LIMITS_ANSWERS=", b.answers),
		fmt.Sprint("PARLEY_LIMITS_VIEW=", b.view), fmt.Sprint("PARLEY_LIMITS_EVENT=", b.event),
		fmt.Sprint("PARLEY_AG2_LIMITS_FRAME_BYTES=", b.frame), fmt.Sprint("PARLEY_AG2_LIMITS_QUEUE_BYTES=", b.queue),
		fmt.Sprint("PARLEY_LIMITS_PROFILE=", b.profile), fmt.Sprint("PARLEY_LIMITS_RECORD=", b.record),
		fmt.Sprint("PARLEY_LIMITS_AGENTS=", b.agents), fmt.Sprint("PARLEY_LIMITS_IN_FLIGHT=", b.inFlight),
		fmt.Sprint("PARLEY_LIMITS_PROFILE_CACHE=", b.cache), fmt.Sprint("PARLEY_HTTP_MAX_HEADER=", b.header),
		fmt.Sprint("PARLEY_LIMITS_RECENT_EVENTS=", b.recent), fmt.Sprint("PARLEY_DATA_RECENT_COMMITS=", b.commits), fmt.Sprint("PARLEY_LIMITS_READS=", b.reads),
		fmt.Sprint("PARLEY_LIMITS_LISTS=", b.lists/scale), fmt.Sprint("PARLEY_HTTP_HEADER_TIMEOUT=", b.patience), fmt.Sprint("PARLEY_HTTP_BODY_TIMEOUT=", b.patience),
		fmt.Sprint("PARLEY_LIMITS_FOLLOWER_WRITE=", b.patience), fmt.Sprint("PARLEY_AG2_LIMITS_WRITE=", b.patience),
	}
}

// bound returns the largest heap that the settings allow, with its formula. It
// is doubled because the collector runs when the heap has grown by as much as
// is in use.
func (b bounds) bound(idle float64) (bytes float64, formula string) {
	const mib = 1 << 20
	terms := []struct {
		name  string
		bytes int
	}{
		{"idle hub", int(idle)},
		{"limits.answers", b.answers},
		{"4 × limits.view", 4 * b.view},
		{"limits.profile_cache", b.cache},
		{"limits.recent_events", b.recent},
		{"data.recent_commits", b.commits},
		{fmt.Sprintf("%d agents × (limits.profile + limits.record)", b.agents), b.agents * (b.profile + b.record)},
		{fmt.Sprintf("%d in flight × limits.event", b.inFlight), b.inFlight * b.event},
		{fmt.Sprintf("%d sockets × (frame_bytes + 4 × queue_bytes)", b.sockets), b.sockets * (b.frame + 4*b.queue)},
		{fmt.Sprintf("%d connections × (max_header + 64 KiB)", b.connections), b.connections * (b.header + 64<<10)},
	}
	var parts []string
	for _, term := range terms {
		bytes += float64(term.bytes)
		parts = append(parts, fmt.Sprintf("%s (%.0f)", term.name, float64(term.bytes)/mib))
	}
	bytes *= 2
	return bytes, fmt.Sprintf("2 × [%s] = %.0f MiB", strings.Join(parts, " + "), bytes/mib)
}

// heap returns a hub's heap, from its metrics.
func heap(ctx context.Context, hub *bench.Process) (float64, error) {
	const name = "go_memstats_heap_alloc_bytes"
	m, err := hub.Metrics(ctx, name)
	return m[name], err
}

// watch returns the largest heap until the context ends.
func watch(ctx context.Context, hub *bench.Process) (peak float64) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if now, err := heap(ctx, hub); err == nil {
			peak = max(peak, now)
		}
		select {
		case <-ctx.Done():
			return peak
		case <-tick.C:
		}
	}
}
