package ag2

import "sync"

// inbox is what a connection has received and not yet worked on, in order.
type inbox struct {
	limit int

	mu      sync.Mutex
	queue   [][]byte
	bytes   int
	working bool
	closed  bool
	room    *sync.Cond // made when the reader waits
}

// inboxBytes is how much may wait besides its number: a message of the largest
// size always fits.
const inboxBytes = 4 << 20

// put adds a message, and has work started if nobody is at it. It waits while
// too much waits; after close it answers false.
func (b *inbox) put(message []byte, work func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for !b.closed && len(b.queue) > 0 && (len(b.queue) >= b.limit || b.bytes+len(message) > inboxBytes) {
		if b.room == nil {
			b.room = sync.NewCond(&b.mu)
		}
		b.room.Wait()
	}
	if b.closed {
		return false
	}
	b.queue = append(b.queue, message)
	b.bytes += len(message)
	if !b.working {
		b.working = true
		work()
	}
	return true
}

// take returns all that waits; none ends the work.
func (b *inbox) take(reuse [][]byte) [][]byte {
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

// close lets nothing more in; what waits is still worked on.
func (b *inbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	if b.room != nil {
		b.room.Broadcast()
	}
}
