package agh_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/parley-hub/parley/dialect/agh"
)

func TestDeletedChannels(t *testing.T) {
	t.Parallel()
	runTrust(t, "a deleted room is gone at once, with its peers and subscriptions", func(r *rig, a *air, crane, tug *host, f *far) {
		crane.say("one", nil)
		f.greet(nil)
		id, err := r.hub.Named(context.Background(), mustHome(r), "room", "dock")
		r.NoError(err)
		r.NoError(r.hub.Delete(context.Background(), id, nil))
		synctest.Wait()
		check := func() {
			r.Equal(r.get("/channels")["channels"], any([]any{}))
			r.Equal(r.get("/peers")["peers"], any([]any{}))
			r.ask(http.StatusNotFound, "GET", "/channels/dock", nil)
			r.ask(http.StatusNotFound, "GET", "/inbox?session_id="+tug.session, nil)
			r.Equal(a.subjects(), []string{})
		}
		check()
		r.restart()
		check()
		// The name can be used again.
		again := r.join("dock", "crane", "crane.s01")
		other := r.join("dock", "tug", "tug.s02")
		message := again.say("two", obj{"thread_id": "thread_new"})
		r.Equal(other.inbox(), []string{message})
		r.Equal(len(a.subjects()), 3)
	})
	runs(t, "a deleted channel that is made again has nothing of before", agh.Config{}, func(r *rig) {
		yard := r.join("yard", "crane", "crane.y01")
		kept := yard.say("elsewhere", obj{"thread_id": "thread_tide"})
		for range 2 {
			crane, _ := r.join("dock", "crane", "crane.s01"), r.join("dock", "tug", "tug.s02")
			id := crane.say("one", obj{"to": "tug.s02", "work_id": "work_1", "id": "m-1"})
			r.Equal(id, "m-1")
			crane.say("two", obj{"thread_id": "thread_other"})
			room := crane.send(http.StatusOK, obj{"surface": "direct", "thread_id": nil, "to": "tug.s02", "id": "m-2"})["message"].(obj)["direct_id"].(string)
			r.askAs("agent:crane", http.StatusForbidden, "DELETE", "/channels/dock", nil)
			r.askAs("reader", http.StatusForbidden, "DELETE", "/channels/dock", nil)
			r.ask(http.StatusNoContent, "DELETE", "/channels/dock", nil)
			r.ask(http.StatusNotFound, "DELETE", "/channels/dock", nil)
			r.ask(http.StatusNotFound, "POST", "/send", obj{"session_id": crane.session, "channel": "dock", "surface": "thread", "thread_id": "thread_x1y", "body": obj{"text": "x"}})
			r.ask(http.StatusNotFound, "GET", "/work/work_1", nil)
			r.restart()
			again := r.join("dock", "crane", "crane.s01")
			r.Equal(each(list(r.get("/channels/dock/threads"), "threads"), "thread_id"), []string{})
			r.Equal(each(list(r.get("/channels/dock/directs"), "directs"), "direct_id"), []string{})
			r.Equal(list(r.get("/channels/dock/threads/thread_tide/messages"), "messages"), []obj{})
			r.Equal(list(r.get("/channels/dock/directs/"+room+"/messages"), "messages"), []obj{})
			d := r.get("/channels/dock")["channel"].(obj)
			r.Equal([]any{d["message_count"], d["historical_participant_count"], d["last_message_preview"], d["peer_count"]}, []any{nil, nil, nil, 1.0})
			again.say("three", nil)
			row := r.get("/channels/dock/threads/thread_tide")["thread"].(obj)
			r.Equal([]any{row["title"], row["message_count"], row["open_work_count"]}, []any{"three", 1.0, 0.0})
			r.ask(http.StatusNoContent, "DELETE", "/channels/dock", nil)
		}
		r.Equal(each(list(r.get("/channels/yard/threads/thread_tide/messages"), "messages"), "message_id"), []string{kept})
	})
	runTrust(t, "a deleted conversation is not counted, and waits for nobody", func(r *rig, a *air, crane, tug *host, f *far) {
		gone := crane.say("one", obj{"to": "tug.s02", "work_id": "work_1", "body": obj{"text": fmt.Sprintf("%020000d", 1)}})
		kept := crane.say("two", obj{"thread_id": "thread_kept"})
		status := func() []any {
			s := r.get("/agh/network/status")["network"].(obj)
			return []any{s["open_threads"], s["conversation_messages"], s["open_work_items"]}
		}
		r.Equal(status(), []any{2.0, 2.0, 1.0})
		r.Equal(tug.inbox(), []string{gone, kept})
		id, err := r.hub.Named(context.Background(), mustHome(r), "thread", "dock/thread_tide")
		r.NoError(err)
		r.NoError(r.hub.Delete(context.Background(), id, nil))
		r.Equal(status(), []any{1.0, 1.0, nil})
		r.Equal(tug.inbox(), []string{kept})
		r.ask(http.StatusNotFound, "GET", "/work/work_1", nil)
	})
}

func TestDirectsOfAPeer(t *testing.T) {
	t.Parallel()
	runs(t, "direct rooms are listed by peer, newest first, in pages", agh.Config{}, func(r *rig) {
		crane := r.join("dock", "crane", "crane.s01")
		var ids []string
		for i := range 5 {
			other := r.join("dock", fmt.Sprint("tug", i), fmt.Sprintf("tug.s%d", i))
			pass(1_500_000_000)
			id := crane.send(http.StatusOK, obj{"surface": "direct", "thread_id": nil, "to": other.peer})["message"].(obj)["direct_id"].(string)
			ids = append([]string{id}, ids...)
			if i > 0 {
				other.send(http.StatusOK, obj{"surface": "direct", "thread_id": nil, "to": "tug.s0"})
			}
		}
		at := func(as, query string) []string {
			return each(list(r.askAs(as, http.StatusOK, "GET", "/channels/dock/directs"+query, nil), "directs"), "direct_id")
		}
		r.Equal(at("operator", "?peer_id=crane.s01"), ids)
		r.Equal(at("operator", "?peer_id=crane.s01&limit=2"), ids[:2])
		r.Equal(at("operator", "?peer_id=crane.s01&limit=2&after="+ids[1]), ids[2:4])
		r.Equal(at("agent:crane", ""), ids)
		r.Equal(len(at("operator", "")), 9)
		r.Equal(len(at("agent:tug0", "")), 5)
		r.Equal(at("agent:tug1", "?peer_id=crane.s01"), []string{ids[3]})
		r.Equal(at("operator", "?peer_id=nobody.s1"), []string{})
		r.ask(http.StatusNotFound, "GET", "/channels/dock/directs?peer_id=tug.s1&after="+ids[0], nil) // of another list
		r.ask(http.StatusBadRequest, "GET", "/channels/dock/directs?peer_id=Bad/Peer", nil)
	})
}
