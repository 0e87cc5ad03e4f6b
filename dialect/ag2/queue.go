package ag2

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"runtime"
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

// Ranks besides those of what is urgent and what has time.
const (
	unranked = -1 // keeps its place
	ordinary = 1  // of envelope.Normal
)

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
		q.stats.slowReaders.Add(1)
		q.cutOff(err)
		return err
	}
	q.insert(i)
	return nil
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
}

func closeItem(code ws.StatusCode, reason string) item {
	if len(reason) > 123 {
		reason = reason[:123]
	}
	return item{op: ws.OpClose, body: append(binary.BigEndian.AppendUint16(nil, uint16(code)), reason...)}
}

// cutOff drops what waits and leaves only a close frame, which the reader gets
// if it reads again soon.
func (q *outbound) cutOff(err error) {
	q.drop()
	q.insert(closeItem(closeSlowReader, string(fault.CodeOf(err))))
	q.closing = true
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

// insert puts a frame behind all others. Only a delivery goes before others,
// and only before deliveries of lower rank.
func (q *outbound) insert(i item) {
	q.show(&i)
	q.bytes += i.size()
	if i.tail != nil {
		i.rank = q.rankOf(&i)
		q.ranked += special(&i)
	}
	q.items = append(q.items, i)
	at := len(q.items) - 1
	for at > q.head && i.overtakes(&q.items[at-1]) {
		q.items[at] = q.items[at-1]
		at--
	}
	q.items[at] = i
	if !q.writing {
		q.writing = q.start(q.write)
	}
}

// rankOf is a delivery's priority, lowered to that of the last one before it of
// the same reader and channel: whoever acknowledges one of a channel
// acknowledges all before it, so none may overtake another.
func (q *outbound) rankOf(i *item) int {
	if i.rank == unranked || i.rank == ordinary && q.ranked == 0 {
		return i.rank
	}
	for at := len(q.items) - 1; at >= q.head; at-- {
		other := &q.items[at]
		if other.tail != nil && other.rank != unranked && other.channel == i.channel && string(other.tail) == string(i.tail) {
			return min(i.rank, other.rank)
		}
	}
	return i.rank
}

// special counts deliveries that are neither ordinary nor fixed.
func special(i *item) int {
	if i.tail == nil || i.rank == ordinary || i.rank == unranked {
		return 0
	}
	return 1
}

func (i *item) overtakes(other *item) bool {
	return i.tail != nil && other.tail != nil && other.rank != unranked && other.rank < i.rank
}

// flushBytes is how much is gathered for one write.
const flushBytes = 64 << 10

// largeBody is where writing a body from its own memory is cheaper than
// copying it.
const largeBody = 32 << 10

var flushBuffers = sync.Pool{New: func() any { return new([]byte) }}

// write empties the queue and ends.
func (q *outbound) write() {
	// Whoever filled the queue may have more: it goes first.
	runtime.Gosched()
	var batch []item
	for {
		clear(batch)
		var closing, over bool
		batch, closing, over = q.take(batch[:0])
		if over {
			q.ended(q.failed)
			return
		}
		if len(batch) == 0 {
			return
		}
		if err := q.flush(batch, closing); err != nil {
			if !closing && errors.Is(err, os.ErrDeadlineExceeded) {
				q.stats.slowReaders.Add(1)
			}
			q.mu.Lock()
			q.fail(err)
			q.mu.Unlock()
		}
	}
}

// batchBytes is how much is taken at once: what is urgent goes before the rest.
const batchBytes = 4 * flushBytes

// take moves what is to be written next into a batch. Without any the writer
// ends; over means for good.
func (q *outbound) take(batch []item) (_ []item, closing, over bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for size := 0; q.head < len(q.items) && size < batchBytes; q.head++ {
		i := &q.items[q.head]
		size += i.size()
		q.bytes -= i.size()
		q.ranked -= special(i)
		batch = append(batch, *i)
		*i = item{}
	}
	closing = q.closing && q.head == len(q.items)
	switch {
	case len(batch) == 0:
		q.drop()
		over = q.closing || q.failed != nil
		q.writing = over // no other writer after the end
	case q.head == len(q.items):
		q.items, q.head = q.items[:0], 0
	case q.head > len(q.items)/2:
		q.items = append(q.items[:0], q.items[q.head:]...)
		q.head = 0
	}
	q.wake()
	return batch, closing, over
}

// flush writes a batch with few system calls.
func (q *outbound) flush(batch []item, closing bool) error {
	pooled := flushBuffers.Get().(*[]byte)
	buf := (*pooled)[:0]
	defer func() {
		if cap(buf) <= 2*flushBytes {
			*pooled = buf[:0]
			flushBuffers.Put(pooled)
		}
	}()
	timeout := q.timeout
	if closing {
		timeout = farewell
	}
	if err := q.conn.SetWriteDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	var large net.Buffers
	for i := range batch {
		it := &batch[i]
		if len(it.body) >= largeBody {
			buf = it.appendHead(buf)
			large = append(large, buf, it.body, it.tail)
			if err := q.send(large); err != nil {
				return err
			}
			large, buf = large[:0], buf[:0]
			continue
		}
		buf = it.appendHead(buf)
		buf = append(append(buf, it.body...), it.tail...)
		if len(buf) >= flushBytes {
			if err := q.send(net.Buffers{buf}); err != nil {
				return err
			}
			buf = buf[:0]
		}
	}
	if len(buf) == 0 {
		return nil
	}
	return q.send(net.Buffers{buf})
}

func (q *outbound) send(parts net.Buffers) error {
	q.stats.writes.Add(1)
	n, err := parts.WriteTo(q.conn)
	q.stats.bytesOut.Add(n)
	return err
}

// appendHead writes the WebSocket header and what comes before the body.
func (i *item) appendHead(buf []byte) []byte {
	if i.tail == nil {
		return appendHeader(buf, i.op, len(i.body))
	}
	size := len(wire.NotifyHead) + len(i.body) + len(i.tail)
	return append(appendHeader(buf, i.op, size), wire.NotifyHead...)
}

// appendHeader writes the header of a whole, unmasked frame.
func appendHeader(buf []byte, op ws.OpCode, size int) []byte {
	buf = append(buf, 0x80|byte(op))
	switch {
	case size < 126:
		return append(buf, byte(size))
	case size < 1<<16:
		return binary.BigEndian.AppendUint16(append(buf, 126), uint16(size))
	}
	return binary.BigEndian.AppendUint64(append(buf, 127), uint64(size))
}
