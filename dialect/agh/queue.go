package agh

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/fault"
)

// keepInline is the largest size of a waiting message that is kept in memory; larger
// ones are read from the log when they are needed.
const keepInline = 16 << 10

// Delays before a message whose turn failed is retried.
const (
	firstDelay = 250 * time.Millisecond
	mostDelay  = 5 * time.Second
)

// waiting is a message in a peer's queue. It is immutable and shared by all peers that
// receive it.
type waiting struct {
	order   string // the hub's id of the record, or empty for what is not stored
	channel string // and where it is
	seq     uint64
	id      string
	from    string
	data    []byte // nil: read it from the log
	meta    *auditOf
}

// queue has the messages that wait for one hosted peer, oldest first.
type queue struct {
	peer  *peer
	depth int

	mu     sync.Mutex
	list   []*waiting
	busy   *waiting      // the message whose turn runs
	after  string        // everything up to here is done, dropped or in list
	wake   chan struct{} // nil: nobody waits
	closed bool
	worker bool
}

func newQueue(p *peer, depth int) *queue {
	return &queue{peer: p, depth: depth}
}

// begin sets where a new peer's queue starts.
func (q *queue) begin(after string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.after = cmp.Or(q.after, after)
}

// push adds a message; if there are too many, the oldest is dropped. It reports whether
// the message is the only one.
func (q *queue) push(m *waiting) (immediate bool, dropped *waiting) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false, nil
	}
	immediate = len(q.list) == 0 && q.busy == nil
	q.list = append(q.list, m)
	if len(q.list) > q.depth {
		dropped = q.shift()
	}
	q.stir()
	return immediate, dropped
}

// shift removes the oldest. The queue is locked and not empty.
func (q *queue) shift() *waiting {
	m := q.list[0]
	q.list[0] = nil // releases it
	q.list = q.list[1:]
	return m
}

// stir wakes waiters. The queue is locked.
func (q *queue) stir() {
	if q.wake != nil {
		close(q.wake)
		q.wake = nil
	}
}

// change returns a channel that the next stir closes. The queue is locked.
func (q *queue) change() <-chan struct{} {
	if q.wake == nil {
		q.wake = make(chan struct{})
	}
	return q.wake
}

// snapshot lists the messages that were not started, and returns a channel that is
// closed when that changes.
func (q *queue) snapshot() ([]*waiting, <-chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.list), q.change()
}

func (q *queue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.list)
}

// done removes the first message of a name, which is an id or FROM/ID.
func (q *queue) done(name string) *waiting {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.IndexFunc(q.list, func(m *waiting) bool { return m.id == name || wire.RecordKey(m.from, m.id) == name })
	if i < 0 {
		return nil
	}
	m := q.list[i]
	q.list = slices.Delete(slices.Clone(q.list), i, i+1)
	q.stir()
	return m
}

// take starts the oldest message, or waits for one.
func (q *queue) take(ctx context.Context) (*waiting, error) {
	for {
		q.mu.Lock()
		if q.closed {
			q.mu.Unlock()
			return nil, fault.New(fault.NotFound, "the peer %q has left", q.peer.id)
		}
		if len(q.list) > 0 && q.busy == nil {
			m := q.shift()
			q.busy = m
			q.mu.Unlock()
			return m, nil
		}
		wake := q.change()
		q.mu.Unlock()
		select {
		case <-wake:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// finish ends the running turn: the message is done, or returns to the head.
func (q *queue) finish(m *waiting, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.busy = nil
	if !ok && !q.closed {
		q.list = append([]*waiting{m}, q.list...)
	}
	q.stir()
}

// attend records that a call takes the peer's turns; false: another one does.
func (q *queue) attend(on bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if on && q.worker {
		return false
	}
	q.worker = on
	return true
}

// attended reports whether a call takes the peer's turns.
func (q *queue) attended() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.worker
}

// mark is the progress of a peer: everything up to After is done, except the messages
// named in Left, and everything after it waits. If a peer handles messages in order,
// Left is empty, so the mark stays small however long the queue is.
type mark struct {
	After string   `json:"after"`
	Left  []string `json:"left,omitempty"`
}

// mark returns the peer's progress.
func (q *queue) mark() mark {
	q.mu.Lock()
	defer q.mu.Unlock()
	m := mark{After: q.after}
	note := func(w *waiting) {
		if w.order != "" && w.order <= q.after {
			m.Left = append(m.Left, w.order)
		}
	}
	if q.busy != nil {
		note(q.busy)
	}
	for _, w := range q.list {
		note(w)
	}
	return m
}

// passed records that a peer need not handle a record.
func (q *queue) passed(order string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.after = max(q.after, order)
}

// close ends the queue and drops what waits.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed, q.list = true, nil
	q.stir()
}
