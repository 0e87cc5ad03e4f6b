package ag2

import (
	"context"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/dialect/ag2/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/task"
)

// task returns a task that this connection may read: one of its identities owns the
// task, or the task belongs to a channel that it may read.
func (c *conn) task(ctx context.Context, id string) (*task.Task, error) {
	return c.server.cfg.Hub.As(c.caller()).Task(ctx, id)
}

func (c *conn) getTask(ctx context.Context, p wire.ByTask) ([]byte, error) {
	t, err := c.task(ctx, p.Task)
	if err != nil {
		return nil, err
	}
	return wire.AppendTask(nil, wire.NewTask(t)), nil
}

// listTasks lists the tasks that this connection may read, up to the size of a
// frame. As with channels, ended tasks do not displace an owner's open ones.
func (c *conn) listTasks(ctx context.Context, p wire.ListTasksParams) ([]byte, error) {
	if p.State != "" {
		if _, err := task.ParseState(p.State); err != nil {
			return nil, err
		}
	}
	limit := limitOf(p.Limit)
	q := hub.TaskQuery{Owner: p.Owner, Channel: p.Channel, State: task.State(p.State)}
	list, more, err := c.someTasks(ctx, q, limit)
	if err != nil {
		return nil, err
	}
	if more && limit > 0 && q.Owner != "" && q.Channel == "" && q.State == "" {
		q.Open = true
		open, _, err := c.someTasks(ctx, q, limit)
		if err != nil {
			return nil, err
		}
		list = keepOpen(list, open, limit,
			func(t *task.Task) string { return t.ID },
			func(t *task.Task) bool { return t.State.Terminal() })
	}
	return joined(list), nil
}

// someTasks lists tasks that this connection may read, up to the size of a frame.
func (c *conn) someTasks(ctx context.Context, q hub.TaskQuery, limit int) ([]entry[*task.Task], bool, error) {
	as := c.server.cfg.Hub.As(c.caller())
	return gather(limit, func(n int, after string) ([]*task.Task, string, error) {
		q.Limit, q.After = n, after
		return as.Tasks(ctx, q)
	}, func(t *task.Task) ([]byte, error) { return wire.AppendTask(nil, wire.NewTask(t)), nil })
}

func (c *conn) observeTask(ctx context.Context, p wire.ObserveTaskParams) ([]byte, error) {
	t := p.Metadata
	switch {
	case t == nil:
		return nil, fault.New(fault.Invalid, "'metadata' must be an object")
	case t.ID == "":
		return nil, fault.New(fault.Invalid, "'task_id' is missing")
	case t.Owner == "":
		return nil, fault.New(fault.Invalid, "'owner_id' is missing")
	}
	return nil, c.server.cfg.Hub.ObserveTask(ctx, t.Read(), c.caller(), c.mirror())
}

func (c *conn) updateTask(ctx context.Context, p wire.UpdateTaskParams) ([]byte, error) {
	return nil, c.server.cfg.Hub.UpdateTask(ctx, task.Update{
		ID: p.Task, State: task.State(p.State), Progress: p.Progress, Result: p.Result, Error: p.Error,
	}, c.caller(), c.mirror())
}

func (c *conn) mirror() hub.Mirror {
	if c.mirrorsOwn {
		return hub.MirrorOff
	}
	switch c.server.cfg.MirrorTasks {
	case MirrorOff:
		return hub.MirrorOff
	case MirrorAll:
		return hub.MirrorAll
	}
	return hub.MirrorEnds
}

// recordObservation counts the end of a task. An unknown owner is ignored.
func (c *conn) recordObservation(ctx context.Context, p wire.ObservationParams) ([]byte, error) {
	if _, err := task.ParseState(string(p.Outcome)); err != nil {
		return nil, err
	}
	h := c.server.cfg.Hub
	if _, err := h.AgentByID(p.Owner); err != nil {
		return nil, nil
	}
	if err := c.bound(p.Owner); err != nil {
		return nil, err
	}
	return nil, h.RecordObservation(ctx, hub.Observation{
		Owner: p.Owner, Capability: p.Capability, Outcome: p.Outcome, LatencyMS: (*int64)(p.LatencyMS), Task: p.Task,
	})
}

// fireTaskEvent passes on an owner's report about a task. If the hub does not know
// the task, the payload names its owner.
func (c *conn) fireTaskEvent(ctx context.Context, p wire.TaskEventParams) ([]byte, error) {
	owner, err := c.reporter(ctx, p)
	if err != nil {
		return nil, err
	}
	if err := c.bound(owner); err != nil {
		return nil, err
	}
	return nil, c.server.cfg.Hub.FireTaskEvent(ctx, p.Task, p.Kind, p.Payload)
}

func (c *conn) reporter(ctx context.Context, p wire.TaskEventParams) (string, error) {
	t, err := c.server.cfg.Hub.Task(ctx, p.Task)
	if err == nil {
		return t.Owner, nil
	}
	if fault.CodeOf(err) != fault.NotFound {
		return "", err
	}
	var said struct {
		Owner string `json:"owner_id"`
	}
	if len(p.Payload) > 0 && json.Unmarshal(p.Payload, &said) == nil && said.Owner != "" {
		return said.Owner, nil
	}
	return c.somebody(), nil
}

// somebody returns the identity of this connection that was registered first, if
// there is one. It acts for the connection if a request names no identity.
func (c *conn) somebody() string {
	all := c.identities()
	if len(all) == 0 {
		return ""
	}
	return slices.Min(all)
}

func (c *conn) checkpointTask(ctx context.Context, p wire.CheckpointParams) ([]byte, error) {
	as := c.somebody()
	if err := c.bound(as); err != nil && as == "" {
		return nil, err
	}
	return nil, c.server.cfg.Hub.CheckpointTask(ctx, p.Task, p.State, as, c.caller())
}

// readCheckpoint returns a task's checkpoint, which may exist without the task.
func (c *conn) readCheckpoint(ctx context.Context, p wire.ByTask) ([]byte, error) {
	h := c.server.cfg.Hub
	by := c.caller()
	if _, err := h.As(by).Task(ctx, p.Task); err != nil && fault.CodeOf(err) != fault.NotFound {
		return nil, err
	}
	if by.Role == hub.RoleOperator {
		by = nil
	}
	return h.TaskCheckpoint(ctx, p.Task, by)
}
