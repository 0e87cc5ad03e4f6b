package reader

import (
	"context"
	"sync"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
)

// Inbox is an endpoint within the process: a bounded queue of notices. Queued
// notices are handed out by priority across channels, and in order within each.
type Inbox struct {
	id    string
	limit int

	mu    sync.Mutex
	queue []*Notice
	odd   int // how many do not have normal priority
	cut   error
	wake  chan struct{} // closed and replaced whenever something changes
}

// NewInbox makes an inbox that holds at most limit notices; 0 is 4,096.
func NewInbox(limit int) *Inbox {
	if limit <= 0 {
		limit = 4096
	}
	return &Inbox{id: envelope.NewID(), limit: limit, wake: make(chan struct{})}
}

// ID names the inbox.
func (b *Inbox) ID() string { return b.id }

// Deliver queues a notice. A full inbox cuts itself off: its reader gets the queued
// notices, then the reason, and resumes by binding again.
func (b *Inbox) Deliver(n *Notice) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cut == nil && len(b.queue) >= b.limit {
		b.cut = fault.New(fault.SlowReader, "reader fell behind: %d envelopes wait, which is its limit; bind again to resume", b.limit)
		b.changed()
	}
	if b.cut != nil {
		return b.cut
	}
	b.push(n)
	return nil
}

// Replay queues a notice and waits for room.
func (b *Inbox) Replay(ctx context.Context, n *Notice) error {
	for {
		b.mu.Lock()
		if b.cut != nil {
			b.mu.Unlock()
			return b.cut
		}
		if len(b.queue) < b.limit {
			b.push(n)
			b.mu.Unlock()
			return nil
		}
		wake := b.wake
		b.mu.Unlock()
		select {
		case <-wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (b *Inbox) push(n *Notice) {
	b.queue = append(b.queue, n)
	if n.Envelope.Priority.Rank() != envelope.Normal.Rank() {
		b.odd++
	}
	b.changed()
}

func (b *Inbox) changed() {
	close(b.wake)
	b.wake = make(chan struct{})
}

// Next waits for a notice.
func (b *Inbox) Next(ctx context.Context) (*Notice, error) {
	for {
		b.mu.Lock()
		if n := b.pop(); n != nil {
			b.mu.Unlock()
			return n, nil
		}
		cut, wake := b.cut, b.wake
		b.mu.Unlock()
		if cut != nil {
			return nil, cut
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (b *Inbox) pop() *Notice {
	if len(b.queue) == 0 {
		return nil
	}
	at := 0
	if b.odd > 0 {
		at = b.first()
	}
	n := b.queue[at]
	b.queue = append(b.queue[:at], b.queue[at+1:]...)
	if n.Envelope.Priority.Rank() != envelope.Normal.Rank() {
		b.odd--
	}
	b.changed()
	return n
}

// first returns the index of the notice with the highest priority among the oldest
// of each channel; of several, the one that arrived first.
func (b *Inbox) first() int {
	type source struct{ channel, recipient string }
	seen := map[source]bool{}
	best := 0
	for i, n := range b.queue {
		from := source{n.Channel.ID, n.Recipient}
		if seen[from] {
			continue
		}
		seen[from] = true
		if n.Envelope.Priority.Rank() > b.queue[best].Envelope.Priority.Rank() {
			best = i
		}
	}
	return best
}

// CutOff ends the inbox: its reader gets the queued notices, then the reason.
func (b *Inbox) CutOff(why error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cut == nil {
		b.cut = why
		b.changed()
	}
}

// Close cuts off an inbox that is no longer needed.
func (b *Inbox) Close() { b.CutOff(fault.New(fault.Unavailable, "inbox is closed")) }
