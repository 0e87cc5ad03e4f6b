// Package samples carries high-volume measurements inside one process: audio
// playout, queue depths, timings. A sample has a type of its own, a lane for
// that type, and bounded buffers. It is not an event of a conversation: it is
// in no stream and no history unless an application makes an event of it, which
// this package cannot do.
package samples

import (
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/parley-hub/parley/fault"
)

// Sample is a value that can be emitted: a small struct without pointers is
// best. Its kind names the lane to people.
type Sample interface{ SampleKind() string }

// AgentSample is a sample that an agent owns, as opposed to one of a library.
// Embed Owned to make one.
type AgentSample interface {
	Sample
	agentSample()
}

// Owned marks the samples of an agent.
type Owned struct{}

func (Owned) agentSample() {}

var _ interface{ agentSample() } = Owned{}

// Stamped is a sample as a reader gets it.
type Stamped[T Sample] struct {
	// Sequence counts a sequenced route's samples from 1; otherwise it is 0.
	Sequence uint64
	// Time is the producer's own, in nanoseconds; 0 is none.
	Time  int64
	Value T
}

// Hub has a route for each type of sample. The zero value is ready; safe for
// concurrent use.
type Hub struct {
	mu     sync.Mutex
	routes map[reflect.Type]lane
}

// lane is a route of any type.
type lane interface {
	kind() string
	stats() Stats
}

// Stats count what happened on a route, or on all routes of a hub.
type Stats struct {
	Emitted     uint64 // samples that were given to the route
	Delivered   uint64 // samples put into a reader's buffer, once for each reader
	Dropped     uint64 // samples that a full buffer lost, once for each reader
	Subscribers int
}

// RouteOptions are set by the first caller that asks for a route.
type RouteOptions struct {
	// Sequenced numbers the samples 1, 2, 3, …
	Sequenced bool
}

// RouteOf returns the lane of a type, and makes it on first use. Asking for
// other options than the first caller's is an error.
func RouteOf[T Sample](h *Hub, options RouteOptions) (*Route[T], error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := reflect.TypeFor[T]()
	if found, ok := h.routes[key].(*Route[T]); ok {
		if found.options != options {
			return nil, fault.New(fault.Conflict, "the route of %s has options %+v, not %+v; ask for those", key, found.options, options)
		}
		return found, nil
	}
	made := newRoute[T](options)
	if h.routes == nil {
		h.routes = map[reflect.Type]lane{}
	}
	h.routes[key] = made
	return made, nil
}

// existing returns the lane of a type with whatever options it has, or makes
// one with the defaults.
func existing[T Sample](h *Hub) *Route[T] {
	h.mu.Lock()
	found, ok := h.routes[reflect.TypeFor[T]()].(*Route[T])
	h.mu.Unlock()
	if ok {
		return found
	}
	made, err := RouteOf[T](h, RouteOptions{})
	if err != nil {
		return existing[T](h) // somebody made it meanwhile
	}
	return made
}

// Stats returns the stats of all routes together.
func (h *Hub) Stats() Stats {
	var total Stats
	for _, s := range h.Routes() {
		total.Emitted += s.Emitted
		total.Delivered += s.Delivered
		total.Dropped += s.Dropped
		total.Subscribers += s.Subscribers
	}
	return total
}

// Routes returns the stats of each route by the kind of its samples.
func (h *Hub) Routes() map[string]Stats {
	h.mu.Lock()
	lanes := slices.Collect(maps.Values(h.routes))
	h.mu.Unlock()
	out := make(map[string]Stats, len(lanes))
	for _, l := range lanes {
		out[l.kind()] = l.stats()
	}
	return out
}
