// Package compaction decides when Pebble may compact a store.
package compaction

import (
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// offerInterval is how often waiting compactions are offered a turn.
const offerInterval = 200 * time.Millisecond

// Scheduler decides when Pebble may compact. It grants as many compactions at once
// as Pebble requests. While batches arrive it grants only urgent ones, so that a
// burst does not share the disk. After damage was found it grants none, because a
// compaction of a damaged table would be retried forever.
type Scheduler struct {
	busy     func() bool // batches are arriving
	urgent   func() bool // compactions cannot wait
	mu       sync.Mutex
	idle     *sync.Cond // granting is false
	db       pebble.DBForCompaction
	running  int
	granting bool
	begun    bool // the store is open; before that Pebble would wait for compactions
	halted   bool
	stop     chan struct{} // closed when halted
	offering sync.WaitGroup
}

// New returns a scheduler. busy reports whether batches are arriving, and urgent
// whether compactions cannot wait.
func New(busy, urgent func() bool) *Scheduler {
	c := &Scheduler{busy: busy, urgent: urgent, stop: make(chan struct{})}
	c.idle = sync.NewCond(&c.mu)
	return c
}

// Register implements pebble.CompactionScheduler.
func (c *Scheduler) Register(_ int, db pebble.DBForCompaction) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.db = db
}

// Unregister implements pebble.CompactionScheduler.
func (c *Scheduler) Unregister() {
	c.Halt()
	c.offering.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.granting {
		c.idle.Wait()
	}
}

// Begin lets compactions run.
func (c *Scheduler) Begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun = true
}

// Halt lets running compactions end and starts no others.
func (c *Scheduler) Halt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.halted {
		c.halted = true
		close(c.stop)
	}
}

// KeepOffering offers grants from now on until Pebble is closed, because the flush
// before the close may have to wait for compactions.
func (c *Scheduler) KeepOffering() {
	c.offering.Go(func() {
		ticker := time.NewTicker(offerInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				c.offer()
			case <-c.stop:
				return
			}
		}
	})
}

// TrySchedule implements pebble.CompactionScheduler.
func (c *Scheduler) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.halted || !c.begun || c.busy() || c.running >= c.db.GetAllowedWithoutPermission() {
		return false, nil
	}
	c.running++
	return true, grant{c}
}

// UpdateGetAllowedWithoutPermission implements pebble.CompactionScheduler.
// Grants are offered often enough.
func (c *Scheduler) UpdateGetAllowedWithoutPermission() {}

// offer grants waiting compactions, as many as Pebble allows.
func (c *Scheduler) offer() {
	if c.busy() && !c.urgent() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.granting {
		c.idle.Wait()
	}
	c.granting = true
	for c.begun && !c.halted && c.running < c.db.GetAllowedWithoutPermission() {
		c.mu.Unlock() // Pebble takes locks of its own
		waiting, _ := c.db.GetWaitingCompaction()
		accepted := waiting && c.db.Schedule(grant{c})
		c.mu.Lock()
		if !accepted {
			break
		}
		c.running++
	}
	c.granting = false
	c.idle.Broadcast()
}

// grant is one compaction's permission.
type grant struct{ c *Scheduler }

func (grant) Started()                                          {}
func (grant) MeasureCPU(pebble.CompactionGoroutineKind)         {}
func (grant) CumulativeStats(pebble.CompactionGrantHandleStats) {}

func (g grant) Done() {
	g.c.mu.Lock()
	g.c.running--
	g.c.mu.Unlock()
	g.c.offer()
}
