package agent

import (
	"context"
	"fmt"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/jsonbuf"
	"github.com/parley-hub/parley/task"
)

// tell posts a task's event into its channel while its round runs.
func (r *TaskRun) tell(ctx context.Context, eventType string, data *jsonbuf.Buffer) {
	if !r.turn.speaks() {
		return
	}
	text, err := data.Result()
	if err == nil {
		_, err = r.link().Post(ctx, &envelope.Envelope{
			Channel: r.turn.channelID(), Sender: r.owner(), Type: eventType, Task: r.ID,
			Key: r.key(eventType), Priority: envelope.Normal, Data: text,
		})
	}
	r.mirror(ctx, "post_envelope", err)
}

// key names the event, so that it is logged once however often it is posted.
func (r *TaskRun) key(eventType string) string {
	if eventType != envelope.TypeTaskProgress {
		return eventType + ":" + r.ID
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Sprintf("%s:%s:%d", eventType, r.ID, r.progress)
}

// mirror reports that the hub did not receive an update. If that report fails
// too, it is only logged.
func (r *TaskRun) mirror(ctx context.Context, op string, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	b := &jsonbuf.Buffer{}
	b.Open('{').Key("op").String(op).Key("owner_id").String(r.owner()).Key("channel_id").Optional(r.turn.channelID())
	b.Key("exc_type").String(string(fault.CodeOf(err))).Key("exc_message").String(err.Error()).Close('}')
	payload, bad := b.Result()
	if bad != nil {
		payload = []byte(`{}`)
	}
	if err := r.link().FireTaskEvent(ctx, r.ID, "mirror_failed", payload); err != nil {
		r.turn.Agent.opts.Log.WarnContext(ctx, "task not mirrored", "task", r.ID, "op", op, "error", err)
	}
}

func (r *TaskRun) owner() string { return r.link().Self().ID }

// The payloads are those of the hub's own mirror.

func startedData(r *TaskRun) *jsonbuf.Buffer {
	b := &jsonbuf.Buffer{}
	b.Open('{').Key("task_id").String(r.ID)
	b.Key("spec").Open('{').Key("title").String(r.Spec.Title).Key("description").String(r.Spec.Description)
	return b.Key("payload").Object(r.Spec.Payload).Key("capability").Optional(r.Spec.Capability).Close('}').Close('}')
}

func progressData(r *TaskRun, payload []byte) *jsonbuf.Buffer {
	b := &jsonbuf.Buffer{}
	return b.Open('{').Key("task_id").String(r.ID).Key("progress").Object(payload).Close('}')
}

func endData(r *TaskRun, u task.Update) *jsonbuf.Buffer {
	b := &jsonbuf.Buffer{}
	b.Open('{').Key("task_id").String(r.ID)
	switch {
	case u.State == task.Failed:
		b.Key("error").String(u.Error)
	case u.State != task.Completed:
		b.Key("reason").String(u.Error)
	case u.Result == nil:
		b.Key("result").Null()
	default:
		b.Key("result").Value(u.Result)
	}
	return b.Close('}')
}
