package agent_test

import (
	"context"
	"testing"

	"github.com/parley-hub/parley/adapter/turn"
	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/agent/samples"
	"github.com/parley-hub/parley/conformance/spec"
)

type queueDepth struct {
	samples.Owned
	Depth int
}

func (queueDepth) SampleKind() string { return "queue.depth" }

func TestSamples(t *testing.T) {
	t.Parallel()
	check(t, "seed-003#87: a tool's call gives access to the same routes", func(t *spec.T, w *world) {
		hub := &samples.Hub{}
		route, err := samples.RouteOf[queueDepth](hub, samples.RouteOptions{})
		t.NoError(err)
		inbox, err := route.Subscribe(samples.SubscribeOptions{})
		t.NoError(err)
		defer inbox.Close()
		measure := agent.NewTool("measure", "measures", `{}`, func(ctx context.Context, call *agent.Call, _ struct{}) (any, error) {
			own, err := samples.RouteOf[queueDepth](call.Samples(), samples.RouteOptions{})
			if err != nil {
				return nil, err
			}
			return "measured", own.Emit(ctx, 1, queueDepth{Depth: 7})
		})
		model := does(calling(turn.Call{ID: "1", Name: "measure", Arguments: `{}`}))
		a, _ := w.run("a", model, agent.Options{Tools: []*agent.Tool{measure}, Samples: hub})
		t.Equal(used(t, w, a, model), "measured")
		got, ok := inbox.TryRead()
		t.True(ok, "the tool's sample arrived")
		t.Equal(got.Value.Depth, 7)
		t.True(a.Samples() == hub, "the agent has the same hub")
	})
	test(t, "an agent has a hub of its own, and a call outside of a turn one without readers", func(t *spec.T, w *world) {
		a, _ := w.run("a", says(), agent.Options{})
		t.True(a.Samples() != nil, "there is a hub")
		t.True((&agent.Call{}).Samples() != nil, "there is a hub")
	})
}
