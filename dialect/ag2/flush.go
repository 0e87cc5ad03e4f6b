package ag2

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/gobwas/ws"

	"github.com/parley-hub/parley/dialect/ag2/wire"
)

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
	var spare []item
	for {
		b := q.take(spare)
		if len(b.items) == 0 {
			if b.over {
				q.ended(b.failed)
			}
			return
		}
		if err := q.flush(b.items, b.closing); err != nil {
			if !b.closing && errors.Is(err, os.ErrDeadlineExceeded) {
				q.slow(err)
			}
			q.mu.Lock()
			q.fail(err)
			q.mu.Unlock()
		}
		clear(b.items)
		spare = b.items[:0]
	}
}

// batchBytes is how much is taken at once: what is urgent goes before the rest.
const batchBytes = 4 * flushBytes

// taken is what is to be written next. Without items the writer ends; over
// means for good.
type taken struct {
	items   []item
	closing bool // the last one is a close frame
	over    bool
	failed  error
}

// take returns what is written next, and leaves an empty list to be filled.
func (q *outbound) take(spare []item) taken {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := taken{failed: q.failed}
	if q.head == 0 && q.bytes <= batchBytes {
		t.items, q.items, q.bytes, q.ranked = q.items, spare, 0, 0
	} else {
		t.items = q.some(spare)
	}
	t.closing = q.closing && len(q.items) == 0
	if len(t.items) == 0 {
		recycle(t.items)
		recycle(q.items)
		q.drop()
		t.over = q.closing || q.failed != nil
		q.writing = t.over // no other writer after the end
	}
	q.wake()
	return t
}

// some takes the first part of a long queue.
func (q *outbound) some(batch []item) []item {
	for size := 0; q.head < len(q.items) && size < batchBytes; q.head++ {
		i := &q.items[q.head]
		size += i.size()
		q.bytes -= i.size()
		q.ranked -= special(i)
		batch = append(batch, *i)
		*i = item{}
	}
	switch {
	case q.head == len(q.items):
		q.items, q.head = q.items[:0], 0
	case q.head > len(q.items)/2:
		q.items = append(q.items[:0], q.items[q.head:]...)
		q.head = 0
	}
	return batch
}

// Lists of items outlive the writers that fill them, not the connection's
// silence: an idle one has none.
var itemLists sync.Pool

// keptItems is the longest list that is kept.
const keptItems = 1024

func recycle(list []item) {
	if n := cap(list); n > 0 && n <= keptItems {
		list = list[:0]
		itemLists.Put(&list)
	}
}

func emptyList() []item {
	if list, ok := itemLists.Get().(*[]item); ok {
		return *list
	}
	return nil
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
			if err := q.sendParts(large); err != nil {
				return err
			}
			large, buf = large[:0], buf[:0]
			continue
		}
		buf = it.appendHead(buf)
		buf = append(append(buf, it.body...), it.tail...)
		if len(buf) >= flushBytes {
			if err := q.send(buf); err != nil {
				return err
			}
			buf = buf[:0]
		}
	}
	if len(buf) == 0 {
		return nil
	}
	return q.send(buf)
}

func (q *outbound) send(buf []byte) error {
	q.stats.writes.Add(1)
	n, err := q.conn.Write(buf)
	q.stats.bytesOut.Add(int64(n))
	return err
}

func (q *outbound) sendParts(parts net.Buffers) error {
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
