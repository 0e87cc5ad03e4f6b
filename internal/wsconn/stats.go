package wsconn

import "sync/atomic"

// counters count what a server did since it was made.
type counters struct {
	opened      atomic.Int64
	refused     atomic.Int64
	messages    atomic.Int64
	writes      atomic.Int64
	bytesOut    atomic.Int64
	slowReaders atomic.Int64
	silent      atomic.Int64
}

// Stats is a snapshot of a server's counters.
type Stats struct {
	Connections int64 // open now
	Opened      int64
	Refused     int64 // upgrades
	Messages    int64 // received
	Writes      int64 // system calls
	BytesOut    int64
	SlowReaders int64 // cut off
	Silent      int64 // did not answer pings
}

// Stats returns the counters.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	open := int64(len(s.conns))
	s.mu.Unlock()
	c := &s.stats
	return Stats{
		Connections: open,
		Opened:      c.opened.Load(),
		Refused:     c.refused.Load(),
		Messages:    c.messages.Load(),
		Writes:      c.writes.Load(),
		BytesOut:    c.bytesOut.Load(),
		SlowReaders: c.slowReaders.Load(),
		Silent:      c.silent.Load(),
	}
}
