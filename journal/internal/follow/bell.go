// Package follow implements followers on top of an engine's reads: a follower
// keeps a position, reads what is after it, and waits on a bell that the engine
// rings. Nothing is queued and no goroutine is started.
package follow

import (
	"sync"
	"sync/atomic"

	"github.com/parley-hub/parley/journal"
)

// Bell wakes followers that wait for new entries of a log or of the shard.
type Bell struct {
	heard atomic.Int64 // followers that wait, or are about to
	mu    sync.Mutex
	err   error // set by Close
	logs  map[journal.LogName]*watch
	shard watch
}

type watch struct {
	rung    chan struct{}
	waiting int
}

// NewBell returns a bell without watches.
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

// Heard reports whether a follower waits. A follower that begins to wait after that
// reads again before it waits.
func (b *Bell) Heard() bool { return b.heard.Load() > 0 }

// Ring wakes the followers of the given logs, and those of the shard.
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

// RingPartition wakes the followers of all logs of a partition.
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

// Close wakes all followers: from then on waiting returns err.
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

// Err returns the error that Close was called with.
func (b *Bell) Err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}
