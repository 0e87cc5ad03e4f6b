package agh_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-hub/parley/dialect/agh"
)

func TestSend(t *testing.T) {
	t.Parallel()
	holds(t, "agh-network#54: a broadcast reaches every hosted peer but its sender", agh.Config{}, func(r *rig) {
		crane, tug, buoy := r.join("dock", "crane", "crane.s01"), r.join("dock", "tug", "tug.s02"), r.join("dock", "buoy", "buoy.s03")
		yard := r.join("yard", "tug", "tug.s04")
		id := crane.say("Berth 4 is free.", nil)
		r.Equal([][]string{crane.inbox(), tug.inbox(), buoy.inbox(), yard.inbox()}, [][]string{{}, {id}, {id}, {}})
		m := tug.waiting()[0]
		r.Equal([]any{m["protocol"], m["from"], m["channel"], m["workspace_id"], m["to"]}, []any{"agh-network/v0", "crane.s01", "dock", "ws_harbor", nil})
		_, has := m["proof"]
		r.False(has, "a null proof is shown")
	})
	holds(t, "agh-network#55: a directed say reaches only its addressee", agh.Config{}, func(r *rig) {
		crane, tug, buoy := r.join("dock", "crane", "crane.s01"), r.join("dock", "tug", "tug.s02"), r.join("dock", "buoy", "buoy.s03")
		id := crane.say("You.", obj{"to": "tug.s02"})
		r.Equal([][]string{crane.inbox(), tug.inbox(), buoy.inbox()}, [][]string{{}, {id}, {}})
		r.Equal(each(list(r.get("/channels/dock/threads/thread_tide/messages"), "messages"), "message_id"), []string{id}) // it is still public
	})
	holds(t, "agh-network#60: workspaces share nothing", agh.Config{}, func(r *rig) {
		crane := r.join("dock", "crane", "crane.s01")
		other := "/agh/workspaces/ws_other/network"
		a := r.ask(http.StatusCreated, "POST", other+"/channels/dock/peers", obj{"agent": "crane", "peer_id": "crane.s01"})
		id := crane.say("here", obj{"id": "m-1", "to": nil})
		r.Equal(list(r.get(other+"/channels/dock/threads"), "threads"), []obj{})
		body := obj{"session_id": a["session_id"], "channel": "dock", "surface": "thread", "thread_id": "thread_tide", "id": "m-1", "body": obj{"text": "there"}}
		r.ask(http.StatusOK, "POST", other+"/send", body)
		r.Equal(id, "m-1")
		r.Equal(list(r.get("/channels/dock/threads"), "threads")[0]["title"], "here")
		r.Equal(list(r.get(other+"/channels/dock/threads"), "threads")[0]["title"], "there")
		r.join("dock", "tug", "tug.s02")
		r.ask(http.StatusCreated, "POST", other+"/channels/dock/peers", obj{"agent": "tug", "peer_id": "tug.s02"})
		crane.say("work", obj{"to": "tug.s02", "work_id": "work_1"})
		crane.receipt(http.StatusOK, "tug.s02", obj{"for_id": "m-1", "status": "canceled"}, nil)
		r.ask(http.StatusNotFound, "GET", other+"/work/work_1", nil)
		body["id"], body["to"], body["work_id"] = "m-2", "tug.s02", "work_1"
		r.ask(http.StatusOK, "POST", other+"/send", body)
		r.Equal(r.get(other + "/work/work_1")["work"].(obj)["state"], "submitted")
	})
	holds(t, "agh-network#60 seed-001#109: channels of a workspace share no threads", agh.Config{}, func(r *rig) {
		dock, yard := r.join("dock", "crane", "crane.s01"), r.join("yard", "crane", "crane.s01")
		dock.say("here", nil)
		yard.say("there", nil)
		for channel, title := range map[string]string{"dock": "here", "yard": "there"} {
			thread := r.get("/channels/" + channel + "/threads/thread_tide")["thread"].(obj)
			r.Equal([]any{thread["channel"], thread["title"], thread["message_count"]}, []any{channel, title, 1.0})
		}
	})
	holds(t, "agh-network#61: the room's id is the pair's, whatever is given", agh.Config{}, func(r *rig) {
		crane, tug := r.join("dock", "crane", "crane.s01"), r.join("dock", "tug", "tug.s02")
		given := "direct_" + strings.Repeat("0", 32)
		result := crane.send(http.StatusOK, obj{"surface": "direct", "thread_id": nil, "direct_id": given, "to": "tug.s02"})["message"].(obj)
		r.Equal(result["direct_id"], given)
		r.Equal(tug.waiting()[0]["direct_id"], "direct_84746c510d5845aa9078a8ca2f0f04a2")
		r.Equal(each(list(r.get("/channels/dock/directs"), "directs"), "direct_id"), []string{"direct_84746c510d5845aa9078a8ca2f0f04a2"})
	})
	runs(t, "the room's id may be left out, because `to` says which it is; a malformed one is refused", agh.Config{}, func(r *rig) {
		const pair = "direct_84746c510d5845aa9078a8ca2f0f04a2"
		crane, tug := r.join("dock", "crane", "crane.s01"), r.join("dock", "tug", "tug.s02")
		for _, bad := range []string{"direct_", pair + "0", "direct_" + strings.ToUpper(pair[len("direct_"):]), "room_1"} {
			crane.send(http.StatusBadRequest, obj{"surface": "direct", "thread_id": nil, "direct_id": bad, "to": "tug.s02"})
		}
		crane.send(http.StatusBadRequest, obj{"surface": "direct", "thread_id": nil, "direct_id": pair}) // without `to`
		r.Equal(list(r.get("/channels/dock/directs"), "directs"), []obj{})
		result := crane.send(http.StatusOK, obj{"surface": "direct", "thread_id": nil, "to": "tug.s02"})["message"].(obj)
		r.Equal(result["direct_id"], pair)
		r.Equal(tug.waiting()[0]["direct_id"], pair)
	})
	holds(t, "agh-network#62: a send from an unknown session, another channel or another workspace is refused", agh.Config{}, func(r *rig) {
		crane, _ := r.join("dock", "crane", "crane.s01"), r.join("yard", "tug", "tug.s02")
		crane.send(http.StatusNotFound, obj{"session_id": "sess-0000000000000000"})
		crane.send(http.StatusNotFound, obj{"channel": "yard"})
		r.ask(http.StatusCreated, "POST", "/agh/workspaces/ws_other/network/channels/dock/peers", obj{"agent": "x"})
		body := obj{"session_id": crane.session, "channel": "dock", "surface": "thread", "thread_id": "thread_tide", "body": obj{"text": "x"}}
		r.ask(http.StatusNotFound, "POST", "/agh/workspaces/ws_other/network/send", body)
		body["workspace_id"] = "ws_other"
		r.ask(http.StatusBadRequest, "POST", "/send", body)
		r.Equal(list(r.get("/channels/dock/threads"), "threads"), []obj{})
	})
	holds(t, "agh-network#63: without presence a target is not found", agh.Config{}, func(r *rig) {
		crane, _ := r.join("dock", "crane", "crane.s01"), r.join("yard", "tug", "tug.s02")
		for _, to := range []string{"tug.s02", "nobody.s09"} {
			a := crane.send(http.StatusNotFound, obj{"to": to})
			r.Contains(a["error"].(string), "target not found")
		}
		r.Equal(list(r.get("/channels/dock/threads"), "threads"), []obj{})
	})
	holds(t, "agh-network#64 agh-network#50: no room with oneself", agh.Config{}, func(r *rig) {
		crane := r.join("dock", "crane", "crane.s01")
		crane.send(http.StatusBadRequest, obj{"surface": "direct", "thread_id": nil, "to": "crane.s01"})
		crane.send(http.StatusBadRequest, obj{"to": "crane.s01"})
		r.Equal(list(r.get("/channels/dock/directs"), "directs"), []obj{})
	})
	holds(t, "agh-network#9 agh-network#36: what cannot be sent is refused and changes nothing", agh.Config{}, func(r *rig) {
		crane, tug := r.join("dock", "crane", "crane.s01"), r.join("dock", "tug", "tug.s02")
		for name, members := range map[string]obj{
			"greet": {"kind": "greet"}, "direct is no kind": {"kind": "direct"}, "unknown kind": {"kind": "recipe"},
			"legacy": {"interaction_id": nil, "kind": "say", "x": 1}, "no surface": {"surface": nil}, "no thread": {"thread_id": nil},
			"both ids": {"direct_id": "direct_" + strings.Repeat("0", 32)}, "no text": {"body": obj{"text": " "}}, "no body": {"body": nil},
			"direct without to": {"surface": "direct", "thread_id": nil}, "work without to": {"work_id": "work_1"},
			"bad work": {"work_id": "job_1", "to": "tug.s02"}, "bad thread": {"thread_id": "Tide"}, "from": {"from": "tug.s02"}, "ts": {"ts": 1}, "proof": {"proof": obj{}},
			"capability without work": {"kind": "capability", "body": obj{"capability": obj{}}}, "undirected trace": {"kind": "trace", "work_id": "work_1", "body": obj{"state": "working"}}, "trace without work": {"kind": "trace", "body": obj{"state": "working"}},
			"secret": {"body": obj{"text": "password: hunter2"}}, "claim": {"ext": obj{"claim_token": "agh_claim_abc"}}, "expired": {"expires_at": 1},
			"large":  {"body": obj{"text": strings.Repeat("x", 1<<20)}},
			"digest": {"kind": "capability", "work_id": "work_1", "to": "tug.s02", "body": obj{"capability": obj{"id": "a", "summary": "b", "outcome": "c", "digest": "sha256:" + strings.Repeat("0", 64)}}},
		} {
			a := crane.send(http.StatusBadRequest, members)
			r.True(a["error"] != "", "%s has no reason", name)
			r.False(strings.Contains(fmt.Sprint(a), "hunter2") || strings.Contains(fmt.Sprint(a), "agh_claim_abc"), "a secret is repeated: %v", a)
		}
		r.ask(http.StatusBadRequest, "POST", "/send", `{"session_id":"x","interaction_id":null}`)
		r.ask(http.StatusBadRequest, "POST", "/send", `{`)
		r.Equal(list(r.get("/channels/dock/threads"), "threads"), []obj{})
		r.Equal(tug.inbox(), []string{})
	})
	holds(t, "agh-network#129: a stored id is success, whatever thread, content or sender", agh.Config{}, func(r *rig) {
		crane, tug := r.join("dock", "crane", "crane.s01"), r.join("dock", "tug", "tug.s02")
		crane.say("first", obj{"id": "m-1"})
		crane.say("first", obj{"id": "m-1"})
		crane.say("other", obj{"id": "m-1", "thread_id": "thread_other"})
		tug.say("other", obj{"id": "m-1"})
		r.restart()
		crane.say("again", obj{"id": "m-1"})
		r.Equal(tug.inbox(), []string{"m-1"})
		r.Equal(crane.inbox(), []string{})
		threads := list(r.get("/channels/dock/threads"), "threads")
		r.Equal([]any{len(threads), threads[0]["message_count"]}, []any{1, 1.0})
	})
	runs(t, "a request that is repeated after its end has its answer, whatever became of target and work", agh.Config{}, func(r *rig) {
		crane, tug := r.join("dock", "crane", "crane.s01"), r.join("dock", "tug", "tug.s02")
		request := obj{"id": "m-1", "to": "tug.s02", "work_id": "work_1", "expires_at": time.Now().Unix() + 5}
		first := crane.send(http.StatusOK, request)
		tug.trace(http.StatusOK, "crane.s01", "completed", nil)
		r.ask(http.StatusNoContent, "DELETE", "/channels/dock/peers/tug.s02", nil)
		pass(time.Hour)
		r.Equal(crane.send(http.StatusOK, request), first)
		request["id"] = "m-2"
		crane.send(http.StatusBadRequest, request)
		for _, id := range []string{strings.Repeat("x", 100_000), "\x00", "a/b", " m-1", "m-1 "} {
			crane.send(http.StatusBadRequest, obj{"id": id, "expires_at": 1})
		}
	})
	runs(t, "a member that is given is not blank", agh.Config{}, func(r *rig) {
		crane, tug := r.join("dock", "crane", "crane.s01"), r.join("dock", "tug", "tug.s02")
		for _, member := range []string{"kind", "surface", "thread_id", "direct_id", "to", "work_id", "reply_to", "trace_id", "causation_id", "id", "workspace_id", "channel", "session_id"} {
			for _, blank := range []string{"", " ", "\t"} {
				a := crane.send(http.StatusBadRequest, obj{member: blank})
				if blank == "" {
					r.Contains(a["error"].(string), "`"+member+"`")
				}
			}
		}
		r.Equal(len(list(r.get("/channels/dock/threads"), "threads")), 0)
		r.Equal(tug.inbox(), []string{})
	})
	holds(t, "agh-network#87 agh-network#128: lifecycle errors refuse a send and leave nothing", agh.Config{}, func(r *rig) {
		crane, tug, buoy := r.join("dock", "crane", "crane.s01"), r.join("dock", "tug", "tug.s02"), r.join("dock", "buoy", "buoy.s03")
		tug.trace(http.StatusConflict, "crane.s01", "working", nil) // unknown
		crane.say("do", obj{"to": "tug.s02", "work_id": "work_1"})
		r.Equal(r.work("work_1"), "submitted")
		buoy.trace(http.StatusConflict, "crane.s01", "working", nil)                                            // wrong actor
		crane.send(http.StatusConflict, obj{"to": "buoy.s03", "work_id": "work_1"})                             // wrong addressee
		crane.send(http.StatusConflict, obj{"to": "tug.s02", "work_id": "work_1", "thread_id": "thread_other"}) // mismatch
		a := tug.trace(http.StatusConflict, "crane.s01", "working", obj{"thread_id": "thread_other"})           // mismatch too
		r.Equal(a["diagnostic"].(obj)["reason"], "work_container_mismatch")
		tug.trace(http.StatusConflict, "crane.s01", "submitted", nil)
		tug.trace(http.StatusOK, "crane.s01", "completed", nil)
		a = crane.send(http.StatusConflict, obj{"to": "tug.s02", "work_id": "work_1"})
		r.Equal(a["diagnostic"].(obj)["reason"], "work_closed")
		tug.trace(http.StatusConflict, "crane.s01", "failed", nil)
		crane.receipt(http.StatusConflict, "tug.s02", obj{"for_id": "x", "status": "canceled"}, nil)
		r.Equal(r.work("work_1"), "completed")
		threads := list(r.get("/channels/dock/threads"), "threads")
		r.Equal([]any{len(threads), threads[0]["message_count"], threads[0]["open_work_count"]}, []any{1, 2.0, 0.0})
		r.Equal([]int{len(crane.inbox()), len(tug.inbox()), len(buoy.inbox())}, []int{1, 1, 0})
		r.restart()
		r.Equal(r.work("work_1"), "completed")
	})
	holds(t, "agh-network#57 agh-network#58: a direct room is for its two peers", agh.Config{}, func(r *rig) {
		crane, tug, buoy := r.join("dock", "crane", "crane.s01"), r.join("dock", "tug", "tug.s02"), r.join("dock", "buoy", "buoy.s03")
		id := crane.say("psst", obj{"surface": "direct", "thread_id": nil, "to": "tug.s02"})
		r.Equal([][]string{crane.inbox(), tug.inbox(), buoy.inbox()}, [][]string{{}, {id}, {}})
		room := "/channels/dock/directs/direct_84746c510d5845aa9078a8ca2f0f04a2"
		for as, status := range map[string]int{"agent:buoy": http.StatusForbidden, "reader": http.StatusForbidden, "agent:tug": http.StatusOK, "operator": http.StatusOK} {
			r.askAs(as, status, "GET", room, nil)
			r.askAs(as, status, "GET", room+"/messages", nil)
		}
		r.Equal(len(list(r.askAs("agent:buoy", http.StatusOK, "GET", "/channels/dock/directs", nil), "directs")), 0)
		r.Equal(len(list(r.askAs("agent:tug", http.StatusOK, "GET", "/channels/dock/directs", nil), "directs")), 1)
	})
	holds(t, "agh-network#127: concurrent resolves of one pair return one room", agh.Config{}, func(r *rig) {
		crane, tug := r.join("dock", "crane", "crane.s01"), r.join("dock", "tug", "tug.s02")
		var wg sync.WaitGroup
		rooms := make([]obj, 8)
		for i := range rooms {
			wg.Go(func() {
				from, to := crane, tug
				if i%2 == 1 {
					from, to = tug, crane
				}
				rooms[i] = r.ask(http.StatusOK, "POST", "/channels/dock/directs/resolve", obj{"session_id": from.session, "peer_id": to.peer})["direct"].(obj)
			})
		}
		wg.Wait()
		for _, room := range rooms {
			r.Equal(room, rooms[0])
		}
		first := rooms[0]
		r.Equal([]any{first["message_count"], first["peer_a"], first["peer_b"], first["opened_at"]}, []any{0.0, "crane.s01", "tug.s02", first["last_activity_at"]})
		pass(time.Minute)
		r.Equal(r.ask(http.StatusOK, "POST", "/channels/dock/directs/resolve", obj{"session_id": crane.session, "peer_id": "tug.s02"})["direct"], any(first))
		crane.say("now", obj{"surface": "direct", "thread_id": nil, "to": "tug.s02"})
		after := list(r.get("/channels/dock/directs"), "directs")
		r.Equal(len(after), 1)
		r.True(after[0]["last_activity_at"] != first["last_activity_at"] && after[0]["message_count"] == 1.0, "%v", after)
		r.ask(http.StatusNotFound, "POST", "/channels/dock/directs/resolve", obj{"session_id": crane.session, "peer_id": "nobody.s9"})
		r.ask(http.StatusBadRequest, "POST", "/channels/dock/directs/resolve", obj{"session_id": crane.session, "peer_id": "crane.s01"})
	})
	runs(t, "a question who is there is answered by the hosted peers", agh.Config{}, func(r *rig) {
		crane, tug, buoy := r.join("dock", "crane", "crane.s01"), r.join("dock", "tug", "tug.s02"), r.join("dock", "buoy", "buoy.s03")
		ask := func(members obj) []string {
			r.Helper()
			all := obj{"kind": "whois", "surface": nil, "thread_id": nil, "body": obj{"type": "request"}}
			for k, v := range members {
				all[k] = v
			}
			id := crane.send(http.StatusOK, all)["message"].(obj)["id"].(string)
			from := []string{}
			for _, m := range crane.waiting() {
				r.Equal([]any{m["reply_to"], m["to"]}, []any{id, "crane.s01"})
				from = append(from, m["from"].(string))
				crane.done(m["id"].(string))
			}
			return from
		}
		r.Equal(len(ask(nil)), 2)
		r.Equal(ask(obj{"body": obj{"type": "request", "query": "tug"}}), []string{"tug.s02"})
		r.Equal(ask(obj{"body": obj{"type": "request", "query": "nobody"}}), []string{})
		r.Equal(ask(obj{"body": obj{"type": "request", "query": "nobody"}, "to": "buoy.s03"}), []string{"buoy.s03"})
		r.Equal(tug.inbox(), []string{})
		r.Equal(buoy.inbox(), []string{})
	})
}
