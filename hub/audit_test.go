package hub_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/task"
)

func TestAuditRecords(t *testing.T) {
	t.Parallel()
	holds(t, "ag2-hub#115: created, and closed with its reason", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		r.end(ch, "done")
		t.Equal(r.audit("channel_created", "channel_closed"), []map[string]any{
			{
				"kind": "channel_created", "channel_id": ch, "manifest_type": "conversation", "manifest_version": 1.0,
				"creator_id": a.id, "participants": []any{a.id, b.id},
			},
			{"kind": "channel_closed", "channel_id": ch, "reason": "done"},
		})
	})
	holds(t, "ag2-hub#115: resume_set tells tenant and observed apart", hub.Options{}, func(t *spec.T, r *rig) {
		a := r.agent("alice")
		t.NoError(r.SetResume(context.Background(), a.id, &identity.Resume{}))
		r.count(hub.Observation{Owner: a.id, Capability: "ocr", Outcome: identity.Failed})
		t.Equal(r.audit("resume_set"), []map[string]any{
			{"kind": "resume_set", "agent_id": a.id, "version": 2.0, "source": "tenant"},
			{"kind": "resume_set", "agent_id": a.id, "version": 3.0, "source": "observed", "capability": "ocr", "outcome": "failed"},
		})
	})
	holds(t, "ag2-hub#115: register, unregister, skill and rule", hub.Options{}, func(t *spec.T, r *rig) {
		a := r.agent("alice")
		skill := "# can do"
		rule := identity.DefaultRule()
		ctx := context.Background()
		t.NoError(r.SetSkill(ctx, a.id, &skill))
		t.NoError(r.SetSkill(ctx, a.id, nil))
		t.NoError(r.SetRule(ctx, a.id, &rule))
		t.NoError(r.Unregister(ctx, a.id))
		t.Equal(r.audit(), []map[string]any{
			{"kind": "agent_registered", "agent_id": a.id, "name": "alice"},
			{"kind": "skill_set", "agent_id": a.id, "removed": false},
			{"kind": "skill_set", "agent_id": a.id, "removed": true},
			{"kind": "rule_set", "agent_id": a.id, "version": 2.0},
			{"kind": "agent_unregistered", "agent_id": a.id, "name": "alice"},
		})
	})
	runs(t, "a failed turn", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		for _, where := range []string{ch, "nowhere", "", strings.Repeat("x", 300)} {
			if err := r.ReportTurnFailure(context.Background(), where, b.id, "e1", "RuntimeError", "boom"); err != nil {
				t.Fatal(err)
			}
			want := map[string]any{"kind": "turn_failed", "channel_id": where, "agent_id": b.id, "envelope_id": "e1", "exc_type": "RuntimeError", "exc_message": "boom"}
			records := r.audit("turn_failed")
			if diff := cmp.Diff(want, records[len(records)-1]); diff != "" {
				t.Fatal(diff)
			}
		}
		if heard := r.ear.heard(); !slices.Contains(heard, "turn of "+b.id+" on e1 failed: boom") {
			t.Fatalf("heard %q", heard)
		}
		r.say(b, ch, "it goes on")
	})
	runs(t, "lines are JSON objects with sorted keys and a time in Z", hub.Options{}, func(t *testing.T, r *rig) {
		a := r.agent("alice")
		page, _, err := r.AuditLog(context.Background(), hub.AuditQuery{})
		if err != nil {
			t.Fatal(err)
		}
		want := `{"agent_id":"` + a.id + `","at":"2000-01-01T00:00:00.000000Z","kind":"agent_registered","name":"alice"}`
		if got := string(page[0].Data); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	})
	runs(t, "openings, envelopes, acks and refusals are not audited", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("discussion", a, b)
		r.say(a, ch, "x")
		_, _ = r.trySay(a, ch, "not my turn")
		var kinds []string
		for _, record := range r.audit() {
			kinds = append(kinds, record["kind"].(string))
		}
		if want := []string{"agent_registered", "agent_registered", "channel_created"}; !slices.Equal(kinds, want) {
			t.Fatalf("got %q, want %q", kinds, want)
		}
	})
}

// taped is a sink that records the kinds that it receives.
type taped struct {
	kinds []string
	then  func()
}

func (s *taped) Audit(line hub.AuditLine) error {
	s.kinds = append(s.kinds, line.Kind)
	if s.then != nil {
		s.then()
	}
	return errors.New("swallowed")
}

func TestAuditSinks(t *testing.T) {
	t.Parallel()
	holds(t, "ag2-hub#116: a live subscriber sees agent_registered, once it is stored", hub.Options{}, func(t *spec.T, r *rig) {
		tape := &taped{}
		stored := 0
		tape.then = func() { stored = len(r.audit("agent_registered")) }
		remove := r.AddAuditSink(tape)
		release := r.hold()
		done := make(chan struct{})
		go func() { defer close(done); r.agent("alice") }()
		r.settle()
		t.Equal(len(tape.kinds), 0)
		release()
		<-done
		t.Equal(tape.kinds, []string{"agent_registered"})
		t.Equal(stored, 1)
		remove()
		r.agent("bob")
		t.Equal(tape.kinds, []string{"agent_registered"})
	})
	tape := &taped{}
	second := &bytes.Buffer{}
	holds(t, "ag2-hub#116: a second sink is told everything, and the journal's audit stays", hub.Options{
		AuditSinks: []hub.AuditSink{tape, lineSink{second}, panicSink{}},
	}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		r.end(ch, "")
		page, _, err := r.AuditLog(context.Background(), hub.AuditQuery{})
		t.NoError(err)
		var lines strings.Builder
		var kinds []string
		for _, line := range page {
			fmt.Fprintf(&lines, "%s\n", line.Data)
			kinds = append(kinds, line.Kind)
		}
		t.Equal(second.String(), lines.String())
		t.Equal(tape.kinds, kinds)
	})
	holds(t, "ag2-hub#116: custom kinds are accepted", hub.Options{}, func(t *spec.T, r *rig) {
		t.NoError(r.Audit(context.Background(), "my_kind", map[string]any{"n": 1, "kind": "not this", "list": []string{}}))
		t.Equal(r.audit(), []map[string]any{{"kind": "my_kind", "n": 1.0, "list": []any{}}})
		r.restart()
		t.Equal(len(r.audit("my_kind")), 1)
	})
	runs(t, "a kind is needed, and fields that encode", hub.Options{}, func(t *testing.T, r *rig) {
		for _, err := range []error{
			r.Audit(context.Background(), "", nil),
			r.Audit(context.Background(), "k", map[string]any{"f": func() {}}),
		} {
			if fault.CodeOf(err) != fault.Invalid {
				t.Errorf("got %v", err)
			}
		}
		if got := r.audit(); len(got) != 0 {
			t.Fatalf("audited %v", got)
		}
	})
}

// lineSink writes each record as a line.
type lineSink struct{ to *bytes.Buffer }

func (s lineSink) Audit(line hub.AuditLine) error {
	_, err := fmt.Fprintf(s.to, "%s\n", line.Data)
	return err
}

type panicSink struct{}

func (panicSink) Audit(hub.AuditLine) error { panic("no") }

func TestAuditQuery(t *testing.T) {
	t.Parallel()
	runs(t, "by time, kind, channel and agent, in both directions, paged", byHand, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		r.pass(time.Hour)
		second := time.Now()
		ch := r.open("conversation", a, b)
		r.observe(task.Task{ID: "1", Owner: b.id, Channel: ch})
		r.pass(time.Hour)
		third := time.Now()
		r.end(ch, "")
		r.pass(time.Second)
		for name, test := range map[string]struct {
			q    hub.AuditQuery
			want []string
		}{
			"all":          {hub.AuditQuery{}, []string{"agent_registered", "agent_registered", "channel_created", "task_terminated", "channel_closed"}},
			"from":         {hub.AuditQuery{From: second}, []string{"channel_created", "task_terminated", "channel_closed"}},
			"until":        {hub.AuditQuery{Until: second}, []string{"agent_registered", "agent_registered"}},
			"between":      {hub.AuditQuery{From: second, Until: third}, []string{"channel_created"}},
			"just after":   {hub.AuditQuery{From: second.Add(time.Microsecond), Until: third.Add(time.Microsecond)}, []string{"task_terminated", "channel_closed"}},
			"kind":         {hub.AuditQuery{Kind: "agent_registered"}, []string{"agent_registered", "agent_registered"}},
			"channel":      {hub.AuditQuery{Channel: ch}, []string{"channel_created", "task_terminated", "channel_closed"}},
			"agent":        {hub.AuditQuery{Agent: b.id}, []string{"agent_registered", "channel_created", "task_terminated"}},
			"kind, agent":  {hub.AuditQuery{Kind: "task_terminated", Agent: a.id}, nil},
			"other agents": {hub.AuditQuery{Agent: "nobody"}, nil},
		} {
			for _, newest := range []bool{false, true} {
				for limit := 1; limit < 7; limit++ {
					q := test.q
					q.Limit, q.Newest = limit, newest
					var got []string
					for {
						page, next, err := r.AuditLog(context.Background(), q)
						if err != nil || len(page) > limit {
							t.Fatalf("%s: %d lines, %v", name, len(page), err)
						}
						for _, line := range page {
							got = append(got, line.Kind)
						}
						if q.After = next; next == "" {
							break
						}
					}
					if newest {
						slices.Reverse(got)
					}
					if !slices.Equal(got, test.want) {
						t.Errorf("%s by %d, newest first %v: got %q, want %q", name, limit, newest, got, test.want)
					}
				}
			}
		}
	})
	runs(t, "a line that is too long for the index is found without what makes it so", hub.Options{}, func(t *testing.T, r *rig) {
		if err := r.Audit(context.Background(), "long", map[string]any{"channel_id": "c", "text": strings.Repeat("x", 100_000)}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]map[string]any{{"kind": "long", "channel_id": "c", "truncated": true}}, r.audit("long")); diff != "" {
			t.Fatal(diff)
		}
		for e, err := range r.FollowAudit(context.Background(), nil) {
			if err != nil || len(e.Data) < 100_000 {
				t.Fatalf("%d bytes, %v", len(e.Data), err)
			}
			break
		}
	})
}

func TestFollowAudit(t *testing.T) {
	t.Parallel()
	runs(t, "from the start, then live, and on after a position", hub.Options{}, func(t *testing.T, r *rig) {
		a := r.agent("alice")
		var got []hub.AuditEntry
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() {
			for e, err := range r.FollowAudit(ctx, nil) {
				if err != nil {
					ended <- err
					return
				}
				got = append(got, e)
			}
		}()
		r.settle()
		if len(got) != 1 {
			t.Fatalf("got %d before", len(got))
		}
		ch := r.open("conversation", a, r.agent("bob"))
		r.observe(task.Task{ID: "1", Owner: a.id, Channel: ch})
		r.end(ch, "")
		r.settle()
		var kinds []string
		for _, e := range got {
			kinds = append(kinds, e.Kind)
		}
		want := []string{"agent_registered", "agent_registered", "channel_created", "task_terminated", "channel_closed"}
		if r.shards > 1 { // entries of different shards have no order among them
			slices.Sort(kinds)
			slices.Sort(want)
		}
		if !slices.Equal(kinds, want) {
			t.Fatalf("got %q, want %q", kinds, want)
		}
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Fatalf("ended with %v", err)
		}
		// After a position in the middle of a batch the whole batch is repeated.
		for i := range got {
			if r.shards > 1 {
				break // the next entry may be of another shard
			}
			next := ""
			for e, err := range r.FollowAudit(cancelled(t, 0), got[i].Position) {
				if err == nil {
					next = e.Kind
				}
				break
			}
			expect := map[int]string{0: want[1], 1: want[2], 2: want[3], 3: want[3], 4: ""}[i]
			if next != expect {
				t.Errorf("after entry %d comes %q, want %q", i, next, expect)
			}
		}
		head, err := r.AuditHead(context.Background())
		if err != nil || head[0].Offset < got[4].Position[0].Offset {
			t.Fatalf("head %v, %v", head, err)
		}
	})
	runs(t, "a position that does not exist is a gap", hub.Options{}, func(t *testing.T, r *rig) {
		for _, err := range r.FollowAudit(context.Background(), gone(r)) {
			if fault.CodeOf(err) != fault.Gap {
				t.Fatalf("got %v", err)
			}
		}
	})
}

// gone returns a position that never existed.
func gone(r *rig) journal.StorePosition {
	at := make(journal.StorePosition, r.shards)
	at[0] = journal.ShardPosition{Epoch: 99, Offset: 7}
	return at
}

// cancelled returns a context that ends after some of the bubble's time.
func cancelled(t *testing.T, after time.Duration) context.Context {
	ctx, stop := context.WithTimeout(context.Background(), after+time.Millisecond)
	t.Cleanup(stop)
	return ctx
}

func TestAuditAfterCrash(t *testing.T) {
	t.Parallel()
	for point := range 6 {
		holds(t, fmt.Sprintf("ag2-hub#112: after a crash at point %d the valid prefix is readable", point), hub.Options{}, func(t *spec.T, r *rig) {
			a, b := r.agent("alice"), r.agent("bob")
			ctx, h, engine := context.Background(), r.Hub, r.engine
			steps := []func(){
				func() { _ = h.Audit(ctx, "one", nil) },
				func() {
					_, _ = h.Open(ctx, hub.Opening{Creator: a.id, Type: "conversation", Participants: []string{b.id}})
				},
				func() { _ = h.Audit(ctx, "two", nil) },
				func() { _ = h.ObserveTask(ctx, task.Task{ID: "1", Owner: a.id}, nil, hub.MirrorOff) },
				func() { _ = h.UpdateTask(ctx, task.Update{ID: "1", State: task.Failed}, nil, hub.MirrorOff) },
				func() { _ = h.Audit(ctx, "three", nil) },
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				for i, step := range steps {
					if i == point {
						engine.Faults().HoldSync() // from here on nothing becomes durable
					}
					step()
				}
			}()
			r.settle()
			before := r.audit()
			r.crash()
			<-done
			t.Equal(r.audit(), before)
			kinds := []any{}
			for _, record := range before {
				kinds = append(kinds, record["kind"])
			}
			// Of these steps only the observation of a task is not audited.
			all := []any{"agent_registered", "agent_registered", "one", "channel_created", "two", "task_terminated", "three"}
			t.Equal(kinds, all[:2+[]int{0, 1, 2, 3, 3, 4}[point]])
			t.NoError(r.Audit(context.Background(), "after", nil))
			t.Equal(r.audit()[len(before):], []map[string]any{{"kind": "after"}})
		})
	}
}

func TestLogLines(t *testing.T) {
	t.Parallel()
	// heard returns the messages that were logged at a level.
	heard := func(out *bytes.Buffer, level slog.Level) []string {
		var list []string
		for line := range strings.Lines(out.String()) {
			var record struct {
				Level slog.Level `json:"level"`
				Msg   string     `json:"msg"`
			}
			if err := json.Unmarshal([]byte(line), &record); err == nil && record.Level == level {
				list = append(list, record.Msg)
			}
		}
		return list
	}
	rejected := &bytes.Buffer{}
	holds(t, "ag2-hub#118: a rejection logs a warning", hub.Options{Log: slog.New(slog.NewJSONHandler(rejected, nil))}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("discussion", a, b)
		t.Equal(len(heard(rejected, slog.LevelWarn)), 0)
		_, err := r.trySay(b, ch, "not my turn")
		t.ErrorContains(err, "expects")
		t.Equal(heard(rejected, slog.LevelWarn), []string{"post_envelope rejected"})
	})
	registered := &bytes.Buffer{}
	holds(t, "ag2-hub#118: a registration logs info", hub.Options{Log: slog.New(slog.NewJSONHandler(registered, nil))}, func(t *spec.T, r *rig) {
		r.agent("alice")
		t.Equal(heard(registered, slog.LevelInfo), []string{"agent registered"})
	})
}
