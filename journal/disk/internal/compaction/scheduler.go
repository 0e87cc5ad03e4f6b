// Package compaction decides when Pebble may compact a store.
package compaction

import (
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// offerInterval is how often waiting compactions are offered a turn.
const offerInterval = 200 * time.Millisecond

// Scheduler decides when Pebble may compact: as many at once as Pebble asks
// for, but while batches arrive only when it cannot wait, so that a burst has
// the disk for itself; and none any more after damage was found, because a
// compaction of a damaged table would be tried for ever.
type Scheduler struct {
	busy     func() bool // batches are arriving
	urgent   func() bool // it cannot wait
	mu       sync.Mutex
	idle     *sync.Cond // nobody is granting
	db       pebble.DBForCompaction
	running  int
	granting bool
	begun    bool // the store is open; before that Pebble would wait for them
	halted   bool
	stop     chan struct{} // closed when halted
	offering sync.WaitGroup
}

// New returns a scheduler that asks whether batches are arriving and whether
// compactions cannot wait.
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

// Halt lets running compactions end and no other begin.
func (c *Scheduler) Halt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.halted {
		c.halted = true
		close(c.stop)
	}
}

// KeepOffering offers grants from now on until Pebble is closed: the flush that
// comes before that may have to wait for compactions.
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

// offer grants compactions that wait, as far as Pebble allows.
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
