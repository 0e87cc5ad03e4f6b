package hub

import (
	"context"
	"time"

	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// Described is an endpoint that can say what it is.
type Described interface {
	Describe() (dialect, address string)
}

// Connection is an endpoint at which an identity reads.
type Connection struct {
	Dialect string // empty: in process
	Address string
	Since   time.Time
}

// Presence is what this process knows of an identity's comings and goings.
type Presence struct {
	Online      bool
	LastSeen    time.Time // when it last came, spoke or left; zero: not since the hub was opened
	Connections []Connection
}

// Online reports whether an identity reads anywhere.
func (h *Hub) Online(agent string) bool {
	m := h.registry.byID(agent)
	return m != nil && m.link.bound()
}

// Presence tells where an identity reads.
func (h *Hub) Presence(agent string) Presence {
	m := h.registry.byID(agent)
	if m == nil {
		return Presence{}
	}
	var p Presence
	if at := m.seen.Load(); at != 0 {
		p.LastSeen = time.Unix(0, at).UTC()
	}
	m.link.mu.Lock()
	bonds := m.link.bonds
	m.link.mu.Unlock()
	for _, b := range bonds {
		c := Connection{Since: b.since.UTC()}
		if d, ok := b.endpoint.(Described); ok {
			c.Dialect, c.Address = d.Describe()
		}
		p.Connections = append(p.Connections, c)
	}
	p.Online = len(bonds) > 0
	return p
}

// OpenChannelsOf counts the channels of an identity that have not ended, up to
// most.
func (h *Hub) OpenChannelsOf(ctx context.Context, agent string, most int) (n int, err error) {
	for _, err := range journal.IndexAll(ctx, h.journal, journal.ScanOptions{Prefix: schema.Key(schema.IndexTurn, agent, "")}) {
		if err != nil {
			return 0, unavailable(err)
		}
		if n++; n >= most {
			break
		}
	}
	return n, nil
}
