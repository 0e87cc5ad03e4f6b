package agent_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/parley-hub/parley/adapter/turn"
	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
)

func TestOrder(t *testing.T) {
	t.Parallel()
	test(t, "one turn at a time for each channel, in order", func(t *spec.T, w *world) {
		var running, most int
		release := make(chan struct{})
		model := agent.ModelFunc(func(ctx context.Context, p *agent.Prompt) (*agent.Response, error) {
			running++
			most = max(most, running)
			defer func() { running-- }()
			select {
			case <-release:
			case <-ctx.Done():
			}
			return &agent.Response{Text: "re " + p.Input()}, nil
		})
		w.run("b", model, agent.Options{})
		_, a := w.run("a", says(), agent.Options{})
		m := w.open(t, a, agent.Opening{Type: "conversation", Participants: ids("b")})
		for i := range 3 {
			w.say(t, a, m.ID, fmt.Sprint(i))
		}
		for range 3 {
			release <- struct{}{}
			w.settle()
		}
		t.Equal(most, 1)
		t.Equal(w.lines(t, a, m.ID)[3:], []string{"id-b: re 0", "id-b: re 1", "id-b: re 2"})
	})
	test(t, "channels do not wait for each other", func(t *spec.T, w *world) {
		release := make(chan struct{})
		model := agent.ModelFunc(func(ctx context.Context, p *agent.Prompt) (*agent.Response, error) {
			if p.Input() == "slow" {
				select {
				case <-release:
				case <-ctx.Done():
				}
			}
			return &agent.Response{Text: "done"}, nil
		})
		w.run("b", model, agent.Options{})
		_, a := w.run("a", says(), agent.Options{})
		slow := w.open(t, a, agent.Opening{Type: "conversation", Participants: ids("b")})
		fast := w.open(t, a, agent.Opening{Type: "conversation", Participants: ids("b")})
		w.say(t, a, slow.ID, "slow")
		w.say(t, a, fast.ID, "fast")
		t.Equal(w.lines(t, a, fast.ID), []string{"id-a: fast", "id-b: done"})
		t.Equal(w.lines(t, a, slow.ID), []string{"id-a: slow"})
		close(release)
		w.settle()
		t.Equal(w.lines(t, a, slow.ID), []string{"id-a: slow", "id-b: done"})
	})
	test(t, "a full queue receives no more", func(t *spec.T, w *world) {
		release := make(chan struct{})
		model := agent.ModelFunc(func(ctx context.Context, _ *agent.Prompt) (*agent.Response, error) {
			select {
			case <-release:
			case <-ctx.Done():
			}
			return &agent.Response{}, nil
		})
		_, b := w.run("b", model, agent.Options{Queue: 2})
		_, a := w.run("a", says(), agent.Options{})
		m := w.open(t, a, agent.Opening{Type: "conversation", Participants: ids("b")})
		for range 5 {
			w.say(t, a, m.ID, "more")
		}
		acks, _ := b.Receipts()
		t.Equal(len(acks), 2) // the handshake's; no text yet
		t.False(b.Idle(), "something waits at the hub")
		close(release)
		w.settle()
		t.True(b.Idle(), "everything was answered")
	})
	test(t, "a later trigger is the one to answer", func(t *spec.T, w *world) {
		b := says("b1", "b2")
		link := w.Join("b")
		w.run("c", says("c1"), agent.Options{})
		_, a := w.run("a", says("a2"), agent.Options{})
		stop := ackOnly(w, link)
		m := w.open(t, a, agent.Opening{Type: "discussion", Participants: ids("b", "c")})
		w.say(t, a, m.ID, "a1")
		stop()
		// Another process of b has answered, and it is b's turn again.
		w.say(t, link, m.ID, "b0")
		old := w.log(t, a, m.ID, envelope.TypeText)[0]
		t.Equal(w.lines(t, a, m.ID), []string{"id-a: a1", "id-b: b0", "id-c: c1", "id-a: a2"})
		link.Repeat(old) // only the stale one
		b2 := agent.New(link, b, agent.Options{})
		ctx, cancel := context.WithCancel(w.ctx)
		done := make(chan struct{})
		go func() { defer close(done); _ = b2.Run(ctx) }()
		w.settle()
		cancel()
		<-done
		t.Equal(b.inputs(), []string{"[a]: a2"})
	})
}

func TestCrash(t *testing.T) {
	t.Parallel()
	knobs := graphOf("id-a", ended, `{"when":{"name":"from_speaker","args":{"agent_id":"id-a"}},"then":`+toAgent("id-b")+`}`)
	var keys [][]string
	crash := func(t *spec.T, w *world) (a *agenttestLink, m *channel.Metadata, before string) {
		link := w.Join("b")
		_, a = w.run("a", says(), agent.Options{})
		var seen []string
		tool := agent.NewTool("charge", "", `{}`, func(ctx context.Context, call *agent.Call, _ struct{}) (any, error) {
			seen = append(seen, call.Key)
			return "ok", call.Turn.SetContext(ctx, "charged", true)
		})
		calls := []turn.Call{{ID: "1", Name: "charge"}, {ID: "2", Name: "charge"}}
		dies := agent.ModelFunc(func(ctx context.Context, p *agent.Prompt) (*agent.Response, error) {
			if len(p.Messages) == 1 {
				return &agent.Response{Text: "half said", Calls: calls}, nil
			}
			<-ctx.Done() // the process ends in the middle of its round
			return nil, ctx.Err()
		})
		first := agent.New(link, dies, agent.Options{Tools: []*agent.Tool{tool}})
		ctx, kill := context.WithCancel(w.ctx)
		done := make(chan struct{})
		go func() { defer close(done); _ = first.Run(ctx) }()
		m = w.open(t, a, agent.Opening{Type: "workflow", Participants: ids("b"), Knobs: knobs})
		w.say(t, a, m.ID, "go")
		before = stateJSON(t, w, m)
		kill()
		<-done
		t.Equal(len(w.log(t, a, m.ID, envelope.TypePacket)), 0)
		t.Equal(stateJSON(t, w, m), before)
		t.Equal(len(w.Failures()), 0)
		// A new process connects and catches up.
		link.Redeliver()
		w.start(link, does(calling(calls...), agent.Response{Text: "charged"}), agent.Options{Tools: []*agent.Tool{tool}, Log: slog.New(slog.DiscardHandler)})
		w.settle()
		keys = append(keys, seen)
		return a, m, before
	}
	check(t, "seed-002#101: a crash in mid-round leaves the state as before it", func(t *spec.T, w *world) {
		_, _, before := crash(t, w)
		t.Contains(before, `"expected_next_speaker":"id-b"`, `"turn_count":1`)
	})
	check(t, "seed-002#101: also in the middle of a tool", func(t *spec.T, w *world) {
		link := w.Join("b")
		_, a := w.run("a", says(), agent.Options{})
		slow := &agent.Tool{Name: "slow", Run: func(ctx context.Context, _ *agent.Call) (any, error) {
			<-ctx.Done()
			return agent.Handoff{Target: "a"}, nil
		}}
		b := agent.New(link, does(calling(turn.Call{ID: "1", Name: "slow"})), agent.Options{Tools: []*agent.Tool{slow}})
		ctx, kill := context.WithCancel(w.ctx)
		done := make(chan struct{})
		go func() { defer close(done); _ = b.Run(ctx) }()
		m := w.open(t, a, agent.Opening{Type: "workflow", Participants: ids("b"), Knobs: knobs})
		w.say(t, a, m.ID, "go")
		before := w.log(t, a, m.ID)
		kill()
		<-done
		t.Equal(w.log(t, a, m.ID), before)
		t.Equal(expected(w, m), "id-b")
	})
	check(t, "seed-002#102: after such a crash the original input is dispatched again", func(t *spec.T, w *world) {
		a, m, _ := crash(t, w)
		packets := w.log(t, a, m.ID, envelope.TypePacket)
		t.Equal(len(packets), 1)
		t.Equal(string(packets[0].Data), `{"routing":{"kind":"text"},"context_updates":{"set":{},"delete":[]},"body":"charged"}`)
		t.Equal(packets[0].Causation, w.log(t, a, m.ID, envelope.TypeText)[0].ID)
	})
	check(t, "seed-002#103: tools of the crashed round run again on the retry", func(t *spec.T, w *world) {
		a, m, _ := crash(t, w)
		t.Equal(len(w.log(t, a, m.ID, envelope.TypeContextSet)), 4) // twice before the crash, twice after
		t.Equal(len(keys[len(keys)-1]), 4)
	})
	check(t, "seed-002#104: the same on a retry", func(t *spec.T, w *world) {
		crash(t, w)
		seen := keys[len(keys)-1]
		t.Equal(seen[2:], seen[:2])
		t.True(seen[0] != seen[1], "two calls of one tool have two keys")
		t.Equal(len(seen[0]), 64)
	})
	check(t, "seed-002#104: different for another tool, and in another channel", func(t *spec.T, w *world) {
		seen := map[string]bool{}
		note := func(_ context.Context, call *agent.Call) (any, error) {
			seen[call.Key] = true
			return "ok", nil
		}
		both := calling(turn.Call{ID: "1", Name: "charge"}, turn.Call{ID: "2", Name: "refund"})
		w.run("b", does(both, agent.Response{Text: "b1"}, both, agent.Response{Text: "b2"}),
			agent.Options{Tools: []*agent.Tool{{Name: "charge", Run: note}, {Name: "refund", Run: note}}})
		_, a := w.run("a", says(), agent.Options{})
		for range 2 {
			w.say(t, a, w.open(t, a, agent.Opening{Type: "conversation", Participants: ids("b")}).ID, "go")
		}
		t.Equal(len(seen), 4)
	})
	check(t, "seed-002#104: different in the next round", func(t *spec.T, w *world) {
		var seen []string
		tool := agent.NewTool("charge", "", `{}`, func(_ context.Context, call *agent.Call, _ struct{}) (any, error) {
			seen = append(seen, call.Key)
			return "ok", nil
		})
		one := turn.Call{ID: "1", Name: "charge"}
		w.run("b", does(calling(one), agent.Response{Text: "b1"}, calling(one), agent.Response{Text: "b2"}), agent.Options{Tools: []*agent.Tool{tool}})
		_, a := w.run("a", says(), agent.Options{})
		m := w.open(t, a, agent.Opening{Type: "conversation", Participants: ids("b")})
		w.say(t, a, m.ID, "1")
		w.say(t, a, m.ID, "2")
		t.Equal(len(seen), 2)
		t.True(seen[0] != seen[1], "each round has keys of its own")
	})
}
