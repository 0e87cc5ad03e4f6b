package hub

import (
	"context"
	"time"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/hub/internal/taskstore"
	"github.com/parley-hub/parley/internal/jsonbuf"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/task"
)

// A channel's tasks change in its batches, under its lock: the last ordered state of each
// is kept with the fold.

// newTask puts a task that nobody has observed before into the batch.
func (b *batch) newTask(ctx context.Context, t task.Task, mirror Mirror) error {
	h := b.hub
	switch _, err := b.task(ctx, t.ID); {
	case err == nil:
		return taskstore.ErrThere
	case fault.CodeOf(err) != fault.NotFound:
		return err
	}
	if err := b.ownerHasRoom(ctx, t.Owner); err != nil {
		return err
	}
	if limit := h.opts.Limits.OpenTasks; len(b.currentMarks().Tasks) >= limit {
		return fault.New(fault.TooLarge, "channel '%s' has %d tasks that have not ended, which is the limit (limits.open_tasks)", b.ch.id, limit)
	}
	next := &schema.StoredTask{Task: t}
	var err error
	if next.Order, err = h.minter.Mint(b.now, ""); err != nil {
		return unavailable(err)
	}
	if err := b.putTask(nil, next, false); err != nil {
		return err
	}
	if !t.State.Terminal() && !b.meta.State.Terminal() {
		b.sideNote(schema.SideRecord{Kind: schema.SideTask, Task: t.ID}, nil)
	}
	if t.State == task.Running {
		return b.mirror(mirror, MirrorEnds, started(&t))
	}
	return nil
}

// ownerHasRoom refuses an owner that has too many of the channel's open tasks, so that
// room is left for others.
func (b *batch) ownerHasRoom(ctx context.Context, owner string) error {
	open, limit := b.currentMarks().Tasks, b.hub.opts.Limits.OpenTasksOwner
	if len(open) < limit {
		return nil
	}
	count := 0
	for _, id := range open {
		t, err := b.task(ctx, id)
		if err != nil && fault.CodeOf(err) != fault.NotFound {
			return err
		}
		if err == nil && t.Owner == owner {
			count++
		}
	}
	if count >= limit {
		return fault.New(fault.TooLarge, "'%s' has %d tasks in channel '%s' that have not ended, which is the limit for one owner (limits.open_tasks_owner)",
			b.hub.Name(owner), count, b.ch.id)
	}
	return nil
}

// putTask puts a task's next record into the batch.
func (b *batch) putTask(old, next *schema.StoredTask, ending bool) error {
	record, err := schema.WriteTask(old, next, ending)
	if err != nil {
		return err
	}
	expect := journal.Exactly(0)
	if old != nil {
		expect = journal.Exactly(old.Seq)
		next.Seq = old.Seq
	}
	next.Seq++
	b.tasks = append(b.tasks, journal.Append{
		Log: b.ch.logs.Task(next.ID), Expect: expect, Records: []journal.Record{record},
	})
	if b.running == nil {
		b.running = map[string]*schema.StoredTask{}
	}
	b.running[next.ID] = next
	h := b.hub
	id, state := next.ID, next.State
	b.after = append(b.after, func() { h.taskCensus.note(id, state) })
	if old == nil || !next.State.Terminal() {
		return nil
	}
	ch := b.ch
	b.after = append(b.after, func() {
		ch.forgetTask(next)
		h.tellEnded(next.Task)
	})
	return b.audit("task_terminated", terminated(&next.Task))
}

// editTask changes a task of the channel that has not ended.
func (b *batch) editTask(ctx context.Context, id string, may func(*schema.StoredTask) error, mirror Mirror, edit func(t *task.Task, now time.Time) error) error {
	old, err := b.task(ctx, id)
	if err != nil {
		return err
	}
	if err := may(old); err != nil {
		return err
	}
	if old.State.Terminal() {
		return errNothing
	}
	next := *old
	if err := edit(&next.Task, b.now); err != nil {
		return err
	}
	if err := next.Bound(b.hub.opts.Limits.EventBytes); err != nil {
		return err
	}
	if err := b.putTask(old, &next, false); err != nil {
		return err
	}
	if next.State.Terminal() && !b.meta.State.Terminal() {
		b.sideNote(schema.SideRecord{Kind: schema.SideTaskEnded, Task: id}, nil)
	}
	return b.mirrorChange(mirror, &old.Task, &next.Task)
}

// task is a task of the channel as it was last ordered.
func (b *batch) task(ctx context.Context, id string) (*schema.StoredTask, error) {
	if b.ch.extras != nil && b.ch.extras.tasks[id] != nil {
		return b.ch.extras.tasks[id], nil
	}
	return b.hub.tasks.Read(ctx, id, b.ch.logs.Task(id))
}

// setTask remembers a task while the channel is folded.
func (r *extras) setTask(id string, t *schema.StoredTask) {
	if r.tasks == nil {
		r.tasks = map[string]*schema.StoredTask{}
	}
	r.tasks[id] = t
}

// forgetTask drops a task that has ended; it is read from the journal from now on.
func (ch *loadedChannel) forgetTask(t *schema.StoredTask) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.extras != nil && ch.extras.tasks[t.ID] == t {
		delete(ch.extras.tasks, t.ID)
	}
}

// endTasks ends every task of a channel that ends.
func (b *batch) endTasks() error {
	for _, id := range b.currentMarks().Tasks {
		old, err := b.task(context.Background(), id)
		if fault.CodeOf(err) == fault.NotFound {
			continue
		}
		if err != nil {
			return err
		}
		if old.State.Terminal() {
			continue
		}
		next := *old
		next.Become(task.Expired, b.now)
		next.Error = "channel_closed"
		if err := b.putTask(old, &next, true); err != nil {
			return err
		}
	}
	return nil
}

// Mirror says how much of a client's task operations is posted to the task's channel as
// envelopes. They are posted only during the owner's turn: it has received an envelope of
// that channel that it has not acked.
type Mirror int

// What is mirrored.
const (
	MirrorOff  Mirror = iota
	MirrorEnds        // start and end
	MirrorAll         // progress too
)

// echo is an envelope about a task.
type echo struct {
	task *task.Task
	kind string
	data func(buf *jsonbuf.Buffer)
}

func started(t *task.Task) echo {
	return echo{t, envelope.TypeTaskStarted, func(buf *jsonbuf.Buffer) { t.Spec.AppendTo(buf.Key("spec")) }}
}

func progressed(t *task.Task) echo {
	return echo{t, envelope.TypeTaskProgress, func(buf *jsonbuf.Buffer) { buf.Key("progress").Object(t.Progress) }}
}

func finished(t *task.Task) echo {
	switch t.State {
	case task.Completed:
		return echo{t, envelope.TypeTaskCompleted, func(buf *jsonbuf.Buffer) {
			if buf.Key("result"); t.Result == nil {
				buf.Null()
			} else {
				buf.Value(t.Result)
			}
		}}
	case task.Failed:
		return echo{t, envelope.TypeTaskFailed, func(buf *jsonbuf.Buffer) { buf.Key("error").String(t.Error) }}
	case task.Cancelled:
		return echo{t, envelope.TypeTaskCancelled, func(buf *jsonbuf.Buffer) { buf.Key("reason").String(t.Error) }}
	default:
		return echo{t, envelope.TypeTaskExpired, func(buf *jsonbuf.Buffer) { buf.Key("reason").String(t.Error) }}
	}
}

// mirrorChange tells the channel what changed of a task.
func (b *batch) mirrorChange(level Mirror, old, next *task.Task) error {
	if next.State == task.Running && old.State != task.Running {
		if err := b.mirror(level, MirrorEnds, started(next)); err != nil {
			return err
		}
	}
	if string(old.Progress) != string(next.Progress) {
		if err := b.mirror(level, MirrorAll, progressed(next)); err != nil {
			return err
		}
	}
	if !next.State.Terminal() {
		return nil
	}
	told := *next
	if len(told.Result) > b.hub.mostMirrored() {
		told.Result = nil // it is read with the task
	}
	return b.mirror(level, MirrorEnds, finished(&told))
}

// mostMirrored is the largest payload of a mirrored envelope that, with its frame, is
// no larger than an envelope with a payload of limits.event.
func (h *Hub) mostMirrored() int { return h.opts.Limits.EventBytes - h.opts.Limits.EventBytes/16 }

// mirror adds an envelope of the task's owner, out of turn, unless the adapter would
// refuse it. An adapter with its own form for work also knows whose turn it is.
func (b *batch) mirror(level, needed Mirror, x echo) error {
	if level < needed || b.meta.State.Terminal() || b.state == nil {
		return nil
	}
	worker, own := b.ch.adapter.(channel.Worker)
	if !own && !b.ch.seats.Busy(b.meta, x.task.Owner) {
		return nil
	}
	buf := &jsonbuf.Buffer{}
	buf.Open('{').Key("task_id").String(x.task.ID)
	x.data(buf)
	data, err := buf.Close('}').Result()
	if err != nil {
		return err
	}
	if len(data) > b.hub.mostMirrored() {
		return nil // no recipient could read it
	}
	e := &envelope.Envelope{
		Channel: b.ch.id, Sender: x.task.Owner, Type: x.kind, Task: x.task.ID, Data: data, Priority: envelope.Normal,
	}
	if !own {
		return b.tellTask(e, channel.History)
	}
	drafts, err := worker.Work(b.meta, b.state, e.Sender, b.hub.workStep(e, b.now))
	if err != nil {
		return nil // left out, like what ValidateSend refuses
	}
	for i := range drafts {
		told := drafts[i].Envelope.Clone()
		told.Channel, told.Sender, told.Task, told.Priority = e.Channel, e.Sender, e.Task, e.Priority
		if err := b.tellTask(told, drafts[i].Where); err != nil {
			return err
		}
	}
	return nil
}

// workStep reads a task event as a step of work that is told now.
func (h *Hub) workStep(e *envelope.Envelope, now time.Time) *channel.Item {
	e.CreatedAt = now
	step := channel.ReadOther(nil, e)[0]
	step.Name = h.Name(e.Sender)
	return &step
}

// tellTask adds an envelope that tells of a task.
func (b *batch) tellTask(e *envelope.Envelope, where channel.Where) error {
	if where == channel.Live {
		return b.addLive(e)
	}
	if b.ch.adapter.ValidateSend(b.meta, b.state, e) != nil {
		return nil
	}
	if err := b.add(e, true); err != nil {
		return err
	}
	to, err := b.recipients(e)
	if err != nil {
		return err
	}
	b.tell(to)
	return b.apply(b.ch.adapter.OnAccepted(b.meta, b.state, e))
}
