package disk

import (
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// compactions decides when Pebble may compact: as many at once as Pebble asks
// for, but while batches arrive only when it cannot wait, so that a burst has
// the disk for itself; and none any more after damage was found, because a
// compaction of a damaged table would be tried for ever.
type compactions struct {
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

func newCompactions(busy, urgent func() bool) *compactions {
	c := &compactions{busy: busy, urgent: urgent, stop: make(chan struct{})}
	c.idle = sync.NewCond(&c.mu)
	return c
}

// Register implements pebble.CompactionScheduler.
func (c *compactions) Register(_ int, db pebble.DBForCompaction) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.db = db
}

// Unregister implements pebble.CompactionScheduler.
func (c *compactions) Unregister() {
	c.halt()
	c.offering.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.granting {
		c.idle.Wait()
	}
}

// begin lets compactions run.
func (c *compactions) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun = true
}

// halt lets running compactions end and no other begin.
func (c *compactions) halt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.halted {
		c.halted = true
		close(c.stop)
	}
}

// keepOffering offers grants from now on until Pebble is closed: the flush that
// comes before that may have to wait for compactions.
func (c *compactions) keepOffering() {
	c.offering.Go(func() {
		ticker := time.NewTicker(keepInterval)
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
func (c *compactions) TrySchedule() (bool, pebble.CompactionGrantHandle) {
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
func (c *compactions) UpdateGetAllowedWithoutPermission() {}

// offer grants compactions that wait, as far as Pebble allows.
func (c *compactions) offer() {
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
type grant struct{ c *compactions }

func (grant) Started()                                          {}
func (grant) MeasureCPU(pebble.CompactionGoroutineKind)         {}
func (grant) CumulativeStats(pebble.CompactionGrantHandleStats) {}

func (g grant) Done() {
	g.c.mu.Lock()
	g.c.running--
	g.c.mu.Unlock()
	g.c.offer()
}
