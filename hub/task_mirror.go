package hub

import (
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/internal/jsonbuf"
	"github.com/parley-hub/parley/task"
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

// mostMirrored is how large an envelope's payload may be to fit, with all that
// stands around it, where a payload of limits.event does.
func (h *Hub) mostMirrored() int { return h.opts.Limits.EventBytes - h.opts.Limits.EventBytes/16 }

// mirror adds an envelope of the task's owner, out of turn. What the adapter
// would not take from it is not told.
func (b *batch) mirror(level, needed Mirror, x echo) error {
	if level < needed || b.meta.State.Terminal() || b.state == nil || !b.ch.readers.busy(b.meta, x.task.Owner) {
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
		return nil // nobody could be told
	}
	e := &envelope.Envelope{
		Channel: b.ch.id, Sender: x.task.Owner, Type: x.kind, Task: x.task.ID, Data: data, Priority: envelope.Normal,
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
