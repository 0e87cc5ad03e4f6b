package ag2

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/gobwas/ws"

	"github.com/parley-hub/parley/dialect/ag2/wire"
	"github.com/parley-hub/parley/fault"
)

// outbound is everything that waits to be written to one connection, in order.
// Nothing that fills it ever waits for the reader; a goroutine writes while
// there is something to write, as much as possible with each system call, and
// ends when there is nothing.
type outbound struct {
	conn    net.Conn
	limit   int           // bytes
	timeout time.Duration // for each write
	stats   *counters
	slow    func(error)       // called when the reader is cut off for being slow; must not wait
	start   func(func()) bool // runs the writer, unless the connection is over
	ended   func(error)       // called when writing is over
	show    func(*item)       // called with each frame that is queued

	mu      sync.Mutex
	room    *sync.Cond // made when someone waits for room
	items   []item
	head    int // of items: what is before it has been taken
	bytes   int // of what waits
	ranked  int // deliveries among it of another rank than most
	writing bool
	closing bool  // a close frame was queued: nothing may follow
	failed  error // why nothing can be written any more
}

// item is one frame that waits.
type item struct {
	op   ws.OpCode
	body []byte
	// A notify is written around its body, which it shares with other readers;
	// its tail, which is the recipient's, makes it one.
	tail    []byte
	channel string
	rank    int
}

// size estimates the bytes on the wire.
func (i *item) size() int {
	return len(i.body) + len(i.tail) + len(wire.NotifyHead) + 10
}

var errClosed = errors.New("the connection is closed")

// text queues a whole text frame.
func (q *outbound) text(body []byte) error { return q.push(item{op: ws.OpText, body: body}) }

// push queues a frame. A reader that lets too much pile up is cut off.
func (q *outbound) push(i item) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.refuses(); err != nil {
		return err
	}
	if size := i.size(); q.bytes+size > q.limit {
		err := fault.New(fault.SlowReader, "%d bytes wait for this reader; at most %d (ag2.limits.queue_bytes)", q.bytes+size, q.limit)
		q.cut(err)
		return err
	}
	q.insert(i)
	return nil
}

// cutOff ends a reader that missed something.
func (q *outbound) cutOff(why error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.refuses() == nil {
		q.cut(why)
	}
}

// pushWaiting queues a frame when at most half of the queue is taken, so that
// what is pushed without waiting always finds room.
func (q *outbound) pushWaiting(ctx context.Context, i item) error {
	stop := context.AfterFunc(ctx, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.wake()
	})
	defer stop()
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.refuses() == nil && ctx.Err() == nil && q.bytes > 0 && q.bytes+i.size() > q.limit/2 {
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
	q.insert(i)
	return nil
}

// close queues a close frame as the last one and drops what waits if at once
// is set, because a peer that broke the protocol is owed nothing more.
func (q *outbound) close(code ws.StatusCode, reason string, atOnce bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.refuses() != nil {
		return
	}
	if atOnce {
		q.drop()
	}
	q.insert(closeItem(code, reason))
	q.closing = true
	q.wake()
}

func closeItem(code ws.StatusCode, reason string) item {
	if len(reason) > 123 {
		reason = reason[:123]
	}
	return item{op: ws.OpClose, body: append(binary.BigEndian.AppendUint16(nil, uint16(code)), reason...)}
}

// cut drops what waits and leaves only a close frame, which the reader gets if
// it reads again soon.
func (q *outbound) cut(err error) {
	q.slow(err)
	q.drop()
	q.insert(closeItem(closeSlowReader, string(fault.CodeOf(err))))
	q.closing = true
	q.wake()
	_ = q.conn.SetWriteDeadline(time.Now().Add(farewell))
}

// farewell is how long a close frame may take.
const farewell = 2 * time.Second

// abort ends writing without another byte.
func (q *outbound) abort(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.fail(err)
}

func (q *outbound) refuses() error {
	if q.failed != nil {
		return q.failed
	}
	if q.closing {
		return errClosed
	}
	return nil
}

func (q *outbound) drop() { q.items, q.head, q.bytes, q.ranked = nil, 0, 0, 0 }

func (q *outbound) fail(err error) {
	if q.failed == nil {
		q.failed = err
	}
	q.drop()
	q.wake()
}

func (q *outbound) wake() {
	if q.room != nil {
		q.room.Broadcast()
	}
}
