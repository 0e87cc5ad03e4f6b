package client_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/client"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/task"
)

func TestTurnStatements(t *testing.T) {
	t.Parallel()
	spec.Check(t, "ag2-hub#23: reconnect: same agent_id after attach, one pending turn resumed", func(t *spec.T) {
		t.Parallel()
		r := newRig(t)
		a := r.attach(r.dial(client.Options{}), "alice")
		away := r.dial(client.Options{})
		before := r.attach(away, "bob")
		ch := r.open("discussion", a, before)
		_, err := a.Send(t.Context(), ch, "you?")
		t.NoError(err)
		r.receive(before, envelope.TypeText) // taken, and never answered
		t.NoError(away.Close())

		b := r.attach(r.dial(client.Options{}), "bob")
		t.Equal(b.ID(), before.ID())
		bob := r.run(b, echo, agent.Options{})
		resumed, err := bob.ResumePendingTurns(t.Context())
		t.NoError(err)
		t.Equal(resumed, 1)
		r.receive(a, envelope.TypeText)
		t.Equal(r.texts(a, ch), []string{`{"text":"you?"}`, `{"text":"[ALICE]: YOU?"}`})
	})
	spec.Check(t, "ag2-hub#85: redelivering an answered trigger produces no second reply", func(t *spec.T) {
		t.Parallel()
		r := newRig(t)
		a, b := r.attach(r.dial(client.Options{}), "alice"), r.attach(r.dial(client.Options{}), "bob")
		again := &redelivering{Identity: b, again: make(chan *agent.Delivery, 1)}
		var asked atomic.Int64
		r.run(again, agent.ModelFunc(func(ctx context.Context, p *agent.Prompt) (*agent.Response, error) {
			asked.Add(1)
			return echo(ctx, p)
		}), agent.Options{})
		ch := r.invite("conversation", a, b)
		_, err := a.Send(t.Context(), ch, "you?")
		t.NoError(err)
		r.receive(a, envelope.TypeText)
		until(t, "the trigger came and was acked twice", func() bool {
			again.mu.Lock()
			defer again.mu.Unlock()
			return again.acked == 2
		})
		t.Equal(r.texts(a, ch), []string{`{"text":"you?"}`, `{"text":"YOU?"}`})
		t.Equal(asked.Load(), int64(1))
	})
	spec.Check(t, "ag2-hub#89: the trigger is fired once", func(t *spec.T) {
		t.Parallel()
		r := newRig(t)
		a, b := r.attach(r.dial(client.Options{}), "alice"), r.attach(r.dial(client.Options{}), "bob")
		ch := r.open("discussion", a, b)
		_, err := a.Send(t.Context(), ch, "you?")
		t.NoError(err)
		// Delivered and acked without an answer: no replay brings it back.
		t.NoError(r.receive(b, envelope.TypeText).Ack(t.Context()))
		asked := 0
		bob := agent.New(b, agent.ModelFunc(func(ctx context.Context, p *agent.Prompt) (*agent.Response, error) {
			asked++
			return echo(ctx, p)
		}), agent.Options{Log: quiet})
		first, err := bob.ResumePendingTurns(t.Context())
		t.NoError(err)
		second, err := bob.ResumePendingTurns(t.Context())
		t.NoError(err)
		t.Equal([]int{first, second, asked}, []int{1, 0, 1})
		t.Equal(r.texts(a, ch), []string{`{"text":"you?"}`, `{"text":"[ALICE]: YOU?"}`})
	})
	spec.Check(t, "ag2-hub#89: zero without a trigger", func(t *spec.T) {
		t.Parallel()
		r := newRig(t)
		a, b := r.attach(r.dial(client.Options{}), "alice"), r.attach(r.dial(client.Options{}), "bob")
		none, err := agent.New(b, echo, agent.Options{Log: quiet}).ResumePendingTurns(t.Context())
		t.NoError(err)
		r.open("discussion", a, b)
		turns, err := a.PendingTurns(t.Context())
		t.NoError(err)
		t.Equal(len(turns), 1)
		fresh, err := agent.New(a, echo, agent.Options{Log: quiet}).ResumePendingTurns(t.Context())
		t.NoError(err)
		t.Equal([]int{none, fresh}, []int{0, 0})
	})
	spec.Check(t, "ag2-hub#117: a crashing turn is told, and the channel stays usable", func(t *spec.T) {
		t.Parallel()
		r := newRig(t)
		ear := &ear{}
		r.hub.Listen(ear)
		a, b := r.attach(r.dial(client.Options{}), "alice"), r.attach(r.dial(client.Options{}), "bob")
		crash := true
		r.run(b, agent.ModelFunc(func(ctx context.Context, p *agent.Prompt) (*agent.Response, error) {
			if crash {
				crash = false
				return nil, errors.New("boom")
			}
			return echo(ctx, p)
		}), agent.Options{})
		ch := r.invite("conversation", a, b)
		id, err := a.Send(t.Context(), ch, "one")
		t.NoError(err)
		until(t, "the failure is told", func() bool { return len(ear.failures()) > 0 })
		t.Equal(ear.failures()[0][:3], []string{ch, b.ID(), id})
		t.Contains(ear.failures()[0][3], "boom")
		page, _, err := r.hub.AuditLog(t.Context(), hub.AuditQuery{Kind: "turn_failed"})
		t.NoError(err)
		t.Equal(len(page), 1)
		_, err = a.Send(t.Context(), ch, "two")
		t.NoError(err)
		t.Equal(string(r.receive(a, envelope.TypeText).Envelope.Data), `{"text":"TWO"}`)
	})
}

// redelivering delivers its first text to the agent twice, the second time
// after it was acked.
type redelivering struct {
	*client.Identity
	mu    sync.Mutex
	acked int
	again chan *agent.Delivery
}

func (l *redelivering) Receive(ctx context.Context) (*agent.Delivery, error) {
	select {
	case d := <-l.again:
		return d, nil
	default:
	}
	type received struct {
		d   *agent.Delivery
		err error
	}
	next := make(chan received, 1)
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		d, err := l.Identity.Receive(inner)
		next <- received{d, err}
	}()
	select {
	case d := <-l.again:
		cancel()
		<-next
		return d, nil
	case r := <-next:
		if r.err != nil || r.d.Envelope.Type != envelope.TypeText {
			return r.d, r.err
		}
		return l.twice(r.d), nil
	}
}

func (l *redelivering) twice(d *agent.Delivery) *agent.Delivery {
	first := *d
	first.Ack = func(ctx context.Context) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.acked++
		if l.acked == 1 {
			l.again <- &first
		}
		return d.Ack(ctx)
	}
	return &first
}

// ear records failed turns and tasks.
type ear struct {
	hub.NoopListener
	mu     sync.Mutex
	failed [][]string
	tasks  []hub.TaskEvent
}

func (e *ear) TurnFailed(channelID, agentID, envelopeID, message string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.failed = append(e.failed, []string{channelID, agentID, envelopeID, message})
}

func (e *ear) TaskEvent(ev hub.TaskEvent) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tasks = append(e.tasks, ev)
}

func (e *ear) failures() [][]string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.failed)
}

func (e *ear) ofKind(kind string) []hub.TaskEvent {
	e.mu.Lock()
	defer e.mu.Unlock()
	var found []hub.TaskEvent
	for _, ev := range e.tasks {
		if ev.Kind == kind {
			found = append(found, ev)
		}
	}
	return found
}

func TestTaskStatements(t *testing.T) {
	t.Parallel()
	for clause, capability := range map[string]string{"tagged": "ocr", "untagged": ""} {
		spec.Check(t, "ag2-hub#100: a completion, "+clause, func(t *spec.T) {
			t.Parallel()
			r := newRig(t)
			ear := &ear{}
			r.hub.Listen(ear)
			a, b := r.attach(r.dial(client.Options{}), "alice"), r.attach(r.dial(client.Options{}), "bob")
			r.run(b, echo, agent.Options{Task: func(*agent.Turn) *agent.TaskSpec {
				return &agent.TaskSpec{Title: "answer", Capability: capability}
			}})
			ch := r.invite("conversation", a, b)
			asked, err := a.Send(t.Context(), ch, "hello")
			t.NoError(err)
			r.receive(a, envelope.TypeText)
			until(t, "the task has ended", func() bool { return len(ear.ofKind("completed")) == 1 })
			observed := func() map[string]identity.ObservedStat {
				d, err := r.hub.Details(t.Context(), b.ID())
				t.NoError(err)
				return d.Resume.Observed
			}
			if capability == "" {
				// The turn is acked after everything that it reports.
				until(t, "the turn is over", func() bool {
					c, err := r.hub.Cursor(t.Context(), b.ID(), ch)
					return err == nil && c >= asked
				})
				t.Equal(len(observed()), 0)
				return
			}
			until(t, "it is observed", func() bool { return observed()["ocr"].N > 0 })
			stat := observed()["ocr"]
			stat.P50LatencyMS = nil
			t.Equal(stat, identity.ObservedStat{N: 1, Completed: 1})
		})
	}
	spec.Check(t, "ag2-hub#101: mirror failure reaches listeners as mirror_failed", func(t *spec.T) {
		t.Parallel()
		r := newRig(t)
		ear := &ear{}
		r.hub.Listen(ear)
		a, b := r.attach(r.dial(client.Options{}), "alice"), r.attach(r.dial(client.Options{}), "bob")
		rule := identity.DefaultRule()
		rule.Limits.MaxConcurrentTasks = 1
		t.NoError(b.SetRule(t.Context(), &rule))
		t.NoError(b.ObserveTask(t.Context(), &task.Task{ID: "in the way", State: task.Running}))
		r.run(b, echo, agent.Options{Task: func(*agent.Turn) *agent.TaskSpec { return &agent.TaskSpec{Title: "answer"} }})
		ch := r.invite("conversation", a, b)
		_, err := a.Send(t.Context(), ch, "hello")
		t.NoError(err)
		until(t, "the failure is heard", func() bool { return len(ear.ofKind("mirror_failed")) > 0 })
		told := ear.ofKind("mirror_failed")[0]
		t.Equal([]string{told.Owner, told.Channel}, []string{b.ID(), ch})
		var payload map[string]string
		t.NoError(json.Unmarshal(told.Payload, &payload))
		t.Contains(payload["exc_message"], "max_concurrent_tasks")
		delete(payload, "exc_message")
		t.Equal(payload, map[string]string{"op": "observe_task", "owner_id": b.ID(), "channel_id": ch, "exc_type": "access_denied"})
		// The work itself goes on.
		t.Equal(string(r.receive(a, envelope.TypeText).Envelope.Data), `{"text":"HELLO"}`)
	})
}

// Our agents post the events of their tasks themselves, so the hub does not.
func TestTasksAreToldOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a, b := r.attach(r.dial(client.Options{}), "alice"), r.attach(r.dial(client.Options{}), "bob")
	r.run(b, echo, agent.Options{Task: func(*agent.Turn) *agent.TaskSpec { return &agent.TaskSpec{Title: "answer"} }})
	ch := r.invite("conversation", a, b)
	if _, err := a.Send(t.Context(), ch, "hello"); err != nil {
		t.Fatal(err)
	}
	r.receive(a, envelope.TypeText)
	log, err := a.Log(t.Context(), ch)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, e := range log {
		if envelope.IsTask(e.Type) {
			got[e.Type]++
		}
	}
	for eventType, n := range got {
		if n != 1 {
			t.Errorf("%s is told %d times", eventType, n)
		}
	}
	if got[envelope.TypeTaskStarted] != 1 {
		t.Errorf("the channel was told %v", got)
	}
}
