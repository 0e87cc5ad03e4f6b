package api

import "time"

// logReads are the answers that are made of logs.
var logReads = map[string]bool{
	"EventPage": true, "ChannelEventPage": true, "Export": true, "View": true, "Messages": true, "PastState": true, "Graph": true, "PathPage": true,
}

// maxExport is how long an export that has begun waits for its turn. It is only
// paced: ending it would leave out what it has not written.
const maxExport = time.Hour

// leastRead is what a read costs however little it finds: it was looked for.
const leastRead = 4 << 10

// atOnce is closed.
var atOnce = func() <-chan struct{} { c := make(chan struct{}); close(c); return c }()

// ended ends the caller's turn: what was read is counted.
func (c *call) ended() {
	if c.turn != nil {
		c.turn.Done(max(c.cost, leastRead))
		c.cost = 0
		c.turn.Leave() // it may have waited
	}
}

// inTurn takes one step of a stream in the caller's turn. A stream that must wait
// for it first writes what it has: it must not get the turn while it writes to a
// reader who does not read.
func (c *call) inTurn(s stream, step func() (frame []byte, wake <-chan struct{}, err error)) (<-chan struct{}, error) {
	if !c.turn.Try() {
		if s.Buffered() > 0 {
			return atOnce, nil
		}
		if wake := c.turn.Take(); wake != nil {
			return wake, nil
		}
	}
	frame, wake, err := step()
	c.turn.Done(len(frame))
	return wake, err
}
