package hub

import (
	"context"
	"time"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/journal"
)

// A channel's tasks change in its batches, under its lock: what was last
// ordered of each is kept with the fold.

// newTask puts a task that nobody has observed before into the batch.
func (w *writing) newTask(t Task, mirror Mirror) error {
	h := w.hub
	if limit := h.opts.Limits.OpenTasks; len(w.currentMarks().tasks) >= limit {
		return fault.New(fault.TooLarge, "channel '%s' has %d tasks that have not ended, which is the limit (limits.open_tasks)", w.ch.id, limit)
	}
	next := &running{Task: t}
	var err error
	if next.order, err = h.minter.Mint(w.now, ""); err != nil {
		return unavailable(err)
	}
	if err := w.putTask(nil, next, false); err != nil {
		return err
	}
	if !t.State.Terminal() && !w.meta.State.Terminal() {
		w.sideNote(sideRecord{Kind: sideTask, Task: t.ID}, nil)
	}
	if t.State == TaskRunning {
		return w.mirror(mirror, MirrorEnds, started(&t))
	}
	return nil
}

// putTask puts a task's next record into the batch.
func (w *writing) putTask(old, next *running, ending bool) error {
	record, err := taskWrite(old, next, ending)
	if err != nil {
		return err
	}
	expect := journal.Exactly(0)
	if old != nil {
		expect = journal.Exactly(old.seq)
		next.seq = old.seq
	}
	next.seq++
	w.tasks = append(w.tasks, journal.Append{
		Log: w.ch.partition().In(familyTask, next.ID), Expect: expect, Records: []journal.Record{record},
	})
	if w.running == nil {
		w.running = map[string]*running{}
	}
	w.running[next.ID] = next
	if old == nil || !next.State.Terminal() {
		return nil
	}
	h, ch := w.hub, w.ch
	w.after = append(w.after, func() {
		ch.forgetTask(next)
		h.tellEnded(next.Task)
	})
	return w.audit("task_terminated", next.terminated())
}

// editTask changes a task of the channel that has not ended.
func (w *writing) editTask(ctx context.Context, id string, may func(*running) error, mirror Mirror, edit func(t *Task, now time.Time) error) error {
	old, err := w.task(ctx, id)
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
	if err := edit(&next.Task, w.now); err != nil {
		return err
	}
	if err := next.bounded(w.hub.opts.Limits.EventBytes); err != nil {
		return err
	}
	if err := w.putTask(old, &next, false); err != nil {
		return err
	}
	if next.State.Terminal() && !w.meta.State.Terminal() {
		w.sideNote(sideRecord{Kind: sideTaskEnded, Task: id}, nil)
	}
	return w.mirrorChange(mirror, &old.Task, &next.Task)
}

// task is a task of the channel as it was last ordered.
func (w *writing) task(ctx context.Context, id string) (*running, error) {
	if w.ch.rare != nil && w.ch.rare.tasks[id] != nil {
		return w.ch.rare.tasks[id], nil
	}
	return w.hub.readTask(ctx, w.ch.partition().In(familyTask, id))
}

// keep remembers a task while the channel is folded.
func (r *rare) keep(id string, t *running) {
	if r.tasks == nil {
		r.tasks = map[string]*running{}
	}
	r.tasks[id] = t
}

// forgetTask lets a task go that has ended for good: it is read from now on.
func (ch *held) forgetTask(t *running) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.rare != nil && ch.rare.tasks[t.ID] == t {
		delete(ch.rare.tasks, t.ID)
	}
}

// endTasks ends every task of a channel that ends.
func (w *writing) endTasks() error {
	for _, id := range w.currentMarks().tasks {
		old, err := w.task(context.Background(), id)
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
		next.become(TaskExpired, w.now)
		next.Error = "channel_closed"
		if err := w.putTask(old, &next, true); err != nil {
			return err
		}
	}
	return nil
}
