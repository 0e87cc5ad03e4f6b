package hub_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/task"
)

// observe reports a task to the hub.
func (r *rig) observe(t task.Task) {
	r.t.Helper()
	if err := r.ObserveTask(context.Background(), t, nil, hub.MirrorOff); err != nil {
		r.t.Fatal(err)
	}
}

// update changes a task.
func (r *rig) update(u task.Update) {
	r.t.Helper()
	if err := r.UpdateTask(context.Background(), u, nil, hub.MirrorOff); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) task(id string) *task.Task {
	r.t.Helper()
	t, err := r.Task(context.Background(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	return t
}

// taskText returns a task as text.
func taskText(t *task.Task) string {
	data, err := t.MarshalJSON()
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// inAndOut runs a test for a task of a channel and for one without a channel,
// because they are stored differently.
func inAndOut(t *testing.T, name string, o hub.Options, fn func(t *testing.T, r *rig, a *agent, tk task.Task)) {
	t.Helper()
	for _, where := range []string{"in a channel", "without one"} {
		runs(t, name+" "+where, o, func(t *testing.T, r *rig) {
			a, b := r.agent("alice"), r.agent("bob")
			tk := task.Task{ID: "t1", Owner: a.id, State: task.Running, StartedAt: time.Now()}
			if where == "in a channel" {
				tk.Channel = r.open("conversation", a, b)
			}
			r.ear.clear()
			fn(t, r, a, tk)
		})
	}
}

func TestTaskRecord(t *testing.T) {
	t.Parallel()
	inAndOut(t, "is kept key by key, across a restart", hub.Options{}, func(t *testing.T, r *rig, a *agent, tk task.Task) {
		tk.Spec = task.Spec{Title: "scan", Description: "d", Payload: []byte(`{"n":12345678901234567890, "é":"\u00e9"}`), Capability: "ocr"}
		tk.Progress = []byte(`{"page":1,"of":9}`)
		r.observe(tk)
		r.pass(time.Second)
		r.update(task.Update{ID: "t1", Progress: []byte(`{"page":2,"note":{"x":[]}}`)})
		r.pass(time.Second)
		channelID := "null"
		if tk.Channel != "" {
			channelID = `"` + tk.Channel + `"`
		}
		want := `{"task_id":"t1","owner_id":"` + a.id + `","spec":{"title":"scan","description":"d",` +
			`"payload":{"n":12345678901234567890, "é":"\u00e9"},"capability":"ocr"},"state":"running",` +
			`"created_at":"2000-01-01T00:00:00.000000Z","started_at":"2000-01-01T00:00:00.000000Z","completed_at":null,` +
			`"expires_at":null,"last_progress_at":"2000-01-01T00:00:01.000000Z","progress":{"page":2,"of":9,"note":{"x":[]}},` +
			`"result":null,"error":"","channel_id":` + channelID + `}`
		if got := taskText(r.task("t1")); got != want {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
		r.restart()
		if got := taskText(r.task("t1")); got != want {
			t.Fatalf("after a restart got %s", got)
		}
		var back task.Task
		if err := back.UnmarshalJSON([]byte(want)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&back, r.task("t1")); diff != "" {
			t.Fatal(diff)
		}
	})
	inAndOut(t, "is merged when observed again, and keeps what is its own", hub.Options{}, func(t *testing.T, r *rig, a *agent, tk task.Task) {
		tk.State, tk.StartedAt = task.Created, time.Time{}
		tk.Spec.Title = "first"
		tk.Progress = []byte(`{"a":1,"b":1}`)
		r.observe(tk)
		begun := time.Now().Add(time.Hour)
		r.observe(task.Task{
			ID: "t1", Owner: "someone else", State: task.Running, StartedAt: begun, ExpiresAt: begun.Add(time.Hour), Channel: "elsewhere",
			Spec: task.Spec{Title: "second"}, Progress: []byte(`{"b":2}`), Result: []byte(`1`), Error: "e", CreatedAt: begun,
		})
		want := tk
		want.CreatedAt, want.State, want.StartedAt, want.ExpiresAt = time.Now().UTC(), task.Running, begun.UTC(), begun.Add(time.Hour).UTC()
		want.Progress = []byte(`{"a":1,"b":2}`)
		if diff := cmp.Diff(&want, r.task("t1")); diff != "" {
			t.Fatal(diff)
		}
	})
	inAndOut(t, "is immutable once it has ended", hub.Options{}, func(t *testing.T, r *rig, a *agent, tk task.Task) {
		r.observe(tk)
		r.update(task.Update{ID: "t1", State: task.Completed, Result: []byte(`{"ok":true}`)})
		want := taskText(r.task("t1"))
		r.pass(time.Minute)
		r.update(task.Update{ID: "t1", State: task.Failed, Error: "no", Progress: []byte(`{"x":1}`)})
		r.observe(tk)
		if got := taskText(r.task("t1")); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	})
	runs(t, "of an unknown channel stays with its owner", hub.Options{}, func(t *testing.T, r *rig) {
		a := r.agent("alice")
		r.observe(task.Task{ID: "t1", Owner: a.id, Channel: "nowhere"})
		r.update(task.Update{ID: "t1", State: task.Completed})
		if got := r.task("t1"); got.Channel != "nowhere" || got.State != task.Completed {
			t.Fatalf("got %+v", got)
		}
	})
	for name, bad := range map[string]task.Task{
		"no id":            {Owner: "o"},
		"no owner":         {ID: "t"},
		"unknown state":    {ID: "t", Owner: "o", State: "asleep"},
		"payload no JSON":  {ID: "t", Owner: "o", Spec: task.Spec{Payload: []byte(`{`)}},
		"progress a list":  {ID: "t", Owner: "o", Progress: []byte(`[]`)},
		"result no JSON":   {ID: "t", Owner: "o", Result: []byte(`x`)},
		"id far too long":  {ID: string(make([]byte, 256)), Owner: "o"},
		"larger than fits": {ID: "t", Owner: "o", Error: string(make([]byte, 2<<20))},
	} {
		runs(t, "is refused: "+name, hub.Options{}, func(t *testing.T, r *rig) {
			err := r.ObserveTask(context.Background(), bad, nil, hub.MirrorOff)
			if code := fault.CodeOf(err); code != fault.Invalid && code != fault.TooLarge {
				t.Fatalf("got %v", err)
			}
			if list, _, err := r.Tasks(context.Background(), hub.TaskQuery{}); len(list) != 0 || err != nil {
				t.Fatalf("%v %v", list, err)
			}
		})
	}
	inAndOut(t, "does not outgrow its limit", hub.Options{Limits: hub.Limits{EventBytes: 1000}}, func(t *testing.T, r *rig, _ *agent, tk task.Task) {
		r.observe(tk)
		u := task.Update{ID: "t1", Progress: fmt.Appendf(nil, `{"a":%q}`, strings.Repeat("x", 600))}
		r.update(u)
		u.Progress = fmt.Appendf(nil, `{"b":%q}`, strings.Repeat("x", 600))
		if err := r.UpdateTask(context.Background(), u, nil, hub.MirrorOff); fault.CodeOf(err) != fault.TooLarge {
			t.Fatalf("got %v", err)
		}
		if got := len(r.task("t1").Progress); got > 700 {
			t.Fatalf("%d bytes of progress", got)
		}
	})
	runs(t, "that is unknown is not found", hub.Options{}, func(t *testing.T, r *rig) {
		_, err := r.Task(context.Background(), "t1")
		if fault.CodeOf(err) != fault.NotFound {
			t.Errorf("got %v", err)
		}
		err = r.UpdateTask(context.Background(), task.Update{ID: "t1"}, nil, hub.MirrorOff)
		if fault.CodeOf(err) != fault.NotFound {
			t.Errorf("got %v", err)
		}
	})
	inAndOut(t, "is written by its owner only", hub.Options{}, func(t *testing.T, r *rig, a *agent, tk task.Task) {
		err := r.ObserveTask(context.Background(), tk, actsFor("someone else"), hub.MirrorOff)
		if fault.CodeOf(err) != fault.AccessDenied {
			t.Fatalf("got %v", err)
		}
		r.observe(tk)
		stolen := tk
		stolen.Owner = "someone else"
		for _, err := range []error{
			r.UpdateTask(context.Background(), task.Update{ID: "t1", Error: "x"}, actsFor("someone else"), hub.MirrorOff),
			r.ObserveTask(context.Background(), stolen, actsFor("someone else"), hub.MirrorOff),
			r.CheckpointTask(context.Background(), "t1", []byte(`{}`), "someone else", actsFor("someone else")),
		} {
			if fault.CodeOf(err) != fault.AccessDenied {
				t.Fatalf("got %v", err)
			}
		}
		if err := r.UpdateTask(context.Background(), task.Update{ID: "t1", Error: "x"}, actsFor(a.id), hub.MirrorOff); err != nil {
			t.Fatal(err)
		}
	})
	inAndOut(t, "survives updates from many sides at once", hub.Options{}, func(t *testing.T, r *rig, a *agent, tk task.Task) {
		r.observe(tk)
		var all sync.WaitGroup
		for n := range 20 {
			all.Go(func() {
				u := task.Update{ID: "t1", Progress: fmt.Appendf(nil, `{"k%02d":%d}`, n, n)}
				if err := r.UpdateTask(context.Background(), u, nil, hub.MirrorOff); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		keys := map[string]int{}
		if err := json.Unmarshal(r.task("t1").Progress, &keys); err != nil || len(keys) != 20 {
			t.Fatalf("%d of 20 keys, %v", len(keys), err)
		}
	})
}

func actsFor(agent string) *hub.Caller { return &hub.Caller{Agents: []string{agent}} }

func TestTaskList(t *testing.T) {
	t.Parallel()
	runs(t, "by owner, channel and state, in order, paged", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		for i, tk := range []task.Task{
			{ID: "z", Owner: a.id, Channel: ch},
			{ID: "y", Owner: a.id},
			{ID: "x", Owner: b.id, Channel: ch},
			{ID: "w", Owner: b.id},
			{ID: "v", Owner: a.id, Channel: ch, State: task.Running},
		} {
			r.observe(tk)
			if i == 1 {
				r.restart()
			}
		}
		for name, test := range map[string]struct {
			q    hub.TaskQuery
			want []string
		}{
			"all":               {hub.TaskQuery{}, []string{"z", "y", "x", "w", "v"}},
			"owner":             {hub.TaskQuery{Owner: a.id}, []string{"z", "y", "v"}},
			"channel":           {hub.TaskQuery{Channel: ch}, []string{"z", "x", "v"}},
			"owner and channel": {hub.TaskQuery{Owner: b.id, Channel: ch}, []string{"x"}},
			"state":             {hub.TaskQuery{State: task.Running}, []string{"v"}},
			"unknown":           {hub.TaskQuery{Owner: "nobody"}, nil},
		} {
			for limit := 1; limit <= 6; limit += 2 {
				q := test.q
				q.Limit = limit
				var got []string
				for {
					list, next, err := r.Tasks(context.Background(), q)
					if err != nil || len(list) > limit {
						t.Fatalf("%s: %d tasks, %v", name, len(list), err)
					}
					for _, tk := range list {
						got = append(got, tk.ID)
					}
					if q.After = next; next == "" {
						break
					}
				}
				if !slices.Equal(got, test.want) {
					t.Errorf("%s by %d: got %q, want %q", name, limit, got, test.want)
				}
			}
		}
		if _, _, err := r.Tasks(context.Background(), hub.TaskQuery{State: "asleep"}); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("got %v", err)
		}
	})
}

// An agent cannot use up the space for others' tasks: without taking part in a
// channel it has none there, and otherwise it has a share.
func TestTasksOfOthersFindRoom(t *testing.T) {
	t.Parallel()
	o := hub.Options{Limits: hub.Limits{OpenTasks: 6, OpenTasksOwner: 4}}
	runs(t, "in a channel", o, func(t *testing.T, r *rig) {
		a, b, c := r.agent("alice"), r.agent("bob"), r.agent("carol")
		ch := r.open("conversation", a, b)
		observe := func(id, owner string) error {
			return r.ObserveTask(context.Background(), task.Task{ID: id, Owner: owner, Channel: ch, State: task.Running}, nil, hub.MirrorOff)
		}
		if err := observe("c", c.id); fault.CodeOf(err) != fault.AccessDenied || !strings.Contains(err.Error(), "takes no part") {
			t.Errorf("who takes no part: %v", err)
		}
		for i := range 4 {
			if err := observe(fmt.Sprint("a", i), a.id); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if err := observe("a4", a.id); fault.CodeOf(err) != fault.TooLarge || !strings.Contains(err.Error(), "limits.open_tasks_owner") {
				t.Errorf("one too many: %v", err)
			}
			r.restart()
		}
		if err := observe("b0", b.id); err != nil {
			t.Errorf("bob's: %v", err)
		}
		if err := r.UpdateTask(context.Background(), task.Update{ID: "a0", State: task.Completed}, nil, hub.MirrorOff); err != nil {
			t.Fatal(err)
		}
		if err := observe("a4", a.id); err != nil {
			t.Errorf("after one has ended: %v", err)
		}
	})
}

// A channel ends in one batch, so its tasks must fit that batch.
func TestChannelWithManyTasksEnds(t *testing.T) {
	t.Parallel()
	o := hub.Options{}
	o.Limits.OpenTasks, o.Limits.OpenTasksOwner, o.Limits.OpenRequests = 440, 440, 128 // the most that can be configured
	runs(t, "with as many and as large tasks as can be", o, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		tk := func(i int, capability string) task.Task {
			return task.Task{
				ID: fmt.Sprintf("%03d", i) + strings.Repeat("\x01", 252), Owner: a.id, Channel: ch, State: task.Running,
				Spec: task.Spec{Capability: capability},
			}
		}
		most := strings.Repeat("\x01", 255) // six bytes each in JSON
		for i := range 440 {
			r.observe(tk(i, most))
		}
		if err := r.ObserveTask(ctx, tk(440, ""), nil, hub.MirrorOff); fault.CodeOf(err) != fault.TooLarge || !strings.Contains(err.Error(), "limits.open_tasks") {
			t.Fatalf("one more: %v", err)
		}
		for range 128 {
			r.ask(a, ch, due(time.Hour, "deny"))
		}
		if m := r.end(ch, "enough"); m.State != channel.Closed {
			t.Fatalf("it is %s", m.State)
		}
		if got := len(r.audit("task_terminated")); got != 440 {
			t.Errorf("%d ends are audited", got)
		}
	})
	runs(t, "a longer capability is refused", hub.Options{}, func(t *testing.T, r *rig) {
		tk := task.Task{ID: "1", Owner: r.agent("alice").id, Spec: task.Spec{Capability: strings.Repeat("x", 256)}}
		if err := r.ObserveTask(ctx, tk, nil, hub.MirrorOff); fault.CodeOf(err) != fault.Invalid {
			t.Fatalf("got %v", err)
		}
	})
}
