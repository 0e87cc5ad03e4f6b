package answers

import (
	"context"
	"time"
)

// leastRead is the least that a read costs: finding nothing is work too.
const leastRead = 4 << 10

// atOnce is a closed channel: there is nothing to wait for.
var atOnce = func() <-chan struct{} { c := make(chan struct{}); close(c); return c }()

// Begin waits for the turn to read, and refuses if that lasts longer than most.
func (a *Answer) Begin(ctx context.Context, most time.Duration) error {
	return a.turn.Wait(ctx, most)
}

// Read counts bytes that were read in this turn.
func (a *Answer) Read(bytes int) { a.cost += bytes }

// EndTurn ends the turn and counts what was read. It must be called before
// anything is written, so that a slow reader does not delay others.
func (a *Answer) EndTurn() {
	if a.turn != nil {
		a.turn.Done(max(a.cost, leastRead))
		a.cost = 0
		a.turn.Leave() // it may have waited
	}
}

// Step takes one step of a stream in its turn. A stream that has to wait and
// has buffered data writes that first: it must not be given the turn while it
// writes to a slow reader.
func (a *Answer) Step(buffered int, step func() (read int, wake <-chan struct{}, err error)) (<-chan struct{}, error) {
	if !a.turn.Try() {
		if buffered > 0 {
			return atOnce, nil
		}
		if wake := a.turn.Take(); wake != nil {
			return wake, nil
		}
	}
	read, wake, err := step()
	a.turn.Done(read)
	return wake, err
}
