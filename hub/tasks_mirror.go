package hub

import (
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/internal/jsonbuf"
)

// Mirror is how much of a client's task operations is told to the task's
// channel as envelopes. It is told only while the owner's turn runs: it was
// handed something of that channel that it has not acked.
type Mirror int

// What is mirrored.
const (
	MirrorOff  Mirror = iota
	MirrorEnds        // start and end
	MirrorAll         // progress too
)

// echo is an envelope that tells of a task.
type echo struct {
	task *Task
	kind string
	data func(b *jsonbuf.Buffer)
}

func started(t *Task) echo {
	return echo{t, envelope.TypeTaskStarted, func(b *jsonbuf.Buffer) { t.Spec.appendTo(b.Key("spec")) }}
}

func progressed(t *Task) echo {
	return echo{t, envelope.TypeTaskProgress, func(b *jsonbuf.Buffer) { b.Key("progress").Object(t.Progress) }}
}

func finished(t *Task) echo {
	switch t.State {
	case TaskCompleted:
		return echo{t, envelope.TypeTaskCompleted, func(b *jsonbuf.Buffer) {
			if b.Key("result"); t.Result == nil {
				b.Null()
			} else {
				b.Value(t.Result)
			}
		}}
	case TaskFailed:
		return echo{t, envelope.TypeTaskFailed, func(b *jsonbuf.Buffer) { b.Key("error").String(t.Error) }}
	case TaskCancelled:
		return echo{t, envelope.TypeTaskCancelled, func(b *jsonbuf.Buffer) { b.Key("reason").String(t.Error) }}
	default:
		return echo{t, envelope.TypeTaskExpired, func(b *jsonbuf.Buffer) { b.Key("reason").String(t.Error) }}
	}
}

// mirrorChange tells the channel what changed of a task.
func (w *writing) mirrorChange(level Mirror, old, next *Task) error {
	if next.State == TaskRunning && old.State != TaskRunning {
		if err := w.mirror(level, MirrorEnds, started(next)); err != nil {
			return err
		}
	}
	if string(old.Progress) != string(next.Progress) {
		if err := w.mirror(level, MirrorAll, progressed(next)); err != nil {
			return err
		}
	}
	if !next.State.Terminal() {
		return nil
	}
	told := *next
	if len(told.Result) > w.hub.mostMirrored() {
		told.Result = nil // it is read with the task
	}
	return w.mirror(level, MirrorEnds, finished(&told))
}

// mostMirrored is how large an envelope's payload may be to fit, with all that
// stands around it, where a payload of limits.event does.
func (h *Hub) mostMirrored() int { return h.opts.Limits.EventBytes - h.opts.Limits.EventBytes/16 }

// mirror adds an envelope of the task's owner, out of turn. What the adapter
// would not take from it is not told.
func (w *writing) mirror(level, needed Mirror, x echo) error {
	if level < needed || w.meta.State.Terminal() || w.state == nil || !w.ch.readers.busy(w.meta, x.task.Owner) {
		return nil
	}
	b := &jsonbuf.Buffer{}
	b.Open('{').Key("task_id").String(x.task.ID)
	x.data(b)
	data, err := b.Close('}').Result()
	if err != nil {
		return err
	}
	if len(data) > w.hub.mostMirrored() {
		return nil // nobody could be told
	}
	e := &envelope.Envelope{
		Channel: w.ch.id, Sender: x.task.Owner, Type: x.kind, Task: x.task.ID, Data: data, Priority: envelope.Normal,
	}
	if w.ch.adapter.ValidateSend(w.meta, w.state, e) != nil {
		return nil
	}
	if err := w.add(e, true); err != nil {
		return err
	}
	w.tell(w.ch.adapter.Recipients(w.meta, w.state, e))
	return w.apply(w.ch.adapter.OnAccepted(w.meta, w.state, e))
}
