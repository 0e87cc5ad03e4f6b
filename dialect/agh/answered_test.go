package agh_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/parley-hub/parley/dialect/agh"
)

// The answers that a foreign peer gets for invalid work: §7.6 and B8 of the text.
func TestAnswers(t *testing.T) {
	t.Parallel()
	over(t, "agh-network#90: a wrong protocol, too, is answered, in v0 and on v0's subject", agh.Config{}, func(r *rig, a *air, crane, tug *host, f *far) {
		for i, c := range []struct {
			members        obj
			status, reason any
		}{
			{obj{"protocol": "agh-network/v1"}, "rejected", "malformed"},
			{obj{"protocol": "agh-network/v9"}, "rejected", "malformed"},
			{obj{"ts": 0}, "expired", "expired"},
			{obj{"body": []any{}}, "rejected", "malformed"},
			{obj{"surface": nil}, "rejected", "malformed"},
			{obj{"thread_id": "a/b"}, "rejected", "malformed"},
			{obj{"thread_id": ""}, nil, nil}, // no valid receipt can be formed
			{obj{"interaction_id": "i-1"}, nil, nil},
			{obj{"kind": "direct"}, nil, nil},
			{obj{"ts": "1"}, nil, nil},
			{obj{"unknown": 1}, nil, nil},
			{obj{"work_id": "job_1"}, nil, nil}, // no valid receipt can be formed
		} {
			e := f.envelope(obj{"work_id": fmt.Sprint("work_", i)})
			for name, value := range c.members {
				e[name] = value
			}
			before := len(a.published("receipt"))
			f.on("agh.network.v0.ws_harbor.dock.peer.f517bf6ab72761a29c2494efbfaffc06", must(json.Marshal(e)))
			got := a.published("receipt")[before:]
			if c.status == nil {
				r.Equal(len(got), 0)
				continue
			}
			r.Equal(len(got), 1)
			id := e["id"]
			r.Equal(receiptOf(got[0]), []any{c.status, c.reason, id, id, id, "tug.s02", "far.s9", fmt.Sprint("work_", i)})
			r.Equal([]any{got[0]["protocol"], got[0]["subject"]}, []any{"agh-network/v0", "agh.network.v0.ws_harbor.dock.peer.72e784fe445b5bee27d2c0c7147d9e13"})
		}
		r.Equal(tug.inbox(), []string{})
	})
}

// TestUnreadOverRestarts checks that waiting messages are found again, whatever the
// peer itself has sent to all in the meantime, and in whatever order it finished
// the rest.
func TestUnreadOverRestarts(t *testing.T) {
	t.Parallel()
	runs(t, "own broadcasts do not crowd out what waits", agh.Config{QueueDepth: 5}, func(r *rig) {
		crane, tug := r.join("dock", "crane", "crane.s01"), r.join("dock", "tug", "tug.s02")
		var want []string
		for i := range 4 {
			want = append(want, crane.say(fmt.Sprint("to tug ", i), nil))
		}
		for i := range 7 {
			tug.say(fmt.Sprint("to all ", i), nil)
		}
		want = append(want, crane.say("last", nil))
		r.Equal(tug.inbox(), want)
		r.restart()
		r.Equal(tug.inbox(), want)
		r.ask(http.StatusNoContent, "POST", "/inbox/"+want[2]+"/done?session_id="+tug.session, nil)
		want = append(want[:2:2], want[3:]...)
		r.restart()
		r.Equal(tug.inbox(), want)
	})
}
