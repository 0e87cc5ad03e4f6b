package agh_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parley-hub/parley/dialect/agh"
)

func TestChannels(t *testing.T) {
	t.Parallel()
	runs(t, "a workspace begins with its first channel or peer", agh.Config{}, func(r *rig) {
		r.ask(http.StatusNotFound, "GET", "/channels", nil)
		r.ask(http.StatusNotFound, "GET", "/peers", nil)
		crane := r.join("dock", "Crane", "")
		r.True(strings.HasPrefix(crane.peer, "crane.sess-") && len(crane.session) == len("sess-")+16, "%+v", crane)
		r.Equal(each(list(r.get("/channels"), "channels"), "channel"), []string{"dock"})
		r.ask(http.StatusBadRequest, "POST", "/agh/workspaces/a.b/network/channels/dock/peers", obj{"agent": "x"})
		r.ask(http.StatusNotFound, "GET", "/agh/workspaces/a.b/network/channels", nil)
		r.ask(http.StatusBadRequest, "POST", "/channels/Dock/peers", obj{"agent": "x"})
		r.ask(http.StatusBadRequest, "POST", "/channels/dock/peers", obj{"agent": "!!"})
		r.ask(http.StatusBadRequest, "POST", "/channels/dock/peers", obj{"agent": ""})
		r.ask(http.StatusBadRequest, "POST", "/channels/dock/peers", obj{"agent": "x", "peer_id": "Bad"})
		r.ask(http.StatusBadRequest, "POST", "/channels/dock/peers", obj{"agent": "x", "color": 1})
		r.ask(http.StatusConflict, "POST", "/channels/dock/peers", obj{"agent": "x", "peer_id": crane.peer})
	})
	runs(t, "a channel is created with a session for each agent, or not at all", agh.Config{}, func(r *rig) {
		r.join("yard", "crane", "")
		create := func(status int, members obj) obj {
			body := obj{"channel": "dock", "purpose": "Berths", "agent_names": []string{"crane", "tug"}}
			for k, v := range members {
				body[k] = v
			}
			return r.ask(status, "POST", "/channels", body)
		}
		create(http.StatusBadRequest, nil) // tug is not registered
		r.ask(http.StatusNotFound, "GET", "/channels/dock", nil)
		r.join("yard", "tug", "")
		for _, bad := range []obj{{"channel": "Bad"}, {"purpose": " "}, {"agent_names": []string{}}, {"agent_names": []string{"tug", "tug"}}, {"workspace_id": "other"}, {"extra": 1}} {
			create(http.StatusBadRequest, bad)
		}
		d := create(http.StatusCreated, nil)["channel"].(obj)
		r.Equal([]any{d["channel"], d["purpose"], d["created_by"], d["peer_count"], d["session_count"], d["workspace_id"]},
			[]any{"dock", "Berths", "crane", 2.0, 2.0, "ws_harbor"})
		r.Equal(len(list(d, "peers")), 2)
		r.Equal(each(list(d, "sessions"), "agent_name")[0] != "", true)
	})
	runs(t, "a join lasts until it is deleted, over restarts", agh.Config{}, func(r *rig) {
		crane, tug := r.join("dock", "crane", "crane.s01"), r.join("dock", "tug", "tug.s02")
		r.restart()
		peers := list(r.get("/peers?channel=dock"), "peers")
		r.Equal(each(peers, "peer_id"), []string{"crane.s01", "tug.s02"})
		r.Equal(each(peers, "session_id"), []string{crane.session, tug.session})
		r.Equal(each(peers, "presence_state"), []string{"local", "local"})
		r.Equal(peers[0]["display_name"], "crane")
		r.ask(http.StatusNoContent, "DELETE", "/channels/dock/peers/tug.s02", nil)
		r.ask(http.StatusNotFound, "DELETE", "/channels/dock/peers/tug.s02", nil)
		r.ask(http.StatusNotFound, "GET", "/peers/tug.s02", nil)
		r.restart()
		r.Equal(each(list(r.get("/peers"), "peers"), "peer_id"), []string{"crane.s01"})
		p := r.get("/peers/crane.s01")["peer"].(obj)
		r.Equal(p["metrics"], obj{"sent": 0.0, "received": 0.0, "rejected": 0.0, "delivered": 0.0})
		r.Equal(p["workspace_id"], nil)
	})
	runs(t, "who may", agh.Config{}, func(r *rig) {
		crane, _ := r.join("dock", "crane", "crane.s01"), r.join("yard", "tug", "tug.s02")
		r.askAs("nobody", http.StatusUnauthorized, "GET", "/channels", nil)
		r.askAs("reader", http.StatusForbidden, "POST", "/channels/dock/peers", obj{"agent": "x"})
		r.askAs("agent:crane", http.StatusForbidden, "POST", "/channels/yard/peers", obj{"agent": "crane"})
		r.Equal(each(list(r.askAs("agent:crane", http.StatusOK, "GET", "/channels", nil), "channels"), "channel"), []string{"dock"})
		r.Equal(len(list(r.askAs("reader", http.StatusOK, "GET", "/channels", nil), "channels")), 2)
		r.Equal(each(list(r.askAs("agent:crane", http.StatusOK, "GET", "/peers", nil), "peers"), "peer_id"), []string{"crane.s01"})
		for as, declared := range map[string]any{"agent:crane": []any{"dock"}, "reader": []any{"dock", "yard"}, "operator": []any{"dock", "yard"}} {
			status := r.askAs(as, http.StatusOK, "GET", "/agh/network/status", nil)["network"].(obj)
			r.Equal([]any{status["declared_channels"], status["channels"]}, []any{declared, 2.0})
		}
		r.askAs("agent:crane", http.StatusForbidden, "GET", "/channels/yard/threads", nil)
		r.askAs("agent:tug", http.StatusForbidden, "DELETE", "/channels/dock/peers/crane.s01", nil)
		r.askAs("reader", http.StatusForbidden, "DELETE", "/channels/dock/peers/crane.s01", nil)
		r.askAs("reader", http.StatusForbidden, "GET", "/inbox?session_id="+crane.session, nil)
		r.askAs("agent:tug", http.StatusForbidden, "GET", "/inbox?session_id="+crane.session, nil)
		r.askAs("reader", http.StatusForbidden, "GET", "/channels/dock/directs", nil)
		r.askAs("agent:tug", http.StatusForbidden, "POST", "/send", obj{"session_id": crane.session, "channel": "dock", "surface": "thread", "thread_id": "thread_x1y", "body": obj{"text": "x"}})
		r.askAs("agent:crane", http.StatusNoContent, "DELETE", "/channels/dock/peers/crane.s01", nil)
	})
	holds(t, "agh-network#134: a disabled network says so in its status and answers 503 elsewhere", agh.Config{Disabled: true}, func(r *rig) {
		r.Equal(r.get("/agh/network/status"), obj{"network": obj{"enabled": false, "status": "disabled"}})
		for _, path := range []string{"/channels", "/peers", "/inbox?session_id=x", "/work/w"} {
			r.ask(http.StatusServiceUnavailable, "GET", path, nil)
		}
		r.ask(http.StatusServiceUnavailable, "POST", "/send", obj{})
	})
	runs(t, "status", agh.Config{}, func(r *rig) {
		crane, _ := r.join("dock", "crane", "crane.s01"), r.join("dock", "tug", "tug.s02")
		crane.say("x", nil)
		n := r.get("/agh/network/status")["network"].(obj)
		r.Equal([]any{n["enabled"], n["status"], n["local_peers"], n["channels"], n["queued_messages"], n["messages_sent"], n["messages_received"]},
			[]any{true, "running", 2.0, 1.0, 1.0, 1.0, 1.0})
		pass(time.Second)
	})
}
