package agent_test

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"

	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/agent/agenttest"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/view"
)

func TestResilience(t *testing.T) {
	t.Parallel()
	check(t, "ag2-channels#125: a redelivered trigger gets no second reply", func(t *spec.T, w *world) {
		b := says("once", "twice")
		_, link := w.run("b", b, agent.Options{})
		_, a := w.run("a", says(), agent.Options{})
		m := w.open(t, a, agent.Opening{Type: "conversation", Participants: ids("b")})
		w.say(t, a, m.ID, "hello")
		link.Repeat(w.log(t, a, m.ID, envelope.TypeText)[0])
		w.settle()
		t.Equal(w.lines(t, a, m.ID), []string{"id-a: hello", "id-b: once"})
		t.Equal(len(b.asked()), 1)
		t.True(link.Idle(), "the repetition was acked too")
	})
	test(t, "two processes that answer at once post one answer", func(t *spec.T, w *world) {
		release := make(chan struct{})
		var asked atomic.Int32
		slow := agent.ModelFunc(func(ctx context.Context, _ *agent.Prompt) (*agent.Response, error) {
			asked.Add(1)
			select {
			case <-release:
			case <-ctx.Done():
			}
			return &agent.Response{Text: "me first"}, nil
		})
		link := w.Join("b")
		// Room for one: the repetition goes to the process that is free.
		w.start(link, slow, agent.Options{Queue: 1})
		w.start(link, slow, agent.Options{Queue: 1})
		_, a := w.run("a", says(), agent.Options{})
		m := w.open(t, a, agent.Opening{Type: "conversation", Participants: ids("b")})
		w.say(t, a, m.ID, "hello")
		link.Repeat(w.log(t, a, m.ID, envelope.TypeText)[0])
		w.settle()
		t.Equal(asked.Load(), int32(2))
		close(release)
		w.settle()
		t.Equal(w.lines(t, a, m.ID), []string{"id-a: hello", "id-b: me first"})
	})
	check(t, "ag2-channels#126: a failing model", func(t *spec.T, w *world) {
		fails := true
		model := agent.ModelFunc(func(context.Context, *agent.Prompt) (*agent.Response, error) {
			if fails {
				fails = false
				return nil, errors.New("out of tokens")
			}
			return &agent.Response{Text: "better now"}, nil
		})
		_, b := w.run("b", model, agent.Options{})
		_, a := w.run("a", says(), agent.Options{})
		m := w.open(t, a, agent.Opening{Type: "conversation", Participants: ids("b")})
		first := w.say(t, a, m.ID, "hello")
		t.Equal(w.Failures(), []agenttest.Failure{{Channel: m.ID, Agent: "id-b", Envelope: first, Error: "out of tokens"}})
		t.True(b.Idle(), "the failed turn was acked")
		alive, err := a.Channel(w.ctx, m.ID)
		t.NoError(err)
		t.Equal(alive.State, channel.Active)
		w.say(t, a, m.ID, "again")
		t.Equal(w.lines(t, a, m.ID), []string{"id-a: hello", "id-a: again", "id-b: better now"})
	})
	check(t, "ag2-channels#126: a failing view", func(t *spec.T, w *world) {
		broken := &viewing{Adapter: shipped("conversation"), view: panicking{}}
		w.run("b", says("never"), agent.Options{Adapters: []channel.Adapter{broken}})
		_, a := w.run("a", says(), agent.Options{})
		m := w.open(t, a, agent.Opening{Type: "conversation", Participants: ids("b")})
		var want []agenttest.Failure
		for _, text := range []string{"hello", "still there?"} {
			id := w.say(t, a, m.ID, text)
			want = append(want, agenttest.Failure{Channel: m.ID, Agent: "id-b", Envelope: id, Error: "agent: panic: the view broke"})
			t.Equal(w.Failures(), want)
		}
		alive, err := a.Channel(w.ctx, m.ID)
		t.NoError(err)
		t.Equal(alive.State, channel.Active)
	})
	check(t, "ag2-channels#127: a raising handler does not stop later deliveries", func(t *spec.T, w *world) {
		b := says("fine")
		_, link := w.run("b", b, agent.Options{Handle: func(_ context.Context, _ *agent.Agent, e *envelope.Envelope) (bool, error) {
			switch string(e.Data) {
			case `{"text":"raise"}`:
				return false, errors.New("raised")
			case `{"text":"panic"}`:
				panic("panicked")
			}
			return false, nil
		}})
		_, a := w.run("a", says(), agent.Options{})
		m := w.open(t, a, agent.Opening{Type: "conversation", Participants: ids("b")})
		one := w.say(t, a, m.ID, "raise")
		two := w.say(t, a, m.ID, "panic")
		w.say(t, a, m.ID, "hello")
		t.Equal(w.lines(t, a, m.ID), []string{"id-a: raise", "id-a: panic", "id-a: hello", "id-b: fine"})
		_, nacks := link.Receipts()
		t.Equal(nacks, []string{one + ": raised", two + ": agent: panic: panicked"})
	})
	check(t, "ag2-channels#129: re-fires one", func(t *spec.T, w *world) {
		w.run("c", says(), agent.Options{})
		_, a := w.run("a", says(), agent.Options{})
		link := w.Join("b")
		model := says("b1")
		b := agent.New(link, model, agent.Options{})
		stop := ackOnly(w, link)
		m := w.open(t, a, agent.Opening{Type: "discussion", Participants: ids("b", "c")})
		asked := w.say(t, a, m.ID, "a1") // arrives and is acked, but never handled
		stop()
		n, err := b.ResumePendingTurns(w.ctx)
		t.NoError(err)
		t.Equal(n, 1)
		t.Equal(w.lines(t, a, m.ID), []string{"id-a: a1", "id-b: b1"})
		t.Equal(w.log(t, a, m.ID, envelope.TypeText)[1].Causation, asked)
	})
	check(t, "ag2-channels#129: none when none is pending", func(t *spec.T, w *world) {
		b, _ := w.run("b", says(), agent.Options{})
		n, err := b.ResumePendingTurns(w.ctx)
		t.NoError(err)
		t.Equal(n, 0)
	})
	check(t, "ag2-channels#129: skips what nothing triggered", func(t *spec.T, w *world) {
		w.run("b", says(), agent.Options{})
		model := says("never")
		creator, a := w.run("a", model, agent.Options{})
		w.open(t, a, agent.Opening{Type: "discussion", Participants: ids("b")})
		pending, err := a.PendingTurns(w.ctx)
		t.NoError(err)
		t.Equal(len(pending), 1)
		t.Equal(pending[0].Trigger, "")
		n, err := creator.ResumePendingTurns(w.ctx)
		t.NoError(err)
		t.Equal(n, 0)
		t.Equal(len(model.asked()), 0)
	})
	for kind, others := range map[string][]string{"consulting": ids("b"), "discussion": ids("b", "c")} {
		test(t, "what it may not see is not resumed: "+kind, func(t *spec.T, w *world) {
			w.run("c", says(), agent.Options{})
			var handled []string
			model := says("never")
			b, _ := w.run("b", model, agent.Options{Handle: func(_ context.Context, _ *agent.Agent, e *envelope.Envelope) (bool, error) {
				if e.Type == envelope.TypeText {
					handled = append(handled, e.ID)
				}
				return false, nil
			}})
			_, a := w.run("a", says(), agent.Options{})
			m := w.open(t, a, agent.Opening{Type: kind, Participants: others})
			id, err := a.Post(w.ctx, &envelope.Envelope{Channel: m.ID, Sender: "id-a", Type: envelope.TypeText, Audience: ids("c"), Data: []byte(`{"text":"not for b"}`)})
			t.NoError(err)
			w.settle()
			pending, err := b.Link().PendingTurns(w.ctx)
			t.NoError(err)
			t.Equal(pending[0].Trigger, id)
			n, err := b.ResumePendingTurns(w.ctx)
			t.NoError(err)
			t.Equal(n, 0)
			t.Equal(len(model.asked()), 0)
			t.Equal(handled, []string(nil))
			t.Equal(len(w.Failures()), 0)
		})
	}
	test(t, "what cannot be judged is a failed turn, and the others are resumed", func(t *spec.T, w *world) {
		_, a := w.run("a", says(), agent.Options{})
		link := w.Join("b")
		b := agent.New(link, says("b1"), agent.Options{Adapters: []channel.Adapter{shipped("discussion")}})
		stop := ackOnly(w, link)
		unknown := w.open(t, a, agent.Opening{Type: "consulting", Participants: ids("b")})
		known := w.open(t, a, agent.Opening{Type: "discussion", Participants: ids("b")})
		id := w.say(t, a, unknown.ID, "a1")
		w.say(t, a, known.ID, "a2")
		stop()
		n, err := b.ResumePendingTurns(w.ctx)
		t.NoError(err)
		t.Equal(n, 1)
		t.Equal(w.lines(t, a, known.ID), []string{"id-a: a2", "id-b: b1"})
		t.Equal(w.Failures(), []agenttest.Failure{{
			Channel: unknown.ID, Agent: "id-b", Envelope: id, Error: "no registered adapter for 'consulting' version 1",
		}})
	})
	test(t, "reporting a failure may fail too", func(t *spec.T, w *world) {
		_, b := w.run("b", agent.ModelFunc(func(context.Context, *agent.Prompt) (*agent.Response, error) { return nil, io.ErrUnexpectedEOF }), agent.Options{})
		b.Fail("ReportTurnFailure", errors.New("down"))
		_, a := w.run("a", says(), agent.Options{})
		m := w.open(t, a, agent.Opening{Type: "conversation", Participants: ids("b")})
		w.say(t, a, m.ID, "hello")
		t.True(b.Idle(), "the delivery was acked")
	})
	test(t, "a channel whose adapter is unknown is a failed turn", func(t *spec.T, w *world) {
		w.run("b", says("never"), agent.Options{Adapters: []channel.Adapter{shipped("discussion")}})
		_, a := w.run("a", says(), agent.Options{})
		m := w.open(t, a, agent.Opening{Type: "conversation", Participants: ids("b")})
		w.say(t, a, m.ID, "hello")
		t.Equal(len(w.Failures()), 1)
		t.Contains(w.Failures()[0].Error, "no registered adapter", "'conversation'")
	})
	test(t, "the end of the link ends Run", func(t *spec.T, w *world) {
		link := w.Join("b")
		a := agent.New(link, says(), agent.Options{})
		done := make(chan error, 1)
		go func() { done <- a.Run(w.ctx) }()
		link.Cut()
		err := <-done
		t.ErrorIs(err, io.EOF)
		t.ErrorContains(err, "link of 'b' ended")
	})
}

type panicking struct{}

func (panicking) Name() string                    { return "panicking" }
func (panicking) Project(view.Input) []view.Event { panic("the view broke") }

// ackOnly acks deliveries without handling them, except handshakes, like a
// process that crashes after its receipt.
func ackOnly(w *world, link *agenttestLink) (stop func()) {
	ctx, cancel := context.WithCancel(w.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			d, err := link.Receive(ctx)
			if err != nil {
				return
			}
			if d.Envelope.Type == envelope.TypeInvite {
				_, _ = link.Post(ctx, &envelope.Envelope{Channel: d.Envelope.Channel, Sender: link.Self().ID, Type: envelope.TypeInviteAck, Data: []byte(`{}`)})
			}
			_ = d.Ack(ctx)
		}
	}()
	return func() { cancel(); <-done }
}
