package agh_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/parley-hub/parley/dialect/agh"
)

// TestWhoMay checks each cell of the table of rights: the responses to an operator,
// a reader, the owning agent, an agent joined to the channel, an agent joined
// elsewhere, and a caller without a key.
func TestWhoMay(t *testing.T) {
	t.Parallel()
	runs(t, "every route", agh.Config{}, func(r *rig) {
		crane := r.join("dock", "crane", "crane.s01")
		tug := r.join("dock", "tug", "tug.s02")
		r.join("dock", "buoy", "buoy.s03")
		r.join("yard", "weaver", "weaver.s04")
		direct := crane.send(200, obj{"surface": "direct", "thread_id": nil, "to": "tug.s02", "work_id": "work_direct"})["message"].(obj)["direct_id"].(string)
		crane.say("do", obj{"to": "tug.s02", "work_id": "work_1", "id": "m-1"})
		tug.say("hello", obj{"id": "m-2"})
		dock, room := "/channels/dock", "/channels/dock/directs/"+direct
		say := obj{"session_id": crane.session, "channel": "dock", "kind": "say", "surface": "thread", "thread_id": "thread_tide", "body": obj{"text": "x"}}
		rows := []struct {
			method, path                                          string
			body                                                  any
			operator, reader, owner, member, elsewhere, anonymous int
		}{
			{"GET", "/agh/openapi.json", nil, 200, 200, 200, 200, 200, 401},
			{"GET", "/agh/network/status", nil, 200, 200, 200, 200, 200, 401},
			{"GET", "/agh/agents/crane/capabilities", nil, 200, 200, 200, 403, 403, 401},
			{"PUT", "/agh/agents/crane/capabilities", obj{"capabilities": []obj{}}, 200, 403, 200, 403, 403, 401},
			{"DELETE", "/agh/agents/crane/capabilities", nil, 204, 403, 204, 403, 403, 401},
			{"GET", "/peers", nil, 200, 200, 200, 200, 200, 401},
			{"GET", "/peers/crane.s01", nil, 200, 200, 200, 200, 404, 401},
			{"GET", "/channels", nil, 200, 200, 200, 200, 200, 401},
			{"POST", "/channels", obj{"channel": "quay", "purpose": "p", "agent_names": []string{"tug"}}, 201, 403, 403, 403, 403, 401},
			{"GET", dock, nil, 200, 200, 200, 200, 403, 401},
			{"DELETE", "/channels/none", nil, 404, 403, 403, 403, 403, 401},
			{"POST", dock + "/peers", obj{"agent": "other"}, 201, 403, 403, 403, 403, 401},
			{"DELETE", dock + "/peers/none", nil, 404, 403, 404, 404, 404, 401},
			{"GET", dock + "/threads", nil, 200, 200, 200, 200, 403, 401},
			{"GET", dock + "/threads/thread_tide", nil, 200, 200, 200, 200, 403, 401},
			{"GET", dock + "/threads/thread_tide/messages", nil, 200, 200, 200, 200, 403, 401},
			{"GET", dock + "/threads/none/messages/live", nil, 404, 404, 404, 404, 403, 401},
			{"GET", dock + "/directs", nil, 200, 403, 200, 200, 403, 401},
			{"POST", dock + "/directs/resolve", obj{"session_id": crane.session, "peer_id": "tug.s02"}, 200, 403, 200, 403, 403, 401},
			{"GET", room, nil, 200, 403, 200, 403, 403, 401},
			{"GET", room + "/messages", nil, 200, 403, 200, 403, 403, 401},
			{"GET", room + "0/messages/live", nil, 404, 403, 404, 404, 403, 401},
			{"GET", "/work/work_1", nil, 200, 200, 200, 200, 403, 401},
			{"GET", "/work/work_direct", nil, 200, 403, 200, 403, 403, 401},
			{"GET", "/trust", nil, 200, 200, 200, 200, 200, 401},
			{"PUT", "/trust", obj{"policy": "off"}, 200, 403, 403, 403, 403, 401},
			{"POST", "/send", say, 200, 403, 200, 403, 403, 401},
			{"GET", "/inbox?session_id=" + crane.session, nil, 200, 403, 200, 403, 403, 401},
			{"POST", "/inbox/m-2/done?session_id=" + crane.session, nil, 204, 403, 404, 403, 403, 401}, // the operator finished it
		}
		told := map[string]bool{}
		for _, row := range rows {
			for _, cell := range []struct {
				as   string
				want int
			}{
				{"nobody", row.anonymous},
				{"agent:weaver", row.elsewhere},
				{"agent:buoy", row.member},
				{"reader", row.reader},
				{"operator", row.operator},
				{"agent:crane", row.owner},
			} {
				w := r.serve(cell.as, row.method, row.path, row.body)
				r.True(w.Code == cell.want, "%s %s as %s: %d %s; want %d", row.method, row.path, cell.as, w.Code, w.Body, cell.want)
			}
			c := contract{rig: r, paths: r.get("/agh/openapi.json")["paths"].(obj)}
			_, op := c.operation(row.method, row.path)
			told[op["operationId"].(string)] = true
		}
		for _, item := range r.get("/agh/openapi.json")["paths"].(obj) {
			for _, op := range item.(obj) {
				r.True(told[op.(obj)["operationId"].(string)], "nobody asked who may %v", op.(obj)["operationId"])
			}
		}
		// What an agent does not see is left out of its lists.
		r.Equal(each(list(r.askAs("agent:weaver", 200, "GET", "/peers", nil), "peers"), "peer_id"), []string{"weaver.s04"})
		r.Equal(each(list(r.askAs("agent:weaver", 200, "GET", "/channels", nil), "channels"), "channel"), []string{"yard"})
		r.Equal(list(r.askAs("agent:buoy", 200, "GET", dock+"/directs", nil), "directs"), []obj{})
		// An agent can only remove its own peer.
		r.askAs("agent:buoy", http.StatusForbidden, "DELETE", dock+"/peers/crane.s01", nil)
		r.askAs("agent:crane", http.StatusNoContent, "DELETE", dock+"/peers/crane.s01", nil)
		r.True(!strings.Contains(r.serve("agent:crane", "GET", dock, nil).Body.String(), "tug.s02"), "who left still sees")
	})
}
