package workflow_test

import (
	"testing"

	"github.com/parley-hub/parley/adapter/adaptertest"
	"github.com/parley-hub/parley/conformance/spec"
)

func TestAdvise(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	advise := func(g string) []string {
		return adapter.Advise(adaptertest.Metadata(adapter, knobs(g), ids("a", "b")...))
	}
	c.Equal(advise(graph("a", end("x"), 0, rule(from("a"), to("b")))), []string(nil))
	warned := advise(graph("a", to("ghost"), 0))
	c.Equal(len(warned), 1)
	c.Contains(warned[0], "warning", "default_target", "agt-ghost")
	c.Equal(advise(`{}`), []string(nil)) // refused, not advised
}
