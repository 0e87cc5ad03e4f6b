package ag2

import (
	"sync"

	"github.com/parley-hub/parley/dialect/ag2/wire"
)

// received is a decoded message.
type received struct {
	frame wire.Frame
	err   error
	size  int
}

// inbox holds the received messages that are not yet processed, in order.
type inbox struct {
	limit int

	mu      sync.Mutex
	queue   []received
	bytes   int
	working bool
	closed  bool
	room    *sync.Cond // allocated when the reader waits
}

// inboxBytes is how many bytes may wait, in addition to the limit of messages. A
// message of the largest size always fits.
const inboxBytes = 4 << 20

// put adds a message and starts the work if it is not running. It waits while too
// much is queued; after close it returns false.
func (b *inbox) put(message received, work func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for !b.closed && len(b.queue) > 0 && (len(b.queue) >= b.limit || b.bytes+message.size > inboxBytes) {
		if b.room == nil {
			b.room = sync.NewCond(&b.mu)
		}
		b.room.Wait()
	}
	if b.closed {
		return false
	}
	b.queue = append(b.queue, message)
	b.bytes += message.size
	if !b.working {
		b.working = true
		work()
	}
	return true
}

// idle reports whether nothing waits and no work is running. Only put ends this
// state.
func (b *inbox) idle() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.working && !b.closed
}

// take returns all waiting messages; none ends the work.
func (b *inbox) take(reuse []received) []received {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		b.working = false
		b.queue = nil
		return nil
	}
	batch := b.queue
	clear(reuse)
	b.queue, b.bytes = reuse[:0], 0
	if b.room != nil {
		b.room.Broadcast()
	}
	return batch
}

// close stops accepting messages; queued ones are still processed.
func (b *inbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	if b.room != nil {
		b.room.Broadcast()
	}
}
