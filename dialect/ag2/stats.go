package ag2

import "sync/atomic"

// counters count what the server did since it was made.
type counters struct {
	opened      atomic.Int64
	refused     atomic.Int64
	framesIn    atomic.Int64
	malformed   atomic.Int64
	deliveries  atomic.Int64
	oversized   atomic.Int64
	writes      atomic.Int64
	bytesOut    atomic.Int64
	slowReaders atomic.Int64
	silent      atomic.Int64
	longLogs    atomic.Int64
}

// Stats is a snapshot of a server's counters.
type Stats struct {
	Connections int64 // open now
	Opened      int64
	Refused     int64 // upgrades
	FramesIn    int64
	Malformed   int64 // frames
	Deliveries  int64 // queued for readers
	Oversized   int64 // deliveries that no client could take
	Writes      int64 // system calls
	BytesOut    int64
	SlowReaders int64 // cut off
	Silent      int64 // did not answer pings
	LongLogs    int64 // full reads of a log near or over what a client can take
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
		FramesIn:    c.framesIn.Load(),
		Malformed:   c.malformed.Load(),
		Deliveries:  c.deliveries.Load(),
		Oversized:   c.oversized.Load(),
		Writes:      c.writes.Load(),
		BytesOut:    c.bytesOut.Load(),
		SlowReaders: c.slowReaders.Load(),
		Silent:      c.silent.Load(),
		LongLogs:    c.longLogs.Load(),
	}
}
