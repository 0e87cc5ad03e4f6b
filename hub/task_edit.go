package hub

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"sync"
	"time"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/hub/internal/taskstore"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/task"
)

// works serializes changes to an owner's tasks that no channel's lock guards, and
// additions to those that its rule limits.
type works struct {
	seed    maphash.Seed
	stripes [64]sync.Mutex
}

func (w *works) init() { w.seed = maphash.MakeSeed() }

func (w *works) lock(owner string) (unlock func()) {
	mu := &w.stripes[maphash.String(w.seed, owner)%uint64(len(w.stripes))]
	mu.Lock()
	return mu.Unlock
}

// ObserveTask reports a task to the hub: a new one, or a change of a known one. A task that
// has ended does not change.
func (h *Hub) ObserveTask(ctx context.Context, t task.Task, by *Caller, mirror Mirror) error {
	if err := t.Accept(h.opts.Limits.EventBytes); err != nil {
		return err
	}
	if !by.MayActFor(t.Owner) {
		return errNotOwner(t.ID, t.Owner)
	}
	for {
		log, known, err := h.tasks.Find(ctx, t.ID)
		if err != nil {
			return err
		}
		if known {
			return h.editTask(ctx, t.ID, log, by, mirror, func(old *task.Task, now time.Time) error { return old.Observe(&t, now) })
		}
		if err := h.mayName(ctx, t.ID, by); err != nil {
			return err
		}
		if err := h.newTask(ctx, t, mirror); !errors.Is(err, taskstore.ErrThere) || ctx.Err() != nil {
			return unavailable(err)
		}
	}
}

func errNotOwner(id, owner string) error {
	return fault.New(fault.AccessDenied, "task '%s' belongs to '%s': only its owner may write to it", id, owner)
}

// UpdateTask changes a known task. A task that has ended does not change, which is not an
// error.
func (h *Hub) UpdateTask(ctx context.Context, u task.Update, by *Caller, mirror Mirror) error {
	if u.State != "" {
		if _, err := task.ParseState(string(u.State)); err != nil {
			return err
		}
	}
	if err := task.Objects(map[string][]byte{"progress": u.Progress}); err != nil {
		return err
	}
	log, known, err := h.tasks.Find(ctx, u.ID)
	if err != nil {
		return err
	}
	if !known {
		return taskstore.NotFound(u.ID)
	}
	return h.editTask(ctx, u.ID, log, by, mirror, func(t *task.Task, now time.Time) error { return t.Apply(u, now) })
}

// newTask stores a task that nobody has observed before.
func (h *Hub) newTask(ctx context.Context, t task.Task, mirror Mirror) error {
	t.State = cmp.Or(t.State, task.Created)
	if t.CreatedAt.IsZero() {
		t.CreatedAt = h.now().UTC().Truncate(time.Microsecond)
	}
	limit := int64(0)
	if m := h.registry.ByID(t.Owner); m != nil {
		limit = m.Profile().Enforced().Limits.MaxConcurrentTasks
	}
	if limit > 0 {
		defer h.works.lock(t.Owner)()
		open, err := h.tasks.CountOf(ctx, t.Owner)
		if err != nil {
			return err
		}
		if open >= limit {
			return fault.New(fault.AccessDenied, "'%s' has %d tasks that have not ended, its max_concurrent_tasks is %d", h.Name(t.Owner), open, limit)
		}
	}
	if t.Channel != "" {
		if err := h.newTaskIn(ctx, t, mirror); !Deleted(err) {
			return err
		}
	}
	if err := h.tasks.Claim(ctx, t.ID, schema.TaskIn(h.tenant.Owner(t.Owner), t.ID), ""); err != nil {
		return err
	}
	next := &schema.StoredTask{Task: t}
	var err error
	if next.Order, err = h.minter.Mint(h.now(), ""); err != nil {
		return unavailable(err)
	}
	if err = h.storeTask(ctx, nil, next); isConflict(err) {
		return taskstore.ErrThere
	}
	return err
}

// newTaskIn stores a new task in its channel. The channel may be deleted at any moment
// before that.
func (h *Hub) newTaskIn(ctx context.Context, t task.Task, mirror Mirror) error {
	m, err := h.Channel(ctx, t.Channel)
	if err != nil {
		return err
	}
	in, err := h.membersOf(ctx, m)
	if err != nil {
		return err
	}
	if !in.Has(t.Owner) && !h.opts.TrustClients {
		return fault.New(fault.AccessDenied, "'%s' takes no part in channel '%s', so its tasks cannot belong to it; leave channel_id out", h.Name(t.Owner), t.Channel)
	}
	if err := h.tasks.Claim(ctx, t.ID, h.tenant.Channel(t.Channel).Task(t.ID), t.Channel); err != nil {
		return err
	}
	return h.editIn(ctx, t.Channel, func(b *batch) error { return b.newTask(ctx, t, mirror) })
}

// editIn runs one batch on a channel and waits for it.
func (h *Hub) editIn(ctx context.Context, channelID string, put func(b *batch) error) error {
	p, err := h.writeBatch(ctx, channelID, put)
	if err != nil || p == nil {
		return err
	}
	_, err = p.Wait(ctx)
	return err
}

// editTask changes a known task that has not ended, wherever it is.
func (h *Hub) editTask(ctx context.Context, id string, log journal.LogName, by *Caller, mirror Mirror, edit func(t *task.Task, now time.Time) error) error {
	may := func(t *schema.StoredTask) error {
		if !by.MayActFor(t.Owner) {
			return errNotOwner(t.ID, t.Owner)
		}
		return nil
	}
	if in, ok := schema.ChannelOf(log); ok {
		err := h.editIn(ctx, in, func(b *batch) error { return b.editTask(ctx, id, may, mirror, edit) })
		return unavailable(err)
	}
	unlock := h.works.lock(log.Partition)
	defer unlock()
	old, err := h.tasks.Read(ctx, id, log)
	if err != nil {
		return err
	}
	if err := may(old); err != nil || old.State.Terminal() {
		return err
	}
	next := *old
	if err := edit(&next.Task, h.now()); errors.Is(err, errNothing) {
		return nil
	} else if err != nil {
		return err
	}
	if err := next.Bound(h.opts.Limits.EventBytes); err != nil {
		return err
	}
	return h.storeTask(ctx, old, &next)
}

// storeTask writes a task that belongs to no channel.
func (h *Hub) storeTask(ctx context.Context, old, next *schema.StoredTask) error {
	record, err := schema.WriteTask(old, next, false)
	if err != nil {
		return err
	}
	p := h.tenant.Owner(next.Owner)
	expect := journal.Exactly(0)
	if old != nil {
		expect = journal.Exactly(old.Seq)
	}
	commit := journal.Batch{Appends: []journal.Append{{Log: schema.TaskIn(p, next.ID), Expect: expect, Records: []journal.Record{record}}}}
	ended := old != nil && next.State.Terminal()
	if ended {
		line, err := h.auditRecord("task_terminated", terminated(&next.Task))
		if err != nil {
			return err
		}
		commit.Appends = append(commit.Appends, journal.Append{Log: schema.AuditIn(p), Records: []journal.Record{line}})
	}
	ticket, err := h.journal.Append(ctx, commit)
	if err != nil {
		return err
	}
	if err := ticket.Wait(ctx); err != nil {
		return unavailable(err)
	}
	h.ledger.StoredIn(&commit)
	h.taskCensus.note(next.ID, next.State)
	if ended {
		h.tellEnded(next.Task)
	}
	return nil
}

// terminated returns the audit fields of a task's end.
func terminated(t *task.Task) fields {
	return fields{
		"task_id": t.ID, "owner_id": t.Owner, "channel_id": orNil(t.Channel), "outcome": string(t.State),
		"capability": orNil(t.Spec.Capability), "reason": t.Error,
	}
}

func orNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func (h *Hub) tellEnded(t task.Task) {
	ev := TaskEvent{
		Task: t.ID, Kind: string(t.State), Owner: t.Owner, Channel: t.Channel, Reason: t.Error,
		Capability: t.Spec.Capability, Outcome: string(t.State), StartedAt: t.StartedAt, At: t.CompletedAt,
	}
	h.hooks.each(func(l Listener) { l.TaskEvent(ev) })
}

// sweepTasks ends the tasks whose time has run out.
func (h *Hub) sweepTasks(ctx context.Context) int {
	now := h.now()
	return h.sweepEntries(ctx, schema.DueTask, schema.DueBy(schema.DueTask, now), func(entry journal.IndexEntry) error {
		return h.expireTask(ctx, string(entry.Value), now)
	})
}

func (h *Hub) expireTask(ctx context.Context, id string, now time.Time) error {
	log, known, err := h.tasks.Find(ctx, id)
	if err != nil || !known {
		return err
	}
	return h.editTask(ctx, id, log, nil, MirrorOff, func(t *task.Task, at time.Time) error {
		if t.ExpiresAt.IsZero() || t.ExpiresAt.After(now) {
			return errNothing
		}
		t.Become(task.Expired, at)
		t.Error = "ttl_expired"
		return nil
	})
}
