package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/parley-hub/parley/adapter/turn"
	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/client"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
)

// The numbered statements that concern a client and its agents, over the wire.

// another is set in the process that plays the other side.
const another = "PARLEY_TEST_HUB"

func TestMain(m *testing.M) {
	if url := os.Getenv(another); url != "" {
		if err := playBob(url); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// playBob is an agent in a process of its own, until its input ends.
func playBob(url string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c, err := client.Dial(ctx, url, client.Options{Log: quiet})
	if err != nil {
		return err
	}
	defer c.Close()
	bob, err := c.Attach(ctx, client.Registration{Passport: identity.Passport{Name: "bob"}})
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- agent.New(bob, echo, agent.Options{Log: quiet}).Run(ctx) }()
	_, _ = io.Copy(io.Discard, os.Stdin)
	cancel()
	<-done
	return nil
}

// echo answers with what it was asked, in capitals.
var echo = agent.ModelFunc(func(_ context.Context, p *agent.Prompt) (*agent.Response, error) {
	return &agent.Response{Text: strings.ToUpper(p.Input())}, nil
})

// run lets an agent work until the test ends.
func (r *rig) run(link agent.Link, model agent.Model, o agent.Options) *agent.Agent {
	r.t.Helper()
	o.Log = quiet
	a := agent.New(link, model, o)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = a.Run(ctx)
	}()
	r.t.Cleanup(func() { cancel(); <-done })
	return a
}

// invite opens a channel whose invitees are run by agents, which ack.
func (r *rig) invite(channelType string, creator *client.Identity, invitees ...*client.Identity) string {
	r.t.Helper()
	var ids []string
	for _, i := range invitees {
		ids = append(ids, i.ID())
	}
	m, err := creator.OpenChannel(r.t.Context(), agent.Opening{Type: channelType, Participants: ids})
	if err != nil {
		r.t.Fatal(err)
	}
	return m.ID
}

// texts are what was said in a channel, in order.
func (r *rig) texts(i *client.Identity, ch string) []string {
	r.t.Helper()
	log, err := i.Log(r.t.Context(), ch)
	if err != nil {
		r.t.Fatal(err)
	}
	list := []string{}
	for _, e := range log {
		if e.Type == envelope.TypeText {
			list = append(list, string(e.Data))
		}
	}
	return list
}

func TestClientStatements(t *testing.T) {
	t.Parallel()
	spec.Check(t, "ag2-hub#1: the client adopts the endpoint", func(t *spec.T) {
		t.Parallel()
		r := newRig(t)
		r.attach(r.dial(client.Options{}), "alice")
		c := r.dial(client.Options{})
		again := r.attach(c, "alice")
		at, bound := r.hub.Bound(again.ID())
		t.Equal([]any{c.Endpoint(), bound}, []any{at, true})
		t.True(at != "", "the endpoint has a name")
	})
	spec.Check(t, "ag2-hub#12", func(t *spec.T) {
		t.Parallel()
		r := newRig(t)
		a, b := r.attach(r.dial(client.Options{}), "alice"), r.attach(r.dial(client.Options{}), "bob")
		var mu sync.Mutex
		var handled []string
		r.run(b, echo, agent.Options{Handle: func(_ context.Context, _ *agent.Agent, e *envelope.Envelope) (bool, error) {
			if e.Type != "app.note" {
				return false, nil
			}
			mu.Lock()
			defer mu.Unlock()
			handled = append(handled, string(e.Data))
			if len(handled) == 1 {
				return true, errors.New("on purpose")
			}
			return true, nil
		}})
		ch := r.invite("conversation", a, b)
		for n := range 3 {
			_, err := a.Post(t.Context(), &envelope.Envelope{Channel: ch, Type: "app.note", Data: fmt.Appendf(nil, `{"n":%d}`, n)})
			t.NoError(err)
		}
		until(t, "all are handled", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(handled) == 3
		})
		t.Equal(handled, []string{`{"n":0}`, `{"n":1}`, `{"n":2}`})
	})
	spec.Check(t, "ag2-hub#20", func(t *spec.T) {
		t.Parallel()
		r := newRig(t)
		_, err := r.attach(r.dial(client.Options{}), "alice").Peer(t.Context(), "nobody")
		t.Equal(fault.CodeOf(err), fault.NotFound)
	})
	spec.Check(t, "ag2-hub#21", func(t *spec.T) {
		t.Parallel()
		r := newRig(t)
		_, err := r.dial(client.Options{}).Register(t.Context(), client.Registration{Passport: identity.Passport{
			Name: "keyed", Auth: identity.Auth{Scheme: "api_key", Claim: []byte(`{"token":"wrong"}`)},
		}})
		t.Equal(fault.CodeOf(err), fault.AuthFailed)
		_, registered := r.hub.FindAgent("keyed")
		t.False(registered, "it is registered")
	})
	spec.Check(t, "ag2-hub#22", func(t *spec.T) {
		t.Parallel()
		r := newRig(t)
		other := exec.CommandContext(t.Context(), os.Args[0])
		other.Env = append(os.Environ(), another+"=ws://"+r.proxy.address())
		stdin, err := other.StdinPipe()
		t.NoError(err)
		t.NoError(other.Start())
		until(t, "bob registers", func() bool { _, ok := r.hub.FindAgent("bob"); return ok })
		bob, _ := r.hub.FindAgent("bob")
		a := r.attach(r.dial(client.Options{}), "alice")
		m, err := a.OpenChannel(t.Context(), agent.Opening{Type: "discussion", Participants: []string{bob}})
		t.NoError(err)
		_, err = a.Send(t.Context(), m.ID, "hello there")
		t.NoError(err)
		reply := r.receive(a, envelope.TypeText)
		t.Equal([]string{reply.Envelope.Sender, string(reply.Envelope.Data)}, []string{bob, `{"text":"HELLO THERE"}`})
		t.NoError(stdin.Close())
		t.NoError(other.Wait())
	})
	spec.Check(t, "ag2-hub#45", func(t *spec.T) {
		t.Parallel()
		r := newRig(t)
		c := r.dial(client.Options{})
		a := r.attach(c, "alice")
		for _, title := range []string{"first", "second", "third"} {
			resume, err := c.Resume(t.Context(), a.ID())
			t.NoError(err)
			resume.Examples = append(resume.Examples, identity.Example{Title: title})
			t.NoError(a.SetResume(t.Context(), resume))
		}
		resume, err := c.Resume(t.Context(), a.ID())
		t.NoError(err)
		t.Equal(resume.Examples, []identity.Example{{Title: "first"}, {Title: "second"}, {Title: "third"}})
	})
	spec.Check(t, "ag2-hub#87", func(t *spec.T) {
		t.Parallel()
		r := newRig(t)
		c := r.dial(client.Options{})
		i, err := c.Attach(t.Context(), client.Registration{
			Passport: identity.Passport{Name: "new", Owner: "o"}, Resume: &identity.Resume{Summary: "s", Version: 1},
		})
		t.NoError(err)
		p, err := c.Passport(t.Context(), "new")
		t.NoError(err)
		resume, err := c.Resume(t.Context(), i.ID())
		t.NoError(err)
		t.Equal([]string{p.AgentID, p.Owner, resume.Summary}, []string{i.ID(), "o", "s"})
	})
}

func TestTurnStatements(t *testing.T) {
	t.Parallel()
	spec.Check(t, "ag2-hub#23", func(t *spec.T) {
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
		t.Equal(r.texts(a, ch), []string{`{"text":"you?"}`, `{"text":"YOU?"}`})
	})
	spec.Check(t, "ag2-hub#85", func(t *spec.T) {
		t.Parallel()
		r := newRig(t)
		a, b := r.attach(r.dial(client.Options{}), "alice"), r.attach(r.dial(client.Options{}), "bob")
		again := &redelivering{Identity: b, again: make(chan *agent.Delivery, 1)}
		r.run(again, echo, agent.Options{})
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
		t.Equal(r.texts(a, ch), []string{`{"text":"you?"}`, `{"text":"YOU?"}`})
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
	spec.Check(t, "ag2-hub#117", func(t *spec.T) {
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

// redelivering hands its first text to the agent twice: again after it was
// acked.
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

// ear hears of failed turns and of tasks.
type ear struct {
	hub.Deaf
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

func TestDeliveryStatements(t *testing.T) {
	t.Parallel()
	spec.Check(t, "ag2-hub#73", func(t *spec.T) {
		t.Parallel()
		r := newRig(t)
		a, b := r.attach(r.dial(client.Options{}), "alice"), r.attach(r.dial(client.Options{}), "bob")
		r.run(b, echo, agent.Options{})
		ch := r.invite("conversation", a, b)
		var last string
		for n := range 5 {
			var err error
			last, err = a.Post(t.Context(), &envelope.Envelope{Channel: ch, Type: "app.note", Data: fmt.Appendf(nil, `{"n":%d}`, n)})
			t.NoError(err)
		}
		cursor := func(h *hub.Hub) string {
			c, err := h.Cursor(context.Background(), b.ID(), ch)
			t.NoError(err)
			return c
		}
		until(t, "the last is acked", func() bool { return cursor(r.hub) >= last })
		log, err := a.Log(t.Context(), ch)
		t.NoError(err)
		t.Equal(cursor(r.hub), log[len(log)-1].ID)
		second, closeSecond := r.second()
		defer closeSecond()
		t.Equal(cursor(second), last)
	})
	spec.Check(t, "ag2-hub#90", func(t *spec.T) {
		t.Parallel()
		r := newRig(t)
		a := r.attach(r.dial(client.Options{}), "alice")
		away := r.dial(client.Options{})
		b := r.attach(away, "bob")
		ch := r.open("conversation", a, b)
		t.NoError(r.receive(b, envelope.TypeOpened).Ack(t.Context()))
		t.NoError(away.Close())
		var want []string
		for _, eventType := range []string{envelope.TypeTaskStarted, envelope.TypeTaskCompleted} {
			id, err := a.Post(t.Context(), &envelope.Envelope{Channel: ch, Type: eventType, Data: []byte(`{"task_id":"t"}`)})
			t.NoError(err)
			want = append(want, id)
		}
		back := r.attach(r.dial(client.Options{}), "bob")
		got := []string{r.receive(back, envelope.TypeTaskStarted).Envelope.ID, r.receive(back, envelope.TypeTaskCompleted).Envelope.ID}
		t.Equal(got, want)
	})
	spec.Check(t, "ag2-hub#96", func(t *spec.T) {
		t.Parallel()
		r := newRig(t)
		b := r.attach(r.dial(client.Options{}), "bob")
		r.run(b, echo, agent.Options{})
		person := agent.NewHuman(r.attach(r.dial(client.Options{}), "ines"), agent.HumanOptions{Log: quiet})
		defer person.Disconnect()
		m, err := person.Open(t.Context(), agent.Opening{Type: "consulting", Participants: []string{b.ID()}})
		t.NoError(err)
		_, err = person.Send(t.Context(), m.ID, "hello", turn.Address{})
		t.NoError(err)
		until(t, "it is all over", func() bool {
			now, err := r.hub.Channel(t.Context(), m.ID)
			return err == nil && now.State.Terminal()
		})
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		defer cancel()
		reply, err := person.Next(ctx, func(e *envelope.Envelope) bool { return e.Type == envelope.TypeText })
		t.NoError(err)
		t.Equal(string(reply.Data), `{"text":"HELLO"}`)
		closed, err := person.Next(ctx, func(e *envelope.Envelope) bool { return e.Type == envelope.TypeClosed })
		t.NoError(err)
		t.Contains(string(closed.Data), "consulting_complete")
	})
}

func TestTaskStatements(t *testing.T) {
	t.Parallel()
	for clause, capability := range map[string]string{"tagged": "ocr", "untagged": ""} {
		spec.Check(t, "ag2-hub#100: "+clause, func(t *spec.T) {
			t.Parallel()
			r := newRig(t)
			ear := &ear{}
			r.hub.Listen(ear)
			a, b := r.attach(r.dial(client.Options{}), "alice"), r.attach(r.dial(client.Options{}), "bob")
			r.run(b, echo, agent.Options{Task: func(*agent.Turn) *agent.TaskSpec {
				return &agent.TaskSpec{Title: "answer", Capability: capability}
			}})
			ch := r.invite("conversation", a, b)
			_, err := a.Send(t.Context(), ch, "hello")
			t.NoError(err)
			r.receive(a, envelope.TypeText)
			until(t, "the task has ended", func() bool { return len(ear.ofKind("completed")) == 1 })
			observed := func() map[string]identity.ObservedStat {
				p, err := r.hub.AgentByID(b.ID())
				t.NoError(err)
				return p.Resume.Observed
			}
			if capability == "" {
				// The turn is acked after everything that it reports.
				until(t, "the turn is over", func() bool {
					c, err := r.hub.Cursor(t.Context(), b.ID(), ch)
					return err == nil && c != ""
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
	spec.Check(t, "ag2-hub#101", func(t *spec.T) {
		t.Parallel()
		r := newRig(t)
		ear := &ear{}
		r.hub.Listen(ear)
		a, b := r.attach(r.dial(client.Options{}), "alice"), r.attach(r.dial(client.Options{}), "bob")
		rule := identity.DefaultRule()
		rule.Limits.MaxConcurrentTasks = 1
		t.NoError(b.SetRule(t.Context(), &rule))
		t.NoError(b.ObserveTask(t.Context(), &agent.Task{ID: "in the way", State: agent.TaskRunning}))
		r.run(b, echo, agent.Options{Task: func(*agent.Turn) *agent.TaskSpec { return &agent.TaskSpec{Title: "answer"} }})
		ch := r.invite("conversation", a, b)
		_, err := a.Send(t.Context(), ch, "hello")
		t.NoError(err)
		until(t, "the failure is heard", func() bool { return len(ear.ofKind("mirror_failed")) > 0 })
		t.Equal(ear.ofKind("mirror_failed")[0].Owner, b.ID())
		// The work itself goes on.
		t.Equal(string(r.receive(a, envelope.TypeText).Envelope.Data), `{"text":"HELLO"}`)
	})
}

// Our agents tell a channel of their tasks themselves, so the hub does not.
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

func TestHumanStatements(t *testing.T) {
	t.Parallel()
	spec.Check(t, "ag2-hub#129: acks invites, and its reply closes a consulting channel", func(t *spec.T) {
		t.Parallel()
		r := newRig(t)
		a := r.attach(r.dial(client.Options{}), "alice")
		i := r.attach(r.dial(client.Options{}), "ines")
		person := agent.NewHuman(i, agent.HumanOptions{Log: quiet})
		defer person.Disconnect()
		ch := r.invite("consulting", a, i)
		_, err := a.Send(t.Context(), ch, "what do you think?")
		t.NoError(err)
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		defer cancel()
		asked, err := person.Next(ctx, func(e *envelope.Envelope) bool { return e.Type == envelope.TypeText })
		t.NoError(err)
		t.Equal(string(asked.Data), `{"text":"what do you think?"}`)
		_, err = person.Send(ctx, ch, "fine", turn.Address{})
		t.NoError(err)
		m, err := a.Channel(ctx, ch)
		t.NoError(err)
		t.Equal([]string{m.State.String(), m.CloseReason}, []string{"closed", "consulting_complete"})
	})
	spec.Check(t, "ag2-hub#129: opens a channel and takes a turn in it", func(t *spec.T) {
		t.Parallel()
		r := newRig(t)
		b := r.attach(r.dial(client.Options{}), "bob")
		r.run(b, echo, agent.Options{})
		i := r.attach(r.dial(client.Options{}), "ines")
		person := agent.NewHuman(i, agent.HumanOptions{Log: quiet})
		defer person.Disconnect()
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		defer cancel()
		m, err := person.Open(ctx, agent.Opening{Type: "discussion", Participants: []string{b.ID()}})
		t.NoError(err)
		for _, text := range []string{"one", "two"} {
			_, err = person.Send(ctx, m.ID, text, turn.Address{})
			t.NoError(err)
			_, err = person.Next(ctx, func(e *envelope.Envelope) bool { return e.Type == envelope.TypeText })
			t.NoError(err)
		}
		t.Equal(r.texts(i, m.ID), []string{`{"text":"one"}`, `{"text":"ONE"}`, `{"text":"two"}`, `{"text":"TWO"}`})
	})
}
