// Package follow implements followers over an engine's own reads: a follower
// keeps a position, asks for what is after it, and waits on a bell that the
// engine rings. Nothing is queued and no goroutine is started.
package follow

import (
	"sync"
	"sync/atomic"

	"github.com/parley-hub/parley/journal"
)

// Bell wakes those who wait for a log or for the shard to move on.
type Bell struct {
	heard atomic.Int64 // those who wait, or are about to
	mu    sync.Mutex
	err   error // set by Close
	logs  map[journal.LogName]*watch
	shard watch
}

type watch struct {
	rung    chan struct{}
	waiting int
}

// NewBell returns a bell that nobody waits for.
func NewBell() *Bell {
	return &Bell{logs: map[journal.LogName]*watch{}, shard: watch{rung: make(chan struct{})}}
}

// watchLog returns a channel that is closed the next time the log moves, and a
// function that ends the watch.
func (b *Bell) watchLog(log journal.LogName) (<-chan struct{}, func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.logs[log]
	if w == nil {
		w = &watch{rung: make(chan struct{})}
		if b.err != nil {
			close(w.rung)
			return w.rung, func() {}
		}
		b.logs[log] = w
	}
	w.waiting++
	b.heard.Add(1)
	return w.rung, func() {
		b.heard.Add(-1)
		b.mu.Lock()
		defer b.mu.Unlock()
		if w.waiting--; w.waiting == 0 && b.logs[log] == w {
			delete(b.logs, log)
		}
	}
}

// watchShard returns a channel that is closed the next time the shard moves,
// and a function that ends the watch.
func (b *Bell) watchShard() (<-chan struct{}, func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shard.waiting++
	b.heard.Add(1)
	return b.shard.rung, func() { b.heard.Add(-1) }
}

// Heard reports whether anyone waits. Who begins to wait after that looks for
// news before waiting.
func (b *Bell) Heard() bool { return b.heard.Load() > 0 }

// Ring wakes those who wait for the logs, and those who wait for the shard.
func (b *Bell) Ring(logs ...journal.LogName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return
	}
	for _, log := range logs {
		if w := b.logs[log]; w != nil {
			close(w.rung)
			delete(b.logs, log)
		}
	}
	if b.shard.waiting > 0 {
		close(b.shard.rung)
		b.shard = watch{rung: make(chan struct{})}
	}
}

// RingPartition wakes those who wait for any log of a partition.
func (b *Bell) RingPartition(p journal.PartitionName) {
	b.mu.Lock()
	var logs []journal.LogName
	for log := range b.logs {
		if log.Of() == p {
			logs = append(logs, log)
		}
	}
	b.mu.Unlock()
	b.Ring(logs...)
}

// Close wakes everyone for good: from then on waiting returns err.
func (b *Bell) Close(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return
	}
	b.err = err
	for _, w := range b.logs {
		close(w.rung)
	}
	clear(b.logs)
	close(b.shard.rung)
}

// Err is what Close was given.
func (b *Bell) Err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}
