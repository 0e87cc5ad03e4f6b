package agent

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/jsonbuf"
	"github.com/parley-hub/parley/task"
)

type tasksArgs struct {
	Action       string         `json:"action"`
	Payload      jsontext.Value `json:"payload"`
	Result       jsontext.Value `json:"result"`
	Task         string         `json:"task_id"`
	Reason       string         `json:"reason"`
	Scope        string         `json:"scope"`
	State        string         `json:"state"`
	Timeout      *float64       `json:"timeout"`
	PollInterval *float64       `json:"poll_interval"`
	Limit        *int           `json:"limit"`
}

func tasksTool() *Tool {
	return NewTool("tasks", "Report on your task, and watch or cancel tasks.", `{"type":"object",
"properties":{"action":{"enum":["progress","complete","list","status","wait","cancel"]},"payload":{"type":["object","null"],"description":"progress so far"},
"result":{"description":"of the completed task"},"task_id":{"type":["string","null"]},"reason":{"type":"string","default":""},
"scope":{"enum":["own","all"],"default":"own"},"state":{"enum":["active","all"],"default":"active"},"timeout":{"type":"number","default":300},
"poll_interval":{"type":"number","default":0.1},"limit":{"type":"integer","default":20}},"required":["action"]}`,
		func(ctx context.Context, call *Call, in tasksArgs) (any, error) {
			switch in.Action {
			case "progress":
				return reportProgress(ctx, call, in)
			case "complete":
				return completeTask(ctx, call, in)
			case "list":
				return listTasks(ctx, call.link(), in)
			case "status":
				return oneTask(ctx, call.link(), in, func(t *task.Task) (any, error) { return summarize(t), nil })
			case "wait":
				return oneTask(ctx, call.link(), in, func(t *task.Task) (any, error) { return waitTask(ctx, call.link(), t, in) })
			case "cancel":
				return oneTask(ctx, call.link(), in, func(t *task.Task) (any, error) { return cancelTask(ctx, call.link(), t, in.Reason) })
			}
			return unknownAction(in.Action, "progress", "complete", "list", "status", "wait", "cancel")
		})
}

func reportProgress(ctx context.Context, call *Call, in tasksArgs) (any, error) {
	run := call.Turn.Task()
	if run == nil {
		return refusal("progress requires an active `agent.task(...)` block")
	}
	if err := run.Progress(ctx, object(notNull(in.Payload))); err != nil {
		return refusal("progress failed: %v", err)
	}
	return "progress emitted on " + run.ID, nil
}

func completeTask(ctx context.Context, call *Call, in tasksArgs) (any, error) {
	run := call.Turn.Task()
	if run == nil {
		return refusal("complete requires an active `agent.task(...)` block")
	}
	var result any
	if raw := notNull(in.Result); raw != nil {
		result = raw
	}
	if err := run.Complete(ctx, result); err != nil {
		return refusal("complete failed: %v", err)
	}
	return "completed " + run.ID, nil
}

func notNull(v jsontext.Value) jsontext.Value {
	if v.Kind() == 'n' {
		return nil
	}
	return v
}

type taskSummary struct {
	ID             string         `json:"task_id"`
	Owner          string         `json:"owner_id"`
	Title          string         `json:"title"`
	Capability     *string        `json:"capability"`
	State          task.State     `json:"state"`
	CreatedAt      *string        `json:"created_at"`
	StartedAt      *string        `json:"started_at"`
	CompletedAt    *string        `json:"completed_at"`
	ExpiresAt      *string        `json:"expires_at"`
	LastProgressAt *string        `json:"last_progress_at"`
	Result         jsontext.Value `json:"result"`
	Error          string         `json:"error"`
}

func summarize(t *task.Task) taskSummary {
	s := taskSummary{
		ID: t.ID, Owner: t.Owner, Title: t.Spec.Title, Capability: optional(t.Spec.Capability), State: t.State,
		CreatedAt: instant(t.CreatedAt), StartedAt: instant(t.StartedAt), CompletedAt: instant(t.CompletedAt),
		ExpiresAt: instant(t.ExpiresAt), LastProgressAt: instant(t.LastProgressAt), Result: t.Result, Error: t.Error,
	}
	if len(s.Result) == 0 {
		s.Result = jsontext.Value("null")
	}
	return s
}

func listTasks(ctx context.Context, link Link, in tasksArgs) (any, error) {
	limit := 20
	if in.Limit != nil {
		limit = max(*in.Limit, 0)
	}
	summaries := []taskSummary{}
	if limit == 0 {
		return summaries, nil // to a query it would mean the default
	}
	q := TaskQuery{Limit: limit}
	if in.Scope != "all" {
		q.Owner = link.Self().ID
	}
	find := link.ListTasks
	if in.State != "all" {
		find = func(ctx context.Context, q TaskQuery) ([]*task.Task, error) { return activeTasks(ctx, link, q) }
	}
	found, err := find(ctx, q)
	if err != nil {
		return refusal("list failed: %v", err)
	}
	for _, t := range found[:min(limit, len(found))] {
		summaries = append(summaries, summarize(t))
	}
	return summaries, nil
}

// activeTasks lists tasks that have not ended, oldest first. A query is for one
// state, so there are two; a task that starts between them is found by both.
func activeTasks(ctx context.Context, link Link, q TaskQuery) ([]*task.Task, error) {
	var found []*task.Task
	seen := map[string]bool{}
	for _, q.State = range []task.State{task.Created, task.Running} {
		list, err := link.ListTasks(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, t := range list {
			if !seen[t.ID] {
				seen[t.ID] = true
				found = append(found, t)
			}
		}
	}
	slices.SortStableFunc(found, func(a, b *task.Task) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return found, nil
}

func oneTask(ctx context.Context, link Link, in tasksArgs, with func(*task.Task) (any, error)) (any, error) {
	if in.Task == "" {
		return refusal("%s requires `task_id`", in.Action)
	}
	t, err := link.Task(ctx, in.Task)
	if fault.CodeOf(err) == fault.NotFound {
		return refusal("task '%s' not found", in.Task)
	}
	if err != nil {
		return refusal("%s failed: %v", in.Action, err)
	}
	return with(t)
}

func waitTask(ctx context.Context, link Link, t *task.Task, in tasksArgs) (any, error) {
	timeout, interval := 300.0, 0.1
	if in.Timeout != nil {
		timeout = *in.Timeout
	}
	if in.PollInterval != nil {
		interval = *in.PollInterval
	}
	deadline := time.NewTimer(duration(timeout))
	defer deadline.Stop()
	poll := time.NewTicker(max(duration(interval), time.Millisecond))
	defer poll.Stop()
	for !t.State.Terminal() {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-deadline.C:
			return refusal("task '%s' did not complete within %ss", t.ID, strconv.FormatFloat(timeout, 'g', -1, 64))
		case <-poll.C:
		}
		next, err := link.Task(ctx, t.ID)
		if err != nil {
			return refusal("task '%s' not found", t.ID)
		}
		t = next
	}
	return summarize(t), nil
}

func cancelTask(ctx context.Context, link Link, t *task.Task, reason string) (any, error) {
	if t.State.Terminal() {
		return refusal("task '%s' is already %s", t.ID, t.State)
	}
	if t.Channel == "" {
		return refusal("task '%s' has no associated channel to cancel it in", t.ID)
	}
	b := &jsonbuf.Buffer{}
	data, err := b.Open('{').Key("task_id").String(t.ID).Key("reason").String(reason).Close('}').Result()
	if err == nil {
		_, err = link.Post(ctx, &envelope.Envelope{
			Channel: t.Channel, Sender: link.Self().ID, Type: envelope.TypeTaskCancelRequest,
			Audience: []string{t.Owner}, Task: t.ID, Priority: envelope.Normal, Data: data,
		})
	}
	if err != nil {
		return refusal("cancel failed: %v", err)
	}
	return "cancel_request posted to " + t.Owner + " for task " + t.ID, nil
}
