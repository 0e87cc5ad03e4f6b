package wsconn

import (
	"context"
	"sync"
	"time"

	"github.com/parley-hub/parley/fault"
)

// queue is everything that waits to be written to one connection, in order.
// Nothing that fills it ever waits for the reader; a goroutine writes while
// there is something to write, as much as possible with each system call, and
// ends when there is nothing.
type queue struct {
	conn *Conn

	mu      sync.Mutex
	room    *sync.Cond // made when someone waits for room
	frames  []Frame
	head    int           // into frames: those before it were taken
	bytes   int           // of what waits
	shared  map[*byte]int // how many waiting frames have a large body
	moved   time.Time     // when the peer last took something, or had nothing to take
	unusual int           // frames among it that are neither fixed nor ordinary
	writing bool
	closing bool  // a close frame was queued: nothing may follow
	failed  error // why nothing can be written any more
}

// push queues a frame. A reader whose queue grows too large is disconnected.
func (q *queue) push(f Frame) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.refuses(); err != nil {
		return err
	}
	if size := q.bytes + q.cost(&f); size > q.limit() && (size > burst*q.limit() || time.Since(q.moved) > stalled) {
		err := fault.New(fault.SlowReader, "%d bytes wait for this reader; at most %d (%s.queue_bytes)",
			size, q.limit(), q.conn.server.cfg.Keys)
		q.cut(err)
		return err
	}
	q.insert(f)
	return nil
}

// A reader that makes progress may be behind by several times its limit: that
// much may be queued at once, before it had the time to read. One that takes
// nothing for a while may not.
const (
	burst   = 4
	stalled = 2 * time.Second
)

// cost returns what a frame adds to what waits: a body that waits already for
// another recipient on this connection is there once.
func (q *queue) cost(f *Frame) int {
	if len(f.Body) >= largeBody && q.shared[&f.Body[0]] > 0 {
		return f.size() - len(f.Body)
	}
	return f.size()
}

// count adds a frame to what waits.
func (q *queue) count(f *Frame) {
	q.bytes += q.cost(f)
	if len(f.Body) >= largeBody {
		if q.shared == nil {
			q.shared = map[*byte]int{}
		}
		q.shared[&f.Body[0]]++
	}
}

// uncount takes a frame from what waits.
func (q *queue) uncount(f *Frame) {
	if len(f.Body) >= largeBody {
		body := &f.Body[0]
		if q.shared[body]--; q.shared[body] == 0 {
			delete(q.shared, body)
		}
	}
	q.bytes -= q.cost(f)
}

func (q *queue) limit() int { return q.conn.server.cfg.Limits.QueueBytes }

// cutOff disconnects a reader that missed something.
func (q *queue) cutOff(why error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.refuses() == nil {
		q.cut(why)
	}
}

// pushWaiting queues a frame when at most half of the queue is taken, so that
// what is pushed without waiting always finds room.
func (q *queue) pushWaiting(ctx context.Context, f Frame) error {
	stop := context.AfterFunc(ctx, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.wake()
	})
	defer stop()
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.refuses() == nil && ctx.Err() == nil && q.bytes > 0 && q.bytes+q.cost(&f) > q.limit()/2 {
		if q.room == nil {
			q.room = sync.NewCond(&q.mu)
		}
		q.room.Wait()
	}
	if err := q.refuses(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	q.insert(f)
	return nil
}

// close queues a close frame as the last one. With atOnce it drops what waits:
// a peer that broke the protocol gets nothing more.
func (q *queue) close(code Code, reason string, atOnce bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.refuses() != nil {
		return
	}
	if atOnce {
		q.drop()
	}
	q.insert(closeFrame(code, reason))
	q.closing = true
	q.wake()
}

// cut drops what waits and leaves only a close frame, which the reader gets if
// it reads again soon.
func (q *queue) cut(err error) {
	q.conn.slow(err)
	q.drop()
	q.insert(closeFrame(SlowReader, string(fault.CodeOf(err))))
	q.closing = true
	q.wake()
	_ = q.conn.net.SetWriteDeadline(time.Now().Add(closeTimeout))
}

// abort ends writing at once.
func (q *queue) abort(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.fail(err)
}

func (q *queue) refuses() error {
	if q.failed != nil {
		return q.failed
	}
	if q.closing {
		return ErrClosed
	}
	return nil
}

func (q *queue) drop() { q.frames, q.head, q.bytes, q.unusual, q.shared = nil, 0, 0, 0, nil }

func (q *queue) fail(err error) {
	if q.failed == nil {
		q.failed = err
	}
	q.drop()
	q.wake()
}

func (q *queue) wake() {
	if q.room != nil {
		q.room.Broadcast()
	}
}
