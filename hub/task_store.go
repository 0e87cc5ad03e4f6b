package hub

import (
	"context"
	"errors"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/jsonbuf"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/task"
)

// A task has a log of its own, beside the channel that it belongs to, or its
// owner's. The first record claims the task's id, so that whoever looks for a
// task finds its log by the claim.

// Index keys of tasks; each entry's value tells where the task is.
const (
	indexTask        = "task/"         // + order: every task
	indexTaskOwner   = "task-owner/"   // + hash of owner / order
	indexTaskChannel = "task-channel/" // + hash of channel / order
	indexTaskOpen    = "task-open/"    // + hash of owner / order: while it has not ended
)

func claimTask(id string) string { return "task/" + digest(id) }

// ownerPartition holds the tasks of an owner that belong to no channel.
func ownerPartition(owner string) journal.PartitionName {
	return journal.PartitionName{Tenant: tenant, Partition: "agent/" + digest(owner)}
}

// running is a task as it was last stored or ordered.
type running struct {
	task.Task
	order string // minted when it was first observed
	seq   uint64 // of its log's last record
}

// taskRecord is one record of a task's log: all of it, or at its end, if
// nothing else changed, only that.
type taskRecord struct {
	Order string         `json:"order"`
	Task  jsontext.Value `json:"task,omitzero"`
	End   *taskEnd       `json:"end,omitzero"`
}

type taskEnd struct {
	State task.State `json:"state"`
	Error string     `json:"error"`
	At    string     `json:"at"`
}

// taskWrite makes the record that turns old, nil for a new task, into next.
// Ending is true for a record that only ends the task: it is small, so that
// many fit the batch of their channel's end.
func taskWrite(old *running, next *running, ending bool) (journal.Record, error) {
	buf := &jsonbuf.Buffer{}
	buf.Open('{').Key("order").String(next.order)
	if ending {
		buf.Key("end").Open('{')
		buf.Key("state").String(string(next.State))
		buf.Key("error").String(next.Error)
		buf.Key("at").String(envelope.FormatTime(next.CompletedAt))
		buf.Close('}')
	} else {
		next.AppendTo(buf.Key("task"))
	}
	data, err := buf.Close('}').Result()
	if err != nil {
		return journal.Record{}, fault.Wrap(fault.Invalid, err, "task '%s' cannot be written: %v", next.ID, err)
	}
	r := journal.Record{Data: data}
	if old == nil {
		r.Take = []journal.Take{{Name: claimTask(next.ID)}}
	}
	taskIndex(&r, old, next)
	return r, nil
}

// taskIndex says what a record changes in the index.
func taskIndex(r *journal.Record, old, next *running) {
	put := func(k []byte) {
		r.Put = append(r.Put, journal.IndexPut{Key: k, Value: []byte(next.place())})
	}
	open := key(indexTaskOpen, digest(next.Owner), next.order)
	ended := next.State.Terminal()
	if old == nil {
		put(key(indexTask, next.order))
		put(key(indexTaskOwner, digest(next.Owner), next.order))
		if next.Channel != "" {
			put(key(indexTaskChannel, digest(next.Channel), next.order))
		}
		if !ended {
			put(open)
		}
	} else if ended {
		r.Remove = append(r.Remove, open)
	}
	if old != nil && !old.ExpiresAt.IsZero() && (ended || !old.ExpiresAt.Equal(next.ExpiresAt)) {
		r.Remove = append(r.Remove, taskDue(old))
	}
	if !ended && !next.ExpiresAt.IsZero() && (old == nil || !old.ExpiresAt.Equal(next.ExpiresAt)) {
		put(taskDue(next))
	}
}

func taskDue(t *running) []byte { return dueKey(dueTask, t.ExpiresAt, t.order) }

// place is what index entries tell of a task: enough to find it by its claim.
func (t *running) place() string { return t.ID }

// findTask returns the log of a task; ok is false if nobody has observed it.
func (h *Hub) findTask(ctx context.Context, id string) (log journal.LogName, ok bool, err error) {
	for {
		state, err := h.journal.Claim(ctx, h.shard(), claimTask(id))
		if err != nil {
			return log, false, unavailable(err)
		}
		if state.Pending == nil {
			if state.Durable == nil {
				return log, false, nil
			}
			return state.Durable.Log, true, nil
		}
		if err := state.Pending.Wait(ctx); err != nil && ctx.Err() != nil {
			return log, false, unavailable(err)
		}
	}
}

func errNoTask(id string) error { return fault.New(fault.NotFound, "task not found: '%s'", id) }

// readTask reads a task from what is durable.
func (h *Hub) readTask(ctx context.Context, log journal.LogName) (*running, error) {
	page, err := h.journal.Read(ctx, log, journal.ReadOptions{Backward: true, Limits: journal.Limits{Entries: 2, Bytes: journal.MaxPageBytes}})
	if err != nil {
		return nil, unavailable(err)
	}
	if len(page.Entries) == 0 {
		return nil, errNoTask(log.ID)
	}
	t := &running{seq: page.Entries[0].Seq}
	var end *taskEnd
	for _, entry := range page.Entries {
		var r taskRecord
		if err := json.Unmarshal(entry.Data, &r); err != nil {
			return nil, fault.Wrap(fault.Internal, err, "record %d of task '%s' cannot be read: %v", entry.Seq, log.ID, err)
		}
		if r.End != nil {
			end = r.End
			continue
		}
		if err := t.Task.UnmarshalJSON(r.Task); err != nil {
			return nil, fault.Wrap(fault.Internal, err, "record %d of task '%s' cannot be read: %v", entry.Seq, log.ID, err)
		}
		t.order = r.Order
		break
	}
	if end != nil {
		at, err := envelope.ParseTime(end.At)
		if err != nil {
			return nil, fault.Wrap(fault.Internal, err, "the end of task '%s' cannot be read: %v", log.ID, err)
		}
		t.State, t.Error, t.CompletedAt = end.State, end.Error, at
	}
	return t, nil
}

// Task returns what is known of a task.
func (h *Hub) Task(ctx context.Context, id string) (*task.Task, error) {
	log, ok, err := h.findTask(ctx, id)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, errNoTask(id)
	}
	t, err := h.readTask(ctx, log)
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
	Match   func(*task.Task) bool // nil: every one
	After   string                // next of the page before
	Limit   int                   // 0: 50
}

// Tasks lists tasks in the order that they were first observed. Next goes on
// after them, and is empty at the end.
func (h *Hub) Tasks(ctx context.Context, q TaskQuery) (list []*task.Task, next string, err error) {
	if q.State != "" {
		if _, err := task.ParseState(string(q.State)); err != nil {
			return nil, "", err
		}
	}
	if q.Limit <= 0 {
		q.Limit = 50
	}
	scan := journal.ScanOptions{Prefix: q.prefix()}
	if q.After != "" {
		scan.From = append(append([]byte{}, scan.Prefix...), q.After+"\x00"...)
	}
	last := ""
	for entry, err := range journal.Index(ctx, h.journal, h.shard(), scan) {
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
		if !q.selects(t) {
			continue
		}
		if len(list) == q.Limit {
			return list, last, nil
		}
		list, last = append(list, t), lastPart(entry.Key)
	}
	return list, "", nil
}

func (q *TaskQuery) selects(t *task.Task) bool {
	return (q.Owner == "" || t.Owner == q.Owner) && (q.State == "" || t.State == q.State) && (q.Match == nil || q.Match(t))
}

func (q *TaskQuery) prefix() []byte {
	switch {
	case q.Channel != "":
		return key(indexTaskChannel, digest(q.Channel), "")
	case q.Owner != "" && q.Open:
		return key(indexTaskOpen, digest(q.Owner), "")
	case q.Owner != "":
		return key(indexTaskOwner, digest(q.Owner), "")
	}
	return []byte(indexTask)
}

// countTasks is how many tasks of an owner have not ended.
func (h *Hub) countTasks(ctx context.Context, owner string) (n int64, err error) {
	scan := journal.ScanOptions{Prefix: key(indexTaskOpen, digest(owner), "")}
	for _, err := range journal.Index(ctx, h.journal, h.shard(), scan) {
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
	_ = conflict.LostTo.Wait(ctx) // whichever way it ended, it is looked up again
	return ctx.Err() == nil
}

// micro is an instant as records tell it.
func micro(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }
