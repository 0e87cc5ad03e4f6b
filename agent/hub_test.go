package agent_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/adapter/turn"
	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/journal/mem"
)

// house is a real hub with agents that run in it.
type house struct {
	t     *testing.T
	ctx   context.Context
	store *mem.Store
	hub   *hub.Hub
	stop  func()
}

func openHouse(t *testing.T, store *mem.Store) *house {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	engine, err := mem.Open(mem.Options{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	h, err := hub.Open(t.Context(), engine, hub.Options{Adapters: adapter.All(), Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	house := &house{t: t, ctx: ctx, store: store, hub: h}
	house.stop = sync.OnceFunc(func() {
		cancel()
		h.Close()
		_ = engine.Close()
	})
	t.Cleanup(house.stop)
	return house
}

func (h *house) join(name string) *hubLink {
	h.t.Helper()
	l, err := attach(h.ctx, h.hub, name)
	if err != nil {
		h.t.Fatal(err)
	}
	return l
}

// run lets an agent run until it is stopped, or the test ends.
func (h *house) run(l *hubLink, model agent.Model, opts agent.Options) (*agent.Agent, func()) {
	opts.Log = slog.New(slog.DiscardHandler)
	a := agent.New(l, model, opts)
	ctx, cancel := context.WithCancel(h.ctx)
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil && h.ctx.Err() == nil {
			h.t.Errorf("%s: %v", l.self.Name, err)
		}
	})
	h.t.Cleanup(stop)
	return a, stop
}

func (h *house) say(l *hubLink, channelID, text string) {
	h.t.Helper()
	e, err := turn.BuildText(channelID, l.self.ID, text, turn.Address{})
	if err == nil {
		_, err = l.Post(h.ctx, e)
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

// lines are what is said in a channel, by name.
func (h *house) lines(channelID string) []string {
	var lines []string
	for e, err := range h.hub.Log(h.ctx, channelID, 0, 0) {
		if err != nil {
			return nil
		}
		if text, ok := adapterNamed("workflow").(channel.Renderer).Render(e); ok {
			lines = append(lines, h.hub.Name(e.Sender)+": "+text)
		}
	}
	return lines
}

// hears waits until that many things were said.
func (h *house) hears(t *spec.T, channelID string, want ...string) {
	t.Helper()
	wait(h.ctx, func() bool { return len(h.lines(channelID)) >= len(want) })
	t.Equal(h.lines(channelID), want)
}

func TestOnAHub(t *testing.T) {
	t.Parallel()
	t.Run("a consultation", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		h := openHouse(t, mem.NewStore())
		h.run(h.join("b"), says("42"), agent.Options{})
		a := h.join("a")
		h.run(a, says(), agent.Options{})
		b, _ := h.hub.FindAgent("b")
		m, err := a.OpenChannel(h.ctx, agent.Opening{Type: "consulting", Participants: []string{b}})
		c.NoError(err)
		h.say(a, m.ID, "what is it?")
		h.hears(c, m.ID, "a: what is it?", "b: 42")
		closed, err := a.Channel(h.ctx, m.ID)
		c.NoError(err)
		c.Equal(closed.CloseReason, "consulting_complete")
	})
	t.Run("a workflow with a handoff and a supervisor", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		h := openHouse(t, mem.NewStore())
		a, b, boss := h.join("a"), h.join("b"), h.join("boss")
		working, release := make(chan struct{}), make(chan struct{})
		slow := &agent.Tool{Name: "slow", Run: func(ctx context.Context, _ *agent.Call) (any, error) {
			close(working)
			<-release
			return agent.Handoff{Target: "a", Reason: "done"}, nil
		}}
		h.run(a, says("thanks"), agent.Options{})
		h.run(b, does(agent.Response{Text: "working on it", Calls: []turn.Call{{Name: "slow"}}}), agent.Options{Tools: []*agent.Tool{slow}})
		h.run(boss, says(), agent.Options{})
		knobs := `{"graph":{"initial_speaker":"` + a.self.ID + `","transitions":[{"when":{"name":"from_speaker","args":{"agent_id":"` + a.self.ID +
			`"}},"then":{"name":"agent","args":{"agent_id":"` + b.self.ID + `"}}}],"default_target":{"name":"terminate"},"max_turns":3},"supervisors":["` + boss.self.ID + `"]}`
		m, err := a.OpenChannel(h.ctx, agent.Opening{Type: "workflow", Participants: []string{b.self.ID, boss.self.ID}, Knobs: []byte(knobs)})
		c.NoError(err)
		h.say(a, m.ID, "go")
		<-working
		corrected := make(chan error, 1)
		go func() {
			e, err := turn.BuildText(m.ID, boss.self.ID, "be careful", turn.Address{})
			if err == nil {
				_, err = boss.Post(h.ctx, e)
			}
			corrected <- err
		}()
		// The correction waits for the round that is in flight.
		select {
		case err := <-corrected:
			t.Fatalf("did not wait: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
		close(release)
		c.NoError(<-corrected)
		h.hears(c, m.ID, "a: go", "boss: be careful", "b: [Handed off via slow] done\nworking on it", "a: thanks")
		closed, err := a.Channel(h.ctx, m.ID)
		c.NoError(err)
		c.Equal(closed.CloseReason, "max_turns")
	})
	t.Run("a restart in the middle of a discussion", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		store := mem.NewStore()
		h := openHouse(t, store)
		a, b := h.join("a"), h.join("b")
		asked := make(chan struct{})
		dies := agent.ModelFunc(func(ctx context.Context, _ *agent.Prompt) (*agent.Response, error) {
			close(asked)
			<-ctx.Done()
			return nil, ctx.Err()
		})
		_, stopA := h.run(a, says(), agent.Options{})
		_, stopB := h.run(b, dies, agent.Options{})
		m, err := a.OpenChannel(h.ctx, agent.Opening{Type: "discussion", Participants: []string{b.self.ID}})
		c.NoError(err)
		h.say(a, m.ID, "a1")
		<-asked
		stopB()
		stopA()
		h.stop()
		again := openHouse(t, store)
		again.run(again.join("a"), says("a2", ""), agent.Options{})
		again.run(again.join("b"), says("b1", ""), agent.Options{})
		again.hears(c, m.ID, "a: a1", "b: b1", "a: a2")
		for e, err := range again.hub.Log(again.ctx, m.ID, 0, 0) {
			c.NoError(err)
			if e.Type == envelope.TypeText && e.Sender == b.self.ID {
				c.True(e.Causation != "", "b's answer names what it answers")
			}
		}
	})
}
