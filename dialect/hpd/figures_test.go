package hpd_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/hpd"
)

// figures reads the server's metrics, by name and labels.
func (r *rig) figures() map[string]float64 {
	r.t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(r.server); err != nil {
		r.t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		r.t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := strings.TrimPrefix(f.GetName(), "parley_hpd_")
			for _, label := range m.GetLabel() {
				name += " " + label.GetName() + "=" + label.GetValue()
			}
			out[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return out
}

// The metrics count what is open and what has happened, and no label has an id.
func TestFigures(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	r := newRig(t, hpd.Config{Producers: map[string]hpd.Producer{"echo": hpd.Echo{}}})
	far := r.producer("far")
	s := r.session()
	k := r.socket(c, "/agents/far/sessions/"+s+"/branches/main/ws")
	k.send(object{"type": "USER_TEXT_INPUT", "text": "go"})
	w := far.work.named("input")
	far.publish(w, "", delta("a"), delta("b"), object{"type": "AGENT_TURN_STARTED", "iteration": 0})
	far.do("POST", far.at(w)+"/requests?runtimeRunId="+w["runtimeRunId"].(string), object{"type": "CLARIFICATION_REQUEST", "requestId": "q", "sourceName": "s", "question": "?"})
	r.run("echo", r.session(), "main", "hi")
	got := r.figures()
	for name, want := range map[string]float64{
		"runs": 1, "sockets": 1, "producers": 1, "runs_waiting": 0, "requests": 1,
		"runs_ended_total outcome=completed": 1, "runs_ended_total outcome=failed": 0, "runs_ended_total outcome=cancelled": 0, "readers_cut_off_total": 0,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, not %v", name, got[name], want)
		}
	}
	if got["streams"] < 1 || got["events_total kept=stored"] < 5 || got["events_total kept=live"] < 1 {
		t.Errorf("%v", got)
	}
	for name := range got {
		if strings.Contains(name, s) || strings.Contains(name, "far") {
			t.Errorf("%s names something", name)
		}
	}
	far.complete(w, object{"status": "failed"})
	c.Equal(r.figures()["runs_ended_total outcome=failed"], 1.0)
}

// An agent's runs are listed in the order of their start, in pages.
func TestRunsInPages(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	r := newRig(t, hpd.Config{Producers: map[string]hpd.Producer{"echo": hpd.Echo{}, "other": hpd.Echo{}}, Limits: hpd.Limits{Runs: 3}})
	s := r.session()
	var want []string
	for range 5 {
		r.run("other", s, "main", "x")
		r.run("echo", s, "main", "hi")
	}
	for _, e := range only(r.history(s, "main"), "BRANCH_RUN_STARTED") {
		if e["agentId"] == "echo" {
			want = append(want, e["runtimeRunId"].(string))
		}
	}
	path := "/agents/echo/sessions/" + s + "/branches/main/runs"
	ids := func(query string) (list []string) {
		for _, run := range r.do("GET", path+query, nil).list() {
			list = append(list, run["runtimeRunId"].(string))
		}
		return list
	}
	for query, part := range map[string][]string{
		"": want[:3], "?offset=3": want[3:], "?limit=1&offset=1": want[1:2], "?offset=9": nil, "?limit=0": nil, "?limit=99": want[:3],
	} {
		if got := ids(query); !slices.Equal(got, part) {
			t.Errorf("%q: %v, not %v", query, got, part)
		}
	}
	c.Equal(string(r.do("GET", path+"?limit=0", nil).raw), "[]")
	bad := r.do("GET", path+"?limit=x", nil)
	c.Equal(bad.status, http.StatusBadRequest)
	c.Equal(bad.code(), "ListBranchRunsError")
}

// A name that cannot be registered is refused with 400.
func TestNamesOfProducers(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	r := newRig(t, hpd.Config{})
	for _, name := range []string{"%00", "a%00b", "a%0Ab", "%1b[31m", "%ff", "a%7F", strings.Repeat("x", 201)} {
		got := r.do("GET", "/agents/"+name+"/work", nil)
		c.Equal(got.status, http.StatusBadRequest)
		c.Equal(got.code(), "WorkError")
	}
	for _, name := range []string{"\x00", "a\x00b", "a\nb"} {
		if _, ok := r.hub.FindAgent(name); ok {
			t.Errorf("%q is registered", name)
		}
	}
}
