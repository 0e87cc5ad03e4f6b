package workflow_test

import (
	"strings"
	"testing"

	"github.com/parley-hub/parley/adapter/adaptertest"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/conformance/spec"
)

func supervised(t *spec.T, graph, supervisors string, names ...string) *adaptertest.Play {
	t.Helper()
	knobs := strings.TrimSuffix(knobs(graph), "}") + `,"supervisors":` + supervisors + `}`
	p, err := adaptertest.Open(adapter, adaptertest.Metadata(adapter, knobs, ids(names...)...))
	t.NoError(err)
	return p
}

func TestSupervisors(t *testing.T) {
	t.Parallel()
	spec.Check(t, "seed-002#13: a supervisor speaks at any time and moves nothing", func(c *spec.T) {
		p := supervised(c, ring, `["agt-boss"]`, "alice", "bob", "boss")
		play(c, p, "alice T -> bob")
		before := p.State
		play(c, p, "boss T -> bob\nboss P -> bob\nboss H any alice -> bob\nboss F enough -> bob")
		c.True(p.State == before, "the state is the same")
		c.Equal(len(p.Log), 5)
		c.Equal(adapter.Recipients(p.Meta, p.State, p.Meta.Members(), p.Log[1]), ids("alice", "bob"))
		play(c, p, "bob T -> boss")
	})
	t.Run("take a turn of their own when it comes", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		p := supervised(c, ring, `["agt-alice"]`, "alice", "bob")
		play(c, p, `
			alice T -> bob
			alice T -> bob
			bob T -> alice
			alice F over -> closed over`)
		c.Equal(state(p).Facts.Turns, 3)
	})
	t.Run("do not close a channel that stands at its cap", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		p := supervised(c, graph("alice", to("bob"), 2), `["agt-boss"]`, "alice", "bob", "boss")
		play(c, p, "alice T -> bob\nboss T -> bob\nboss T -> bob\nbob T -> closed max_turns")
		e := adaptertest.Text(id("boss"), "late")
		e.ID = "later"
		c.Equal(adapter.OnAccepted(p.Meta, p.State, e), channel.Effects{})
	})
	t.Run("nobody else does", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		p := supervised(c, ring, `["agt-boss"]`, "alice", "bob", "boss")
		c.ErrorContains(p.Say(id("bob")), "expects 'agt-alice' to speak")
		c.True(adapter.Supervisor(p.Meta, p.State, id("boss")), "boss supervises")
		c.False(adapter.Supervisor(p.Meta, p.State, id("bob")), "bob supervises")
		c.False(adapter.Supervisor(p.Meta, nil, id("boss")), "boss supervises nothing")
	})
	t.Run("not even they, once it is over", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		p := supervised(c, graph("alice", end("x"), 0), `["agt-boss"]`, "alice", "boss")
		play(c, p, "alice T -> closed x")
		c.ErrorContains(adapter.ValidateSend(p.Meta, p.State, adaptertest.Text(id("boss"), "x")), "expects nobody")
	})
	t.Run("are part of the state", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		p := supervised(c, ring, `["agt-bob"]`, "alice", "bob")
		c.Contains(p.JSON(), `"context_vars":{},"supervisors":["agt-bob"]}`)
		again, err := adapter.Codec().Decode([]byte(p.JSON()))
		c.NoError(err)
		c.True(adapter.Supervisor(p.Meta, again, id("bob")), "bob still supervises")
	})
}
