package ag2

import (
	"sync/atomic"

	"github.com/parley-hub/parley/internal/wsconn"
)

// counters count events of the server, besides those of its transport.
type counters struct {
	malformed  atomic.Int64
	deliveries atomic.Int64
	oversized  atomic.Int64
	longLogs   atomic.Int64
	expelled   atomic.Int64
}

// Stats is a snapshot of a server's counters.
type Stats struct {
	wsconn.Stats
	Malformed  int64 // frames
	Deliveries int64 // queued for readers
	Oversized  int64 // deliveries too large for any client
	LongLogs   int64 // full reads of a log near or over what a client can take
	Expelled   int64 // connections ended because a key was made or revoked
}

// Stats returns the counters.
func (s *Server) Stats() Stats {
	c := &s.stats
	return Stats{
		Stats:      s.conns.Stats(),
		Malformed:  c.malformed.Load(),
		Deliveries: c.deliveries.Load(),
		Oversized:  c.oversized.Load(),
		LongLogs:   c.longLogs.Load(),
		Expelled:   c.expelled.Load(),
	}
}
