package agent_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/adapter/turn"
	"github.com/parley-hub/parley/adapter/workflow"
	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/agent/embedded"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/journal/mem"
	"github.com/parley-hub/parley/task"
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

func (h *house) join(name string) *embedded.Link {
	h.t.Helper()
	l, err := embedded.Attach(h.ctx, h.hub, name)
	if err != nil {
		h.t.Fatal(err)
	}
	return l
}

// run lets an agent run until it is stopped, or the test ends.
func (h *house) run(l *embedded.Link, model agent.Model, opts agent.Options) (*agent.Agent, func()) {
	opts.Log = slog.New(slog.DiscardHandler)
	a := agent.New(l, model, opts)
	ctx, cancel := context.WithCancel(h.ctx)
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil && h.ctx.Err() == nil {
			h.t.Errorf("%s: %v", l.Self().Name, err)
		}
	})
	h.t.Cleanup(stop)
	return a, stop
}

func (h *house) say(l *embedded.Link, channelID, text string) {
	h.t.Helper()
	e, err := turn.BuildText(channelID, l.Self().ID, text, turn.Address{})
	if err == nil {
		_, err = l.Post(h.ctx, e)
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

// lines returns what is said in a channel, by name.
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
	t.Run("a task feeds the track record", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		h := openHouse(t, mem.NewStore())
		h.run(h.join("b"), says("done"), agent.Options{Task: func(*agent.Turn) *agent.TaskSpec { return &scan }})
		a := h.join("a")
		h.run(a, says(), agent.Options{})
		b, _ := h.hub.FindAgent("b")
		m, err := a.OpenChannel(h.ctx, agent.Opening{Type: "conversation", Participants: []string{b}})
		c.NoError(err)
		h.say(a, m.ID, "go")
		h.hears(c, m.ID, "a: go", "b: done")
		record, err := a.Task(h.ctx, "t1")
		c.NoError(err)
		c.Equal(record.State, task.Completed)
		c.Equal(string(record.Result), `"done"`)
		peer, err := a.Peer(h.ctx, "b")
		c.NoError(err)
		c.Equal(peer.Observed, map[string]agent.Observed{"ocr": {N: 1, Completed: 1}})
		log, err := a.Log(h.ctx, m.ID)
		c.NoError(err)
		c.Equal(types(log)[3:], []string{
			envelope.TypeText, envelope.TypeTaskStarted, envelope.TypeTaskCompleted, envelope.TypeText,
		})
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
		m, err := a.OpenChannel(h.ctx, agent.Opening{Type: "discussion", Participants: []string{b.Self().ID}})
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
			if e.Type == envelope.TypeText && e.Sender == b.Self().ID {
				c.True(e.Causation != "", "b's answer names what it answers")
			}
		}
	})
}

// inFlight is a workflow in which b works on its round until released.
type inFlight struct {
	*house
	a, b, boss *embedded.Link
	m          *channel.Metadata
	release    chan struct{}
}

func beginRound(t *spec.T) *inFlight {
	t.Helper()
	h := openHouse(t.T, mem.NewStore())
	f := &inFlight{house: h, a: h.join("a"), b: h.join("b"), boss: h.join("boss"), release: make(chan struct{})}
	working := make(chan struct{})
	slow := &agent.Tool{Name: "slow", Run: func(ctx context.Context, _ *agent.Call) (any, error) {
		close(working)
		select {
		case <-f.release:
		case <-ctx.Done():
		}
		return agent.Handoff{Target: "a", Reason: "done"}, nil
	}}
	h.run(f.a, says("thanks"), agent.Options{})
	h.run(f.b, does(agent.Response{Text: "working on it", Calls: []turn.Call{{Name: "slow"}}}), agent.Options{Tools: []*agent.Tool{slow}})
	h.run(f.boss, says(), agent.Options{})
	a, b, boss := f.a.Self().ID, f.b.Self().ID, f.boss.Self().ID
	knobs := `{"graph":{"initial_speaker":"` + a + `","transitions":[{"when":{"name":"from_speaker","args":{"agent_id":"` + a + `"}},"then":{"name":"agent","args":{"agent_id":"` + b +
		`"}}}],"default_target":{"name":"terminate"},"max_turns":3},"supervisors":["` + boss + `"]}`
	m, err := f.a.OpenChannel(h.ctx, agent.Opening{Type: "workflow", Participants: []string{b, boss}, Knobs: []byte(knobs)})
	t.NoError(err)
	f.m = m
	h.say(f.a, m.ID, "go")
	<-working
	return f
}

func TestRoundInFlight(t *testing.T) {
	t.Parallel()
	spec.Check(t, "seed-002#106: the expected speaker stays while its round is in flight", func(t *spec.T) {
		f := beginRound(t)
		expected, ok, err := f.hub.Expected(f.ctx, f.m.ID)
		t.NoError(err)
		t.True(ok, "someone is expected")
		t.Equal(expected.Agent, f.b.Self().ID)
		may := func(l *embedded.Link) bool {
			ok, err := l.CanSend(f.ctx, f.m.ID, envelope.TypeText)
			t.NoError(err)
			return ok
		}
		t.True(may(f.b), "b may send")
		t.False(may(f.a), "a may send")
		e, err := turn.BuildText(f.m.ID, f.a.Self().ID, "hurry", turn.Address{})
		t.NoError(err)
		_, err = f.a.Post(f.ctx, e)
		t.ErrorContains(err, "expects '"+f.b.Self().ID+"' to speak")
		close(f.release)
		f.hears(t, f.m.ID, "a: go", "b: [Handed off via slow] done\nworking on it", "a: thanks")
	})
	spec.Check(t, "seed-002#107: a supervisor's send waits for the packet boundary", func(t *spec.T) {
		f := beginRound(t)
		corrected := make(chan error, 1)
		go func() {
			e, err := turn.BuildText(f.m.ID, f.boss.Self().ID, "be careful", turn.Address{})
			if err == nil {
				_, err = f.boss.Post(f.ctx, e)
			}
			corrected <- err
		}()
		select {
		case err := <-corrected:
			t.Fatalf("did not wait for the round: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
		t.Equal(f.lines(f.m.ID), []string{"a: go"})
		close(f.release)
		t.NoError(<-corrected)
		// Directly before the packet, so that every fold ends on the packet.
		f.hears(t, f.m.ID, "a: go", "boss: be careful", "b: [Handed off via slow] done\nworking on it", "a: thanks")
		closed, err := f.a.Channel(f.ctx, f.m.ID)
		t.NoError(err)
		t.Equal(closed.CloseReason, "max_turns")
	})
}

// A bridge drives a channel with no agent running.
func TestBridge(t *testing.T) {
	t.Parallel()
	bridge := func(t *spec.T) (h *house, a, b, c *embedded.Link, m *channel.Metadata, driver turn.Driver) {
		h = openHouse(t.T, mem.NewStore())
		a, b, c = h.join("a"), h.join("b"), h.join("c")
		for _, l := range []*embedded.Link{b, c} {
			person := agent.NewHuman(l, agent.HumanOptions{}) // answers the invite, and nothing else
			t.Cleanup(person.Disconnect)
		}
		knobs := `{"graph":{"initial_speaker":"` + a.Self().ID + `","default_target":{"name":"agent","args":{"agent_id":"` + b.Self().ID + `"}}}}`
		m, err := a.OpenChannel(h.ctx, agent.Opening{Type: "workflow", Participants: []string{b.Self().ID, c.Self().ID}, Knobs: []byte(knobs)})
		t.NoError(err)
		governs, err := h.hub.Adapter(h.ctx, m.ID)
		t.NoError(err)
		return h, a, b, c, m, turn.For(governs)
	}
	expects := func(t *spec.T, h *house, m *channel.Metadata, want *embedded.Link) {
		t.Helper()
		expected, _, err := h.hub.Expected(h.ctx, m.ID)
		t.NoError(err)
		t.Equal(expected.Agent, want.Self().ID)
	}
	spec.Check(t, "ag2-channels#68: a packet advances the graph", func(t *spec.T) {
		h, a, b, _, m, driver := bridge(t)
		e, err := driver.BuildPacket(m.ID, a.Self().ID, "hello", turn.Packet{})
		t.NoError(err)
		_, err = a.Post(h.ctx, e)
		t.NoError(err)
		expects(t, h, m, b)
	})
	spec.Check(t, "ag2-channels#68: a handoff to an agent_id routes there", func(t *spec.T) {
		h, a, _, c, m, driver := bridge(t)
		e, err := driver.BuildPacket(m.ID, a.Self().ID, "hello", turn.Packet{Handoff: &turn.Handoff{Target: c.Self().ID}})
		t.NoError(err)
		_, err = a.Post(h.ctx, e)
		t.NoError(err)
		expects(t, h, m, c)
	})
	spec.Check(t, "seed-000#67: a built text envelope counts as a turn", func(t *spec.T) {
		h, a, b, _, m, driver := bridge(t)
		e, err := driver.BuildText(m.ID, a.Self().ID, "hello", turn.Address{})
		t.NoError(err)
		_, err = a.Post(h.ctx, e)
		t.NoError(err)
		expects(t, h, m, b)
	})
	spec.Check(t, "seed-000#68: a built handoff packet advances the graph", func(t *spec.T) {
		h, a, _, c, m, driver := bridge(t)
		e, err := driver.BuildPacket(m.ID, a.Self().ID, "", turn.Packet{Handoff: &turn.Handoff{Target: c.Self().ID, Reason: "yours"}})
		t.NoError(err)
		_, err = a.Post(h.ctx, e)
		t.NoError(err)
		expects(t, h, m, c)
	})
	spec.Check(t, "seed-000#69: a built packet with context_set changes the context", func(t *spec.T) {
		h, a, _, _, m, driver := bridge(t)
		e, err := driver.BuildPacket(m.ID, a.Self().ID, "", turn.Packet{Context: map[string]any{"n": 9007199254740993}})
		t.NoError(err)
		_, err = a.Post(h.ctx, e)
		t.NoError(err)
		s, err := h.hub.State(h.ctx, m.ID)
		t.NoError(err)
		got, _ := s.(*workflow.State).Facts.Vars.Get("n")
		t.Equal(got, "9007199254740993")
	})
	spec.Check(t, "seed-000#66: adapter_for returns the channel's adapter", func(t *spec.T) {
		h, a, b, _, m, _ := bridge(t)
		talk, err := a.OpenChannel(h.ctx, agent.Opening{Type: "conversation", Participants: []string{b.Self().ID}})
		t.NoError(err)
		for id, want := range map[string]string{m.ID: "workflow", talk.ID: "conversation"} {
			governs, err := h.hub.Adapter(h.ctx, id)
			t.NoError(err)
			manifest := governs.Manifest()
			t.Equal(manifest.Key(), channel.Key{Type: want, Version: 1})
		}
		_, err = h.hub.Adapter(h.ctx, "nowhere")
		t.Equal(fault.CodeOf(err), fault.NotFound)
	})
}

// wait polls until something holds, because the hub has no event for "everyone
// is idle".
func wait(ctx context.Context, holds func() bool) bool {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
	return true
}
