package hub

import (
	"cmp"
	"context"
	"encoding/binary"
	"maps"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/hub/internal/taskstore"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/task"
)

// TaskQuery selects tasks; its zero fields select everything.
type TaskQuery = taskstore.Query

// ListedTask is a task with its place in a list.
type ListedTask = taskstore.Listed

// Task returns what is known of a task.
func (h *Hub) Task(ctx context.Context, id string) (*task.Task, error) { return h.tasks.Task(ctx, id) }

// Tasks lists tasks in the order that they were first observed. Next goes on
// after them, and is empty at the end.
func (h *Hub) Tasks(ctx context.Context, q TaskQuery) (list []*task.Task, next string, err error) {
	return h.As(nil).Tasks(ctx, q)
}

// TaskPage is Tasks, with the place of each. A page looks at a bounded number of
// tasks: of a narrow selection it may be short, and Next goes on.
func (h *Hub) TaskPage(ctx context.Context, q TaskQuery) (list []ListedTask, next string, err error) {
	return h.tasks.List(ctx, q, nil)
}

// TaskTotal counts the tasks that the caller may see and that a query selects.
func (a Access) TaskTotal(ctx context.Context, q TaskQuery) (Total, error) {
	return a.hub.tasks.Total(ctx, q, a.seesTask(ctx))
}

// FireTaskEvent passes what a client reports of a task to the listeners, without
// checking it. The end of a task is audited, also of one that the hub does not know.
func (h *Hub) FireTaskEvent(ctx context.Context, taskID, kind string, payload []byte) error {
	if err := task.Objects(map[string][]byte{"payload": payload}); err != nil {
		return err
	}
	if len(payload) > h.opts.Limits.EventBytes {
		return fault.New(fault.TooLarge, "payload has %d bytes; at most %d (limits.event)", len(payload), h.opts.Limits.EventBytes)
	}
	said := map[string]jsontext.Value{}
	if len(payload) > 0 {
		if err := json.Unmarshal(payload, &said); err != nil {
			return fault.Wrap(fault.Invalid, err, "payload is refused: %v", err)
		}
	}
	text := func(name string) string {
		var s string
		_ = json.Unmarshal(said[name], &s) // what is not text is passed on as it is
		return s
	}
	ev := TaskEvent{
		Task: taskID, Kind: kind, Owner: text("owner_id"), Channel: text("channel_id"), Reason: text("reason"),
		Capability: text("capability"), Outcome: text("outcome"), At: h.now().UTC(), Payload: payload,
	}
	if at, err := envelope.ParseTime(text("started_at")); err == nil {
		ev.StartedAt = at
	}
	if task.State(kind).Terminal() {
		ev.Outcome = cmp.Or(ev.Outcome, kind)
		place, err := h.auditPlace(ctx, ev.Channel)
		if err != nil {
			return err
		}
		if err := h.ledger.AuditIn(ctx, place, "task_terminated", fields{
			"task_id": taskID, "owner_id": orNil(ev.Owner), "channel_id": orNil(ev.Channel), "outcome": ev.Outcome,
			"capability": orNil(ev.Capability), "reason": ev.Reason,
		}); err != nil {
			return err
		}
	}
	h.hooks.each(func(l Listener) { l.TaskEvent(ev) })
	return nil
}

// CheckpointTask stores one JSON object for a task, and replaces an earlier one. The task
// need not be known. A task that is not known belongs to the identity that writes its
// first checkpoint, which is as.
func (h *Hub) CheckpointTask(ctx context.Context, taskID string, state []byte, as string, by *Caller) error {
	if v := jsontext.Value(state); v.Kind() != '{' || !v.IsValid() {
		return fault.New(fault.Invalid, "state of task '%s' is not a JSON object", taskID)
	}
	if len(state) > h.opts.Limits.EventBytes {
		return fault.New(fault.TooLarge, "state of task '%s' has %d bytes; at most %d (limits.event)", taskID, len(state), h.opts.Limits.EventBytes)
	}
	owner := as
	t, err := h.Task(ctx, taskID)
	switch {
	case err == nil:
		owner = t.Owner
	case fault.CodeOf(err) != fault.NotFound:
		return err
	}
	for {
		value, err := h.journal.Value(ctx, h.tenant.Checkpoint(taskID))
		if err != nil {
			return unavailable(err)
		}
		if first, _, ok := cutCheckpoint(value.Ordered.Data); ok && t == nil {
			owner = first
		}
		if !by.MayActFor(owner) {
			return errNotOwner(taskID, owner)
		}
		data := append(binary.AppendUvarint(nil, uint64(len(owner))), owner...)
		err = h.commit(ctx, journal.Batch{Values: []journal.ValueWrite{{
			Key: h.tenant.Checkpoint(taskID), Data: append(data, state...), Expect: journal.Exactly(value.Ordered.Version),
		}}})
		if !isConflict(err) || ctx.Err() != nil {
			return err
		}
	}
}

// TaskCheckpoint returns the last checkpoint of a task, byte for byte; nil: there is none.
// If the task was never observed, only its owner may read it; otherwise the caller of this
// method decides who may.
func (h *Hub) TaskCheckpoint(ctx context.Context, taskID string, by *Caller) ([]byte, error) {
	value, err := h.journal.Value(ctx, h.tenant.Checkpoint(taskID))
	if err != nil {
		return nil, unavailable(err)
	}
	owner, state, ok := cutCheckpoint(value.Durable.Data)
	if !ok && value.Durable.Version != 0 {
		return nil, fault.New(fault.Internal, "the checkpoint of task '%s' cannot be read", taskID)
	}
	if ok && !by.MayActFor(owner) {
		if _, err := h.Task(ctx, taskID); fault.CodeOf(err) == fault.NotFound {
			return nil, fault.New(fault.AccessDenied, "the checkpoint of task '%s' belongs to '%s': only its owner may read it", taskID, owner)
		}
	}
	return state, nil
}

// mayName refuses a new task under an id whose checkpoint belongs to another identity:
// the checkpoint would then belong to the task's owner.
func (h *Hub) mayName(ctx context.Context, taskID string, by *Caller) error {
	value, err := h.journal.Value(ctx, h.tenant.Checkpoint(taskID))
	if err != nil {
		return unavailable(err)
	}
	if owner, _, ok := cutCheckpoint(value.Ordered.Data); ok && !by.MayActFor(owner) {
		return fault.New(fault.AccessDenied, "the checkpoint of task '%s' belongs to '%s': choose another id", taskID, owner)
	}
	return nil
}

func cutCheckpoint(data []byte) (owner string, state []byte, ok bool) {
	n, size := binary.Uvarint(data)
	if size <= 0 || n > uint64(len(data)-size) {
		return "", nil, false
	}
	rest := data[size:]
	return string(rest[:n]), rest[n:], true
}

// taskCensus knows the tasks that have not ended, from its first use on.
type taskCensus struct {
	asking sync.Mutex // one count at a time

	mu      sync.Mutex
	open    map[string]task.State // nil: nobody has asked, or they are too many
	counts  map[task.State]int
	changed map[string]struct{} // while they are counted: what is known of them is newer
}

// maxTasksCounted bounds how many open tasks are known. If there are more, each call
// counts the first ones that it finds.
const maxTasksCounted = 100_000

// note records the state of a task.
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

// found records a task that a scan found, unless it has changed since.
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

// forget makes the next call count again.
func (c *taskCensus) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open, c.counts, c.changed = nil, nil, nil
}

func (c *taskCensus) read() (counts map[task.State]int, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	counts = map[task.State]int{}
	maps.Copy(counts, c.counts)
	return counts, c.open != nil
}

// CountOpenTasks counts tasks that have not ended, by state. Only the first call reads
// them.
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
