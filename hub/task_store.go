package hub

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/task"
)

func errNoTask(id string) error {
	return fault.New(fault.NotFound, "task not found: '%s'", id).Because(fault.NoTask)
}

// readTask reads a task from what is durable.
func (h *Hub) readTask(ctx context.Context, id string, log journal.LogName) (*schema.StoredTask, error) {
	page, err := h.journal.Read(ctx, log, journal.ReadOptions{Backward: true, Limits: journal.Limits{Entries: 2, Bytes: journal.MaxPageBytes}})
	if err != nil {
		return nil, unavailable(err)
	}
	if len(page.Entries) == 0 {
		return nil, errNoTask(id)
	}
	return schema.ReadTask(id, page.Entries)
}

// Task returns what is known of a task.
func (h *Hub) Task(ctx context.Context, id string) (*task.Task, error) {
	place, ok, err := h.taskPlace(ctx, id)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, errNoTask(id)
	}
	t, err := h.readTask(ctx, id, place.Log)
	if err != nil {
		return nil, err
	}
	return &t.Task, nil
}

// TaskQuery selects tasks; its zero fields select everything.
type TaskQuery struct {
	Owner   string
	Open    bool // only those of an owner that have not ended
	Channel string
	State   task.State
	States  []task.State // only in one of these; none is any
	Newest  bool         // the newest first
	After   string       // next of the page before
	Limit   int          // 0: 50

	by *Caller // only those that it may see; see Access
}

// Tasks lists tasks in the order that they were first observed. Next goes on
// after them, and is empty at the end.
func (h *Hub) Tasks(ctx context.Context, q TaskQuery) (list []*task.Task, next string, err error) {
	page, next, err := h.TaskPage(ctx, q)
	for _, t := range page {
		list = append(list, t.Task)
	}
	return list, next, err
}

// ListedTask is a task with its place in a list.
type ListedTask struct {
	*task.Task
	Place string
}

// TaskPage is Tasks, with the place of each.
func (h *Hub) TaskPage(ctx context.Context, q TaskQuery) (list []ListedTask, next string, err error) {
	if q.State != "" {
		if _, err := task.ParseState(string(q.State)); err != nil {
			return nil, "", err
		}
	}
	if q.Limit <= 0 {
		q.Limit = 50
	}
	last, sees := "", h.As(q.by).seesTask(ctx)
	for entry, err := range journal.IndexAll(ctx, h.journal, schema.ListScan(q.prefix(), q.After, q.Newest)) {
		if err != nil {
			return nil, "", unavailable(err)
		}
		t, err := h.Task(ctx, string(entry.Value))
		if fault.CodeOf(err) == fault.NotFound {
			continue // removed with its channel since
		}
		if err != nil {
			return nil, "", err
		}
		if !q.selects(t) || !sees(t) {
			continue
		}
		if len(list) == q.Limit {
			return list, last, nil
		}
		last = schema.LastPart(entry.Key)
		list = append(list, ListedTask{t, last})
	}
	return list, "", nil
}

func (q *TaskQuery) selects(t *task.Task) bool {
	return (q.Owner == "" || t.Owner == q.Owner) && (q.State == "" || t.State == q.State) &&
		(q.States == nil || slices.Contains(q.States, t.State))
}

func (q *TaskQuery) prefix() []byte {
	switch {
	case q.Channel != "":
		return schema.Key(schema.IndexTaskChannel, schema.Digest(q.Channel), "")
	case q.Owner != "" && q.Open:
		return schema.Key(schema.IndexTaskOpen, schema.Digest(q.Owner), "")
	case q.Owner != "":
		return schema.Key(schema.IndexTaskOwner, schema.Digest(q.Owner), "")
	}
	return []byte(schema.IndexTask)
}

// countTasks is how many tasks of an owner have not ended.
func (h *Hub) countTasks(ctx context.Context, owner string) (n int64, err error) {
	scan := journal.ScanOptions{Prefix: schema.Key(schema.IndexTaskOpen, schema.Digest(owner), "")}
	for _, err := range journal.IndexAll(ctx, h.journal, scan) {
		if err != nil {
			return 0, unavailable(err)
		}
		n++
	}
	return n, nil
}

// lostClaim reports whether a batch lost a claim, and waits for the batch that
// it lost to.
func lostClaim(ctx context.Context, err error) bool {
	var conflict *journal.ConflictError
	if !errors.As(err, &conflict) || conflict.Kind != journal.ClaimConflict {
		return false
	}
	_ = conflict.LostTo.Wait(ctx) // the caller looks the task up again, however the batch ended
	return ctx.Err() == nil
}

// micro is an instant as records tell it.
func micro(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

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
