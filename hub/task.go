package hub

import (
	"context"
	"encoding/binary"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
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

// TaskPage is Tasks, with the place of each.
func (h *Hub) TaskPage(ctx context.Context, q TaskQuery) (list []ListedTask, next string, err error) {
	return h.tasks.List(ctx, q, nil)
}

// FireTaskEvent tells listeners what a client reports of a task, whatever it
// is. The end of a task is audited, also of one that the hub does not know.
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
		if ev.Outcome == "" {
			ev.Outcome = kind
		}
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

// CheckpointTask stores one JSON object for a task. A later one replaces it.
// The task need not be known. A task that is not known belongs to the identity
// that writes its first checkpoint, which is as.
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

// TaskCheckpoint returns what was last kept for a task, byte for byte; nil if
// nothing was. That of a task which nobody observed is for its owner only; of
// others the caller says who may read it.
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

// mayName refuses a new task under an id whose checkpoint is another's: it would
// become the task's owner's.
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
