package agent_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/adapter/turn"
	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/agent/agenttest"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/view"
)

// check holds a statement in a synctest bubble of its own.
func check(t *testing.T, statement string, fn func(t *spec.T, w *world)) {
	t.Helper()
	spec.Check(t, statement, func(t *spec.T) { inBubble(t, fn) })
}

// test is like check, without a statement.
func test(t *testing.T, name string, fn func(t *spec.T, w *world)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		inBubble(&spec.T{T: t}, fn)
	})
}

func inBubble(t *spec.T, fn func(t *spec.T, w *world)) {
	outer := t.T
	synctest.Test(outer, func(inner *testing.T) {
		t.T = inner
		defer func() { t.T = outer }()
		fn(t, newWorld(inner))
	})
}

// world is a network with agents that run in it.
type world struct {
	*agenttest.Network
	t   *testing.T
	ctx context.Context
}

func newWorld(t *testing.T) *world {
	return &world{Network: agenttest.New(), t: t, ctx: t.Context()}
}

// run joins an agent and lets it run until the test ends.
func (w *world) run(name string, model agent.Model, opts agent.Options) (*agent.Agent, *agenttest.Link) {
	link := w.Join(name)
	return w.start(link, model, opts), link
}

func (w *world) start(link *agenttest.Link, model agent.Model, opts agent.Options) *agent.Agent {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	a := agent.New(link, model, opts)
	ctx, stop := context.WithCancel(w.ctx)
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	w.t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			w.t.Errorf("%s: %v", link.Self().Name, err)
		}
	})
	return a
}

// settle waits until every goroutine is idle.
func (w *world) settle() { synctest.Wait() }

// pass lets time go by.
func (w *world) pass(d time.Duration) {
	<-time.After(d)
	w.settle()
}

// must is for goroutines other than the test's own.
func (w *world) must(err error) {
	if err != nil {
		w.t.Errorf("unexpected error: %v", err)
	}
}

// open opens a channel and lets everyone settle.
func (w *world) open(t *spec.T, link agent.Link, o agent.Opening) *channel.Metadata {
	t.Helper()
	m, err := link.OpenChannel(w.ctx, o)
	t.NoError(err)
	w.settle()
	return m
}

// say posts a text and lets everyone settle.
func (w *world) say(t *spec.T, link agent.Link, channelID, text string) string {
	t.Helper()
	e, err := turn.BuildText(channelID, link.Self().ID, text, turn.Address{})
	t.NoError(err)
	id, err := link.Post(w.ctx, e)
	t.NoError(err)
	w.settle()
	return id
}

// log returns a channel's history of some types, all if none is named.
func (w *world) log(t *spec.T, link agent.Link, channelID string, types ...string) []*envelope.Envelope {
	t.Helper()
	all, err := link.Log(w.ctx, channelID)
	t.NoError(err)
	var kept []*envelope.Envelope
	for _, e := range all {
		for _, wanted := range types {
			if e.Type == wanted {
				kept = append(kept, e)
			}
		}
		if len(types) == 0 {
			kept = append(kept, e)
		}
	}
	return kept
}

// lines returns a channel's texts as "who: what".
func (w *world) lines(t *spec.T, link agent.Link, channelID string) []string {
	t.Helper()
	var lines []string
	for _, e := range w.log(t, link, channelID, envelope.TypeText) {
		text, _ := view.TextOnly{}.Render(e)
		lines = append(lines, e.Sender+": "+text)
	}
	return lines
}

// script returns one response after the other, and nothing after the last. It
// remembers what it was asked.
type script struct {
	mu        sync.Mutex
	responses []agent.Response
	prompts   []agent.Prompt
}

func says(texts ...string) *script {
	s := &script{}
	for _, text := range texts {
		s.responses = append(s.responses, agent.Response{Text: text})
	}
	return s
}

func does(responses ...agent.Response) *script { return &script{responses: responses} }

func calling(calls ...turn.Call) agent.Response { return agent.Response{Calls: calls} }

func (s *script) Respond(_ context.Context, p *agent.Prompt) (*agent.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	copied := *p
	copied.Messages = append([]agent.Message{}, p.Messages...)
	s.prompts = append(s.prompts, copied)
	if len(s.responses) == 0 {
		return &agent.Response{}, nil
	}
	next := s.responses[0]
	s.responses = s.responses[1:]
	return &next, nil
}

func (s *script) asked() []agent.Prompt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]agent.Prompt{}, s.prompts...)
}

// inputs returns what the model was asked, round by round.
func (s *script) inputs() []string {
	var list []string
	for _, p := range s.asked() {
		list = append(list, p.Input())
	}
	return list
}

func toolNames(p agent.Prompt) []string {
	var names []string
	for _, tool := range p.Tools {
		names = append(names, tool.Name)
	}
	return names
}

func graphOf(initial, fallback string, rules ...string) []byte {
	list := ""
	for i, r := range rules {
		if i > 0 {
			list += ","
		}
		list += r
	}
	return fmt.Appendf(nil, `{"graph":{"initial_speaker":%q,"transitions":[%s],"default_target":%s}}`, initial, list, fallback)
}

func toAgent(id string) string { return fmt.Sprintf(`{"name":"agent","args":{"agent_id":%q}}`, id) }

const ended = `{"name":"terminate","args":{"reason":"ended"}}`

func ids(names ...string) []string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = "id-" + name
	}
	return list
}

const minute = time.Minute

type agenttestLink = agenttest.Link

func adapterNamed(name string) channel.Adapter {
	for _, a := range adapter.All() {
		if a.Manifest().Type == name {
			return a
		}
	}
	return nil
}

func stateJSON(t *spec.T, w *world, m *channel.Metadata) string {
	t.Helper()
	text, err := adapterNamed(m.Manifest.Type).Codec().Encode(w.State(m.ID))
	t.NoError(err)
	return string(text)
}
