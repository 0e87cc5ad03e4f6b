package hpd_test

import (
	"testing"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/hpd"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/view/branch"
)

// The changes of a request are shown live, and stored only with
// hpd.persist.requests.
func TestRequestsAreStoredIfTheSettingsSaySo(t *testing.T) {
	t.Parallel()
	for name, stored := range map[string]bool{"stored": true, "shown only": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &spec.T{T: t}
			table := branch.NewTable()
			table.Policy = branch.Policy{Requests: stored}
			r := newRig(t, hpd.Config{Registry: wire.NewRegistry(table)})
			p := r.producer("far")
			s := r.session()
			base := "/agents/far/sessions/" + s + "/branches/main"
			watch := r.watch(base+"/events/live", nil)
			r.input("far", s, "main", "hi")
			w := p.work.named("input")
			ask := object{"type": "CLARIFICATION_REQUEST", "requestId": "q", "sourceName": "s", "question": "which?", "runtimeRunId": w["runtimeRunId"]}
			c.Equal(p.do("POST", base+"/requests", ask).status, 202)
			watch.until("CLARIFICATION_REQUEST")
			c.Equal(r.do("POST", base+"/responses", object{"type": "CLARIFICATION_RESPONSE", "requestId": "q", "sourceName": "s", "question": "which?", "answer": "that"}).status, 200)
			watch.until("AGENT_REQUEST_RESOLVED")
			want := []string{}
			if stored {
				want = []string{"AGENT_REQUEST_STARTED", "AGENT_REQUEST_RESOLVED"}
			}
			history := r.history(s, "main")
			c.Equal(types(only(history, "AGENT_REQUEST_STARTED", "AGENT_REQUEST_RESOLVED")), want)
			c.Equal(len(only(history, "CLARIFICATION_REQUEST", "CLARIFICATION_RESPONSE")), 0)
		})
	}
}

// A client-tool request without an id or a tool would stop the stock client's queue
// permanently, so it is refused.
func TestClientToolRequestsAreWhole(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	r := newRig(t, hpd.Config{})
	p := r.producer("far")
	s := r.session()
	base := "/agents/far/sessions/" + s + "/branches/main"
	r.input("far", s, "main", "hi")
	run := p.work.named("input")["runtimeRunId"]
	for _, lacking := range []string{"requestId", "toolName"} {
		ask := object{"type": "CLIENT_TOOL_INVOKE_REQUEST", "requestId": "q", "toolName": "open", "callId": "c", "runtimeRunId": run}
		delete(ask, lacking)
		got := p.do("POST", base+"/requests", ask)
		c.Equal(got.status, 400)
		c.Contains(string(got.raw), lacking)
		ask[lacking] = 7
		c.Equal(p.do("POST", base+"/requests", ask).status, 400)
	}
	c.Equal(len(r.do("GET", base+"/requests", nil).list()), 0)
}
