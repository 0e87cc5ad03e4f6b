package view

import (
	"cmp"
	"strings"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/message/value"
)

// taskTool is the tool that a task of the participant's own counts as.
const taskTool = "task"

// task adds a task: the participant's own is a call that its end answers,
// another's is described as text.
func (p *projector) task(e *envelope.Envelope) {
	data := object(e.Data)
	id := cmp.Or(str(data, "task_id"), e.Task)
	if p.isOwn(e) && p.ownTask(e, id, data) {
		return
	}
	word := strings.ReplaceAll(strings.TrimPrefix(e.Type, "ag2.task."), "_", " ")
	p.say(e, strings.TrimSpace("[Task "+word+"] "+about(e.Type, data)),
		value.New().Set("task", value.New().Set("task_id", id).Set("event", word)))
}

// ownTask adds a call or its answer, and reports whether it did.
func (p *projector) ownTask(e *envelope.Envelope, id string, data *value.Map) bool {
	if id == "" {
		return false
	}
	switch e.Type {
	case envelope.TypeTaskStarted:
		parameters, _ := data.At("spec").(*value.Map)
		if parameters == nil {
			parameters = value.New()
		}
		p.call(e, id, taskTool, parameters)
	case envelope.TypeTaskCompleted:
		result := data.At("result")
		text, isText := result.(string)
		if !isText && result != nil {
			text = jsonText(result)
		}
		p.answer(e, id, taskTool, text, true, result)
	case envelope.TypeTaskFailed, envelope.TypeTaskExpired, envelope.TypeTaskCancelled:
		text := about(e.Type, data)
		if text == "" {
			text = "The task " + strings.TrimPrefix(e.Type, "ag2.task.") + "."
		}
		p.answer(e, id, taskTool, text, false, nil)
	default:
		return false
	}
	return true
}

// about returns what an event says of its task.
func about(eventType string, data *value.Map) string {
	switch eventType {
	case envelope.TypeTaskStarted:
		spec, _ := data.At("spec").(*value.Map)
		for _, key := range []string{"title", "description", "name"} {
			if text := str(spec, key); text != "" {
				return text
			}
		}
	case envelope.TypeTaskProgress:
		if progress, ok := data.At("progress").(*value.Map); ok {
			return jsonText(progress)
		}
	case envelope.TypeTaskCompleted:
		switch result := data.At("result").(type) {
		case nil:
		case string:
			return result
		default:
			return jsonText(result)
		}
	default:
		for _, key := range []string{"error", "reason"} {
			if text := str(data, key); text != "" {
				return text
			}
		}
	}
	return ""
}
