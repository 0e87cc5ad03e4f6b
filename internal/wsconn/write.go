package wsconn

import (
	"errors"
	"net"
	"os"
	"runtime"
	"sync"
	"time"
)

// flushBytes is how much is gathered for one write.
const flushBytes = 64 << 10

// largeBody is the size from which writing a body from its own memory is
// cheaper than copying it.
const largeBody = 32 << 10

var flushBuffers = sync.Pool{New: func() any { return new([]byte) }}

// gather is like write, for frames that others may follow: it yields first, so
// that they go into the same write. That only saves system calls; the order of
// the frames is the same.
func (q *queue) gather() {
	runtime.Gosched()
	q.write()
}

// write empties the queue and ends.
func (q *queue) write() {
	var spare []Frame
	for {
		b := q.take(spare)
		if len(b.frames) == 0 {
			if b.over {
				q.conn.written(b.failed)
			}
			return
		}
		if err := q.flush(b.frames, b.closing); err != nil {
			if !b.closing && errors.Is(err, os.ErrDeadlineExceeded) {
				q.conn.slow(err)
			}
			q.mu.Lock()
			q.fail(err)
			q.mu.Unlock()
		}
		clear(b.frames)
		spare = b.frames[:0]
	}
}

// batchBytes is how much is taken at once, so that urgent frames go before the
// rest.
const batchBytes = 4 * flushBytes

// taken is what is to be written next. Without frames the writer ends; over
// means for good.
type taken struct {
	frames  []Frame
	closing bool // the last one is a close frame
	over    bool
	failed  error
}

// take returns what is written next, and leaves an empty list to be filled.
func (q *queue) take(spare []Frame) taken {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := taken{failed: q.failed}
	if q.head == 0 && q.bytes <= batchBytes {
		t.frames, q.frames, q.bytes, q.unusual = q.frames, spare, 0, 0
		q.shared = nil
	} else {
		t.frames = q.some(spare)
	}
	t.closing = q.closing && len(q.frames) == 0
	if len(t.frames) == 0 {
		recycle(t.frames)
		recycle(q.frames)
		q.drop()
		t.over = q.closing || q.failed != nil
		q.writing = t.over // no other writer after the end
	}
	q.wake()
	return t
}

// some takes the first part of a long queue.
func (q *queue) some(batch []Frame) []Frame {
	for size := 0; q.head < len(q.frames) && size < batchBytes; q.head++ {
		f := &q.frames[q.head]
		size += f.size()
		q.uncount(f)
		q.unusual -= unusual(f)
		batch = append(batch, *f)
		*f = Frame{}
	}
	switch {
	case q.head == len(q.frames):
		q.frames, q.head = q.frames[:0], 0
	case q.head > len(q.frames)/2:
		q.frames = append(q.frames[:0], q.frames[q.head:]...)
		q.head = 0
	}
	return batch
}

// frameLists pools lists of frames: an idle connection has none.
var frameLists sync.Pool

// keptFrames is the longest list that is kept.
const keptFrames = 1024

func recycle(list []Frame) {
	if n := cap(list); n > 0 && n <= keptFrames {
		list = list[:0]
		frameLists.Put(&list)
	}
}

func emptyList() []Frame {
	if list, ok := frameLists.Get().(*[]Frame); ok {
		return *list
	}
	return nil
}

// flush writes a batch with few system calls.
func (q *queue) flush(batch []Frame, closing bool) error {
	pooled := flushBuffers.Get().(*[]byte)
	buf := (*pooled)[:0]
	defer func() {
		if cap(buf) <= 2*flushBytes {
			*pooled = buf[:0]
			flushBuffers.Put(pooled)
		}
	}()
	var large net.Buffers
	for i := range batch {
		f := &batch[i]
		if len(f.Body) >= largeBody {
			buf = f.appendHead(buf)
			body := f.Body
			for ; len(body) > writeBytes; body = body[writeBytes:] {
				if err := q.sendParts(append(large[:0], buf, body[:writeBytes]), closing); err != nil {
					return err
				}
				buf = buf[:0]
			}
			if err := q.sendParts(append(large[:0], buf, body, f.Tail), closing); err != nil {
				return err
			}
			buf = buf[:0]
			continue
		}
		buf = f.appendHead(buf)
		buf = append(append(buf, f.Body...), f.Tail...)
		if len(buf) >= flushBytes {
			if err := q.send(buf, closing); err != nil {
				return err
			}
			buf = buf[:0]
		}
	}
	if len(buf) == 0 {
		return nil
	}
	return q.send(buf, closing)
}

// writeBytes is how much one deadline covers: a peer that reads that much
// within each deadline may take as long as it needs for a large message.
const writeBytes = 4 * flushBytes

func (q *queue) send(buf []byte, closing bool) error {
	if err := q.begin(closing); err != nil {
		return err
	}
	n, err := q.conn.net.Write(buf)
	q.sent(int64(n))
	return err
}

func (q *queue) sendParts(parts net.Buffers, closing bool) error {
	if err := q.begin(closing); err != nil {
		return err
	}
	n, err := parts.WriteTo(q.conn.net)
	q.sent(n)
	return err
}

// begin sets the deadline of a write. A peer that is about to be disconnected
// keeps the deadline that it has.
func (q *queue) begin(closing bool) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	timeout := q.conn.server.cfg.Limits.Write
	switch {
	case closing:
		timeout = closeTimeout
	case q.closing:
		return nil
	}
	return q.conn.net.SetWriteDeadline(time.Now().Add(timeout))
}

// sent records that the peer took something.
func (q *queue) sent(n int64) {
	q.conn.server.stats.writes.Add(1)
	q.conn.server.stats.bytesOut.Add(n)
	if n > 0 {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.moved = time.Now()
	}
}
