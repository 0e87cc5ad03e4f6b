package hpd_test

import (
	"testing"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/hpd"
)

// Another surface of the hub can close and delete the channel of a branch during a
// run, whose end can then not be written.
func TestBranchesThatEndElsewhere(t *testing.T) {
	t.Parallel()
	begun := func(c *spec.T) (*rig, *remote, string, object) {
		r := newRig(c, hpd.Config{})
		p := r.producer("far")
		s := r.session()
		r.input("far", s, "main", "hi")
		return r, p, s, p.work.named("input")
	}
	spec.Check(t, "hpd-events#105: the run of a closed branch is lost and not active, also after a restart", func(t *spec.T) {
		r, p, s, w := begun(t)
		_, err := r.hub.CloseChannel(t.Context(), mainOf(r, s), "enough")
		t.NoError(err)
		t.Equal(p.work.named("interrupt")["runtimeRunId"], w["runtimeRunId"])
		for range 2 {
			t.Equal(string(r.do("GET", p.at(w)+"/runs/active", nil).raw), "null")
			run := r.do("GET", p.at(w)+"/runs/"+w["runtimeRunId"].(string), nil).object()
			t.Equal(run["status"], any("failed"))
			t.True(run["completedAt"] != nil, "it has an end")
			t.Equal(run["error"].(object)["type"], any("RuntimeLost"))
			r.restart()
		}
		again := r.producer("far")
		other := r.session()
		r.input("far", other, "main", "next")
		t.Equal(again.work.named("input")["sessionId"], any(other)) // the first input that it gets
	})
	t.Run("of this process too", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		g := newGate()
		r := newRig(t, hpd.Config{Producers: map[string]hpd.Producer{"g": g}})
		s := r.session()
		r.input("g", s, "main", "hi")
		run := <-g.started
		_, err := r.hub.CloseChannel(t.Context(), mainOf(r, s), "enough")
		c.NoError(err)
		eventually(t, func() bool { return run.Publish(t.Context()) != nil })
		r.restart()
		c.Equal(r.do("GET", "/agents/g/sessions/"+s+"/branches/main/runs", nil).list()[0]["status"], any("failed"))
	})
	t.Run("the run of a deleted branch is not handed out again", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		r, p, s, w := begun(c)
		c.NoError(r.hub.Delete(t.Context(), mainOf(r, s), nil))
		c.Equal(p.work.named("interrupt")["runtimeRunId"], w["runtimeRunId"])
		p.work.close()
		p = r.producer("far")
		other := r.session()
		r.input("far", other, "main", "next")
		c.Equal(p.work.named("input")["sessionId"], any(other))
	})
}
