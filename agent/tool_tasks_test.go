package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/parley-hub/parley/adapter/turn"
	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/task"
)

func TestTasksTool(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 9, 10, 0, 0, 0, time.UTC)
	done := task.Task{
		ID: "t1", Owner: "id-b", Spec: task.Spec{Title: "scan", Capability: "ocr"}, State: task.Completed, Channel: "c1",
		CreatedAt: at, StartedAt: at, CompletedAt: at.Add(time.Second), Result: []byte(`{"n":9007199254740993}`),
	}
	const summary = `{"task_id":"t1","owner_id":"id-b","title":"scan","capability":"ocr","state":"completed","created_at":"2026-03-09T10:00:00.000000Z",` +
		`"started_at":"2026-03-09T10:00:00.000000Z","completed_at":"2026-03-09T10:00:01.000000Z","expires_at":null,"last_progress_at":null,"result":{"n":9007199254740993},"error":""}`
	check(t, "ag2-channels#100: list, status and wait on a completed task", func(t *spec.T, w *world) {
		b := w.Join("b")
		w.AddTask(done)
		w.AddTask(task.Task{ID: "t2", Owner: "id-z", State: task.Running})
		t.Equal(use(t, w, b, "tasks", `{"action":"status","task_id":"t1"}`), summary)
		t.Equal(use(t, w, b, "tasks", `{"action":"wait","task_id":"t1"}`), summary)
		t.Equal(use(t, w, b, "tasks", `{"action":"list","state":"all"}`), `[`+summary+`]`)
		t.Equal(use(t, w, b, "tasks", `{"action":"list"}`), `[]`)
		t.Contains(use(t, w, b, "tasks", `{"action":"list","scope":"all"}`), `"task_id":"t2"`, `"result":null`, `"capability":null`)
		t.Equal(use(t, w, b, "tasks", `{"action":"list","state":"all","limit":0}`), `[]`)
	})
	test(t, "list finds active tasks behind many that have ended", func(t *spec.T, w *world) {
		b := w.Join("b")
		add := func(id, owner string, state task.State, after time.Duration) {
			w.AddTask(task.Task{ID: id, Owner: owner, State: state, CreatedAt: at.Add(after)})
		}
		for i := range 60 {
			add(fmt.Sprint("old", i), "id-b", task.Completed, 0)
		}
		add("r1", "id-b", task.Running, time.Second)
		add("c1", "id-b", task.Created, 2*time.Second)
		add("x1", "id-z", task.Created, 3*time.Second)
		for i := range 60 {
			add(fmt.Sprint("r", i+2), "id-b", task.Running, time.Duration(i+4)*time.Second)
		}
		listed := func(arguments string) (found []string) {
			for _, entry := range decode(t, use(t, w, b, "tasks", arguments)).([]any) {
				found = append(found, entry.(map[string]any)["task_id"].(string))
			}
			return found
		}
		t.Equal(listed(`{"action":"list","limit":3}`), []string{"r1", "c1", "r2"})
		t.Equal(listed(`{"action":"list","limit":4,"scope":"all"}`), []string{"r1", "c1", "x1", "r2"})
		t.Equal(len(listed(`{"action":"list"}`)), 20)
		t.Equal(len(listed(`{"action":"list","limit":100}`)), 62)
		t.Equal(len(listed(`{"action":"list","state":"all","limit":100}`)), 100)
		b.Fail("ListTasks", errors.New("line down"))
		t.Equal(use(t, w, b, "tasks", `{"action":"list"}`), "Error: list failed: line down")
	})
	test(t, "a task that starts between the two queries is listed once", func(t *spec.T, w *world) {
		b := w.Join("b")
		w.AddTask(task.Task{ID: "t1", Owner: "id-b", State: task.Created})
		model := does(calling(turn.Call{ID: "1", Name: "tasks", Arguments: `{"action":"list"}`}))
		text := used(t, w, agent.New(&starting{agenttestLink: b}, model, agent.Options{}), model)
		t.Equal(strings.Count(text, `"task_id":"t1"`), 1)
	})
	check(t, "ag2-channels#100: an unknown task", func(t *spec.T, w *world) {
		b := w.Join("b")
		for _, action := range []string{"status", "wait", "cancel"} {
			t.Equal(use(t, w, b, "tasks", `{"action":"`+action+`","task_id":"t9"}`), "Error: task 't9' not found")
		}
	})
	check(t, "ag2-channels#100: cancel posts exactly one request", func(t *spec.T, w *world) {
		b, a := w.Join("b"), w.Join("a")
		stop := ackOnly(w, b)
		defer stop()
		w.start(a, says(), agent.Options{})
		m := w.open(t, a, agent.Opening{Type: "conversation", Participants: ids("b")})
		w.AddTask(task.Task{ID: "t1", Owner: "id-b", State: task.Running, Channel: m.ID})
		t.Equal(use(t, w, a, "tasks", `{"action":"cancel","task_id":"t1","reason":"enough"}`), "cancel_request posted to id-b for task t1")
		posted := w.log(t, a, m.ID, envelope.TypeTaskCancelRequest)
		t.Equal(len(posted), 1)
		t.Equal(string(posted[0].Data), `{"task_id":"t1","reason":"enough"}`)
		t.Equal(posted[0].Audience, ids("b"))
		t.Equal(posted[0].Task, "t1")
		t.Equal(posted[0].Sender, "id-a")
	})
	check(t, "ag2-channels#100: cancel's refusals", func(t *spec.T, w *world) {
		b := w.Join("b")
		w.AddTask(done)
		w.AddTask(task.Task{ID: "orphan", Owner: "id-b", State: task.Running})
		t.Equal(use(t, w, b, "tasks", `{"action":"cancel"}`), "Error: cancel requires `task_id`")
		t.Equal(use(t, w, b, "tasks", `{"action":"cancel","task_id":"t1"}`), "Error: task 't1' is already completed")
		t.Contains(use(t, w, b, "tasks", `{"action":"cancel","task_id":"orphan"}`), "Error: task 'orphan'", "no associated channel")
	})
	test(t, "wait polls until the end, or its own", func(t *spec.T, w *world) {
		b := w.Join("b")
		w.AddTask(task.Task{ID: "slow", Owner: "id-b", State: task.Running})
		begun := time.Now()
		t.Equal(use(t, w, b, "tasks", `{"action":"wait","task_id":"slow","timeout":5}`), "Error: task 'slow' did not complete within 5s")
		t.Equal(time.Since(begun), 5*time.Second)
		go func() {
			<-time.After(2 * time.Second)
			w.must(b.UpdateTask(context.WithoutCancel(w.ctx), task.Update{ID: "slow", State: task.Failed, Error: "broke"}))
		}()
		t.Contains(use(t, w, b, "tasks", `{"action":"wait","task_id":"slow"}`), `"state":"failed"`, `"error":"broke"`)
	})
	test(t, "progress and complete need a task", func(t *spec.T, w *world) {
		b := w.Join("b")
		t.Equal(use(t, w, b, "tasks", `{"action":"progress","payload":{"n":1}}`), "Error: progress requires an active `agent.task(...)` block")
		t.Equal(use(t, w, b, "tasks", `{"action":"complete"}`), "Error: complete requires an active `agent.task(...)` block")
		t.Equal(use(t, w, b, "tasks", `{"action":"start"}`), "Error: unknown action 'start'; choose from progress, complete, list, status, wait, cancel")
	})
	test(t, "progress and complete act on the enclosing task", func(t *spec.T, w *world) {
		b := w.Join("b")
		model := does(calling(turn.Call{Name: "tasks", Arguments: `{"action":"progress","payload":{"n":1}}`}, turn.Call{Name: "tasks", Arguments: `{"action":"complete","result":[1.50]}`},
			turn.Call{Name: "tasks", Arguments: `{"action":"complete"}`}))
		a := w.start(b, model, agent.Options{Task: func(*agent.Turn) *agent.TaskSpec { return &agent.TaskSpec{ID: "t7"} }})
		_, err := a.Ask(w.ctx, "go")
		t.NoError(err)
		var shown []string
		for _, m := range model.asked()[1].Messages[2:] {
			shown = append(shown, m.Text)
		}
		t.Equal(shown, []string{"progress emitted on t7", "completed t7", "Error: complete requires an active `agent.task(...)` block"})
		record, err := b.Task(w.ctx, "t7")
		t.NoError(err)
		t.Equal(string(record.Progress), `{"n":1}`)
		t.Equal(string(record.Result), `[1.50]`)
		t.Equal(record.State, task.Completed)
	})
}

// starting is a link whose task t1 starts right after the first list.
type starting struct{ *agenttestLink }

func (l *starting) ListTasks(ctx context.Context, q agent.TaskQuery) ([]*task.Task, error) {
	list, err := l.agenttestLink.ListTasks(ctx, q)
	return list, errors.Join(err, l.UpdateTask(ctx, task.Update{ID: "t1", State: task.Running}))
}

func TestContextTool(t *testing.T) {
	t.Parallel()
	check(t, "ag2-channels#99: search finds one of two texts", func(t *spec.T, w *world) {
		result, id, a := useIn(t, w, "context", `{"action":"search","query":"BREAD"}`, "buy Bread", "buy milk")
		texts := w.log(t, a, id, envelope.TypeText)
		t.Equal(result, fmt.Sprintf(`[{"envelope_id":%q,"sender_id":"id-a","when":%q,"excerpt":"buy Bread"}]`, texts[0].ID, envelope.FormatTime(texts[0].CreatedAt)))
	})
	check(t, "ag2-channels#99: quote returns the last two in order", func(t *spec.T, w *world) {
		result, id, a := useIn(t, w, "context", `{"action":"quote","speaker":"a","recent_n":2}`, "one", "two", "three")
		texts := w.log(t, a, id, envelope.TypeText)
		when := func(i int) string { return envelope.FormatTime(texts[i].CreatedAt) }
		t.Equal(result, fmt.Sprintf(`[{"envelope_id":%q,"when":%q,"text":"three"},{"envelope_id":%q,"when":%q,"text":"now"}]`, texts[2].ID, when(2), texts[3].ID, when(3)))
	})
	test(t, "long texts are cut, hits are limited, oldest first", func(t *spec.T, w *world) {
		exact, long := strings.Repeat("é", 240), strings.Repeat("é", 241)
		result, _, _ := useIn(t, w, "context", `{"action":"search","query":"é","limit":2}`, exact, long, "é again")
		hits := decode(t, result).([]any)
		t.Equal(len(hits), 2)
		t.Equal(hits[0].(map[string]any)["excerpt"], any(exact))
		t.Equal(hits[1].(map[string]any)["excerpt"], any(strings.Repeat("é", 239)+"…"))
	})
	test(t, "knowledge is empty", func(t *spec.T, w *world) {
		t.Equal(use(t, w, w.Join("a"), "context", `{"action":"search","scope":"knowledge","query":"x"}`), `[]`)
	})
	test(t, "only what the caller may see, and only texts", func(t *spec.T, w *world) {
		w.run("b", says(), agent.Options{})
		w.run("c", says(), agent.Options{})
		me := w.Join("a")
		w.start(me, says(), agent.Options{})
		m := w.open(t, me, agent.Opening{Type: "workflow", Participants: ids("b", "c"), Knobs: graphOf("id-b", toAgent("id-b"))})
		for _, e := range []*envelope.Envelope{
			{Type: envelope.TypeText, Audience: ids("c"), Data: []byte(`{"text":"secret plan"}`)},
			{Type: envelope.TypePacket, Data: []byte(`{"body":"packet plan"}`)},
			{Type: envelope.TypeText, Data: []byte(`{"text":"open plan"}`)},
		} {
			e.Channel, e.Sender = m.ID, "id-b"
			_, err := me.Post(w.ctx, e)
			t.NoError(err)
		}
		hits := decode(t, use(t, w, me, "context", `{"action":"search","query":"plan","channel_id":"`+m.ID+`"}`)).([]any)
		t.Equal(len(hits), 1)
		t.Equal(hits[0].(map[string]any)["excerpt"], any("open plan"))
	})
	test(t, "refusals", func(t *spec.T, w *world) {
		me := w.Join("a")
		for arguments, want := range map[string]string{
			`{"action":"search"}`:                                    "Error: search requires `query`",
			`{"action":"search","query":"x"}`:                        "Error: search scope=channel requires an active channel",
			`{"action":"search","query":"x","channel_id":"nope"}`:    "Error: channel 'nope' not found",
			`{"action":"quote"}`:                                     "Error: quote requires `speaker`",
			`{"action":"quote","speaker":"zed","channel_id":"nope"}`: "Error: speaker 'zed' not found",
			`{"action":"quote","speaker":"a","channel_id":"nope"}`:   "Error: channel 'nope' not found",
			`{"action":"forget"}`:                                    "Error: unknown action 'forget'; choose from search, quote",
		} {
			t.Equal(use(t, w, me, "context", arguments), want)
		}
	})
}

func TestSchemas(t *testing.T) {
	t.Parallel()
	test(t, "every tool's parameters are a JSON object", func(t *spec.T, w *world) {
		b := says("ok")
		w.run("b", b, agent.Options{})
		_, a := w.run("a", says(), agent.Options{})
		m := w.open(t, a, agent.Opening{Type: "conversation", Participants: ids("b")})
		w.say(t, a, m.ID, "hello")
		tools := b.asked()[0].Tools
		t.Equal(len(tools), 6)
		for _, tool := range tools {
			schema := decode(t, string(tool.Parameters)).(map[string]any)
			t.Equal(schema["type"], any("object"))
			t.True(len(tool.Description) > 10, "%s is described", tool.Name)
		}
	})
}

func TestSendWhenAllowed(t *testing.T) {
	t.Parallel()
	test(t, "waits for its turn", func(t *spec.T, w *world) {
		w.run("b", says(), agent.Options{})
		_, a := w.run("a", says(), agent.Options{})
		b := w.Join("late")
		stop := ackOnly(w, b)
		defer stop()
		m := w.open(t, a, agent.Opening{Type: "discussion", Participants: ids("late")})
		e, err := turn.BuildText(m.ID, "id-late", "at last", turn.Address{})
		t.NoError(err)
		sent := make(chan error, 1)
		go func() {
			_, err := agent.SendWhenAllowed(w.ctx, b, e)
			sent <- err
		}()
		w.pass(10 * time.Second)
		t.Equal(w.lines(t, a, m.ID), []string(nil))
		w.say(t, a, m.ID, "go on")
		t.NoError(<-sent)
		t.Equal(w.lines(t, a, m.ID), []string{"id-a: go on", "id-late: at last"})
	})
	test(t, "a race that was lost is no error", func(t *spec.T, w *world) {
		_, a := w.run("a", says(), agent.Options{})
		b := w.Join("b")
		stop := ackOnly(w, b)
		defer stop()
		m := w.open(t, a, agent.Opening{Type: "discussion", Participants: ids("b")})
		w.say(t, a, m.ID, "go on")
		e, err := turn.BuildText(m.ID, "id-b", "mine", turn.Address{})
		t.NoError(err)
		b.Fail("Post", fault.New(fault.Protocol, "discussion expects 'id-a' to speak, not 'id-b'").Because(fault.OutOfTurn))
		time.AfterFunc(time.Second, func() { b.Fail("Post", nil) })
		_, err = agent.SendWhenAllowed(w.ctx, b, e)
		t.NoError(err)
		t.Equal(w.lines(t, a, m.ID), []string{"id-a: go on", "id-b: mine"})
		b.Fail("Post", fault.New(fault.AccessDenied, "no"))
		_, err = agent.SendWhenAllowed(w.ctx, b, &envelope.Envelope{Channel: m.ID, Sender: "id-b", Type: "app.x", Data: []byte(`{}`)})
		t.Equal(fault.CodeOf(err), fault.AccessDenied)
	})
	test(t, "ends with its context", func(t *spec.T, w *world) {
		w.run("b", says(), agent.Options{})
		_, a := w.run("a", says(), agent.Options{})
		m := w.open(t, a, agent.Opening{Type: "discussion", Participants: ids("b")})
		ctx, stop := context.WithTimeout(w.ctx, minute)
		defer stop()
		w.say(t, a, m.ID, "b is silent now")
		e, err := turn.BuildText(m.ID, "id-a", "x", turn.Address{})
		t.NoError(err)
		_, err = agent.SendWhenAllowed(ctx, a, e)
		t.ErrorIs(err, context.DeadlineExceeded)
	})
}
