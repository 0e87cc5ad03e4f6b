package adapter_test

import (
	"testing"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/adapter/adaptertest"
	"github.com/parley-hub/parley/adapter/turn"
	"github.com/parley-hub/parley/adapter/workflow"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/graph"
)

const knobs = `{"graph":{"initial_speaker":"a","default_target":{"name":"round_robin"}}}`

func TestAll(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	var keys []channel.Key
	for _, a := range adapter.All() {
		m := a.Manifest()
		keys = append(keys, m.Key())
		_, ok := a.(turn.Driver)
		c.True(ok, "%s has an agent's side", m.Type)
	}
	c.Equal(keys, []channel.Key{{Type: "consulting", Version: 1}, {Type: "conversation", Version: 1}, {Type: "discussion", Version: 1}, {Type: "workflow", Version: 1}})
}

func TestEveryAdapter(t *testing.T) {
	t.Parallel()
	for _, a := range adapter.All() {
		name := a.Manifest().Type
		spec.Check(t, "seed-000#65: unknown types leave the state of a "+name, func(t *spec.T) {
			p, err := adaptertest.Open(a, adaptertest.Metadata(a, knobs, "a", "b"))
			t.NoError(err)
			t.NoError(p.Say("a"))
			before := p.State
			for _, eventType := range []string{
				envelope.TypeInvite, envelope.TypeInviteAck, envelope.TypeInviteReject, envelope.TypeOpened,
				envelope.TypeClosed, envelope.TypeExpired, envelope.TypeExpectationViolated, "app.unknown",
			} {
				t.NoError(p.Post(adaptertest.Envelope("b", eventType, `{"text":"x"}`)))
				t.True(p.State == before, "%s leaves the state as it was", eventType)
			}
			t.Equal(p.Closed, "")
		})
		spec.Check(t, "seed-000#52: tasks advance no turn of a "+name, func(t *spec.T) {
			p, err := adaptertest.Open(a, adaptertest.Metadata(a, knobs, "a", "b"))
			t.NoError(err)
			before := p.State
			for _, eventType := range []string{
				envelope.TypeTaskStarted, envelope.TypeTaskProgress, envelope.TypeTaskCompleted, envelope.TypeTaskFailed, envelope.TypeTaskExpired,
			} {
				t.NoError(p.Post(adaptertest.Envelope("b", eventType, `{"task_id":"t"}`))) // it is a's turn
				t.True(p.State == before, "%s advances no turn", eventType)
			}
		})
	}
}

func TestTurnsAreCounted(t *testing.T) {
	t.Parallel()
	for _, a := range adapter.All() {
		c := &spec.T{T: t}
		p, err := adaptertest.Open(a, adaptertest.Metadata(a, knobs, "a", "b"))
		c.NoError(err)
		for want := range 3 {
			n, counted := a.(turn.Driver).Turns(p.State)
			c.Equal(n, want)
			c.True(counted, "%s counts", a.Manifest().Type)
			if want < 2 {
				c.NoError(p.Say([]string{"a", "b"}[want]))
			}
		}
		_, counted := a.(turn.Driver).Turns(nil)
		c.False(counted, "no state counts")
	}
	_, counted := turn.Defaults{}.Turns(nil)
	(&spec.T{T: t}).False(counted, "the defaults count")
}

func TestVisible(t *testing.T) {
	t.Parallel()
	for _, a := range adapter.All() {
		spec.Check(t, "seed-000#55: who sees an envelope of a "+a.Manifest().Type, func(t *spec.T) {
			m := adaptertest.Metadata(a, knobs, "a", "b")
			s, err := a.Initial(m)
			t.NoError(err)
			for _, test := range []struct {
				audience []string
				agent    string
				want     bool
			}{
				{nil, "a", true},
				{nil, "b", true},
				{[]string{"b"}, "a", true},
				{[]string{"b"}, "b", true},
				{[]string{"b"}, "c", false},
				{[]string{}, "a", true},
				{[]string{}, "b", false},
			} {
				e := adaptertest.Text("a", "x")
				e.Audience = test.audience
				t.Equal(a.Visible(m, s, m.Members(), e, test.agent), test.want)
			}
		})
	}
}

type unlucky struct{}

func (unlucky) Name() string                                { return "unlucky" }
func (unlucky) Evaluate(f *graph.Facts, _ *graph.Turn) bool { return f.Turns == 3 }

func TestCustomNodes(t *testing.T) {
	t.Parallel()
	nodes := graph.NewRegistry(graph.Limits{})
	if err := nodes.RegisterCondition(unlucky{}); err != nil {
		t.Fatal(err)
	}
	workflow := adapter.AllWith(workflow.Options{Registry: nodes})[3]
	spec.Check(t, "seed-002#76: a custom condition sees the advanced state", func(t *spec.T) {
		m := adaptertest.Metadata(workflow, `{"graph":{"initial_speaker":"a","transitions":[{"when":{"name":"unlucky"},"then":{"name":"terminate","args":{"reason":"thirteen"}}}],"default_target":{"name":"round_robin"}}}`, "a", "b")
		p, err := adaptertest.Open(workflow, m)
		t.NoError(err)
		t.NoError(p.Say("a", "b"))
		t.Equal(p.Closed, "")
		t.NoError(p.Say("a")) // the third turn counts itself: the state is advanced first
		t.Equal(p.Closed, "thirteen")
	})
}
