package hub

import (
	"context"
	"sync"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/task"
)

// taskCensus knows the tasks that have not ended, once somebody has asked for them.
type taskCensus struct {
	asking sync.Mutex // one count at a time

	mu      sync.Mutex
	open    map[string]task.State // nil: nobody has asked, or they are too many
	counts  map[task.State]int
	changed map[string]struct{} // while they are counted: what is known of them is newer
}

// maxTasksCounted bounds how many open tasks are known. Of more, those are counted
// that are found first, each time.
const maxTasksCounted = 100_000

// note takes what a task has become.
func (c *taskCensus) note(id string, s task.State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changed != nil {
		c.changed[id] = struct{}{}
	}
	c.put(id, s)
}

func (c *taskCensus) put(id string, s task.State) {
	if c.open == nil {
		return
	}
	if old, known := c.open[id]; known {
		c.counts[old]--
		delete(c.open, id)
	}
	if s.Terminal() {
		return
	}
	if c.open[id] = s; len(c.open) > maxTasksCounted {
		c.open, c.counts, c.changed = nil, nil, nil
		return
	}
	c.counts[s]++
}

// found takes a task as a scan found it, unless it has changed since.
func (c *taskCensus) found(id string, s task.State) (more bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, newer := c.changed[id]; !newer {
		c.put(id, s)
	}
	return c.open != nil
}

func (c *taskCensus) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open, c.counts, c.changed = map[string]task.State{}, map[task.State]int{}, map[string]struct{}{}
}

// forget has them counted anew the next time.
func (c *taskCensus) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open, c.counts, c.changed = nil, nil, nil
}

func (c *taskCensus) read() (counts map[task.State]int, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	counts = map[task.State]int{}
	for s, n := range c.counts {
		counts[s] = n
	}
	return counts, c.open != nil
}

// CountOpenTasks counts tasks that have not ended, by state. Only the first call
// looks at them.
func (h *Hub) CountOpenTasks(ctx context.Context) (map[task.State]int, error) {
	c := &h.taskCensus
	c.asking.Lock()
	defer c.asking.Unlock()
	if counts, known := c.read(); known {
		return counts, nil
	}
	c.begin()
	counted := map[task.State]int{}
	for entry, err := range journal.IndexAll(ctx, h.journal, journal.ScanOptions{Prefix: []byte(schema.IndexTaskOpen)}) {
		var t *task.Task
		if err == nil {
			t, err = h.Task(ctx, string(entry.Value))
		}
		if fault.CodeOf(err) == fault.NotFound {
			continue // removed with its channel since
		}
		if err != nil {
			c.forget()
			return nil, unavailable(err)
		}
		counted[t.State]++
		if !c.found(t.ID, t.State) {
			return counted, nil
		}
	}
	c.mu.Lock()
	c.changed = nil
	c.mu.Unlock()
	counts, known := c.read()
	if !known {
		counts = counted
	}
	return counts, nil
}
