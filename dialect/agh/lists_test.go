package agh_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parley-hub/parley/dialect/agh"
	"github.com/parley-hub/parley/hub"
)

func TestLists(t *testing.T) {
	t.Parallel()
	const messages = "/channels/dock/threads/thread_tide/messages"
	holds(t, "agh-network#130: cursors, limits and filters", agh.Config{}, func(r *rig) {
		crane, tug := r.join("dock", "crane", "crane.s01"), r.join("dock", "tug", "tug.s02")
		for i := range 6 {
			crane.say(fmt.Sprint("text ", i), obj{"id": fmt.Sprint("m-", i)})
			pass(time.Second)
		}
		crane.say("do", obj{"id": "w-1", "to": "tug.s02", "work_id": "work_1"})
		tug.trace(http.StatusOK, "crane.s01", "working", obj{"id": "w-2"})
		tug.trace(http.StatusOK, "crane.s01", "completed", obj{"id": "w-3"})
		ids := func(query string) []string {
			r.Helper()
			return each(list(r.get(messages+query), "messages"), "message_id")
		}
		for query, want := range map[string]string{
			"":                               "m-0 m-1 m-2 m-3 m-4 m-5 w-1 w-2 w-3",
			"?limit=2":                       "m-0 m-1",
			"?after=m-1&limit=2":             "m-2 m-3",
			"?after=crane.s01/m-1&limit=2":   "m-2 m-3",
			"?before=m-4&limit=2":            "m-2 m-3",
			"?before=m-2":                    "m-0 m-1",
			"?after=w-3":                     "",
			"?before=m-0":                    "",
			"?kind=trace":                    "w-2 w-3",
			"?kind=trace&after=w-2":          "w-3",
			"?kind=trace&before=w-3&limit=5": "w-2",
			"?work_id=work_1":                "w-1 w-2 w-3",
			"?work_id=work_1&limit=1":        "w-1",
			"?work_id=work_9":                "",
		} {
			if got := strings.Join(ids(query), " "); got != want {
				r.Errorf("%s: %s; want %s", query, got, want)
			}
		}
		for query, status := range map[string]int{
			"?limit=0": 400, "?limit=-1": 400, "?limit=x": 400, "?before=m-1&after=m-2": 400, "?kind=direct": 400,
			"?after=m-9": 404, "?kind=trace&after=m-1": 404, "?work_id=work_1&before=m-1": 404, "?after=tug.s02/m-1": 404,
		} {
			r.ask(status, "GET", messages+query, nil)
		}
		r.Equal(list(r.get("/channels/dock/threads/thread_none/messages"), "messages"), []obj{})
		r.Equal(list(r.get("/channels/dock/directs/direct_00000000000000000000000000000000/messages"), "messages"), []obj{})
		m := list(r.get(messages+"?limit=1"), "messages")[0]
		r.Equal(m["timestamp"], "2000-01-01T00:00:00Z")
		delete(m, "timestamp")
		r.Equal(m, obj{
			"message_id": "m-0", "key": "crane.s01/m-0", "workspace_id": "ws_harbor", "channel": "dock", "surface": "thread", "thread_id": "thread_tide",
			"kind": "say", "direction": "sent", "peer_from": "crane.s01", "session_id": crane.session, "text": "text 0", "preview_text": "text 0",
			"trust": "unverified", "body": obj{"text": "text 0"},
		})
	})
	holds(t, "agh-network#126: threads by activity, with a title that stays", agh.Config{}, func(r *rig) {
		crane, tug := r.join("dock", "crane", "crane.s01"), r.join("dock", "tug", "tug.s02")
		for i := range 5 {
			crane.say(fmt.Sprint("title ", i), obj{"thread_id": fmt.Sprint("thread_no", i)})
			pass(time.Second)
		}
		tug.say("more", obj{"thread_id": "thread_no1"})
		ids := func(query string) string {
			r.Helper()
			return strings.Join(each(list(r.get("/channels/dock/threads"+query), "threads"), "thread_id"), " ")
		}
		for range 2 {
			r.Equal(ids(""), "thread_no1 thread_no4 thread_no3 thread_no2 thread_no0")
			r.Equal(ids("?limit=2"), "thread_no1 thread_no4")
			r.Equal(ids("?after=thread_no4&limit=2"), "thread_no3 thread_no2")
			r.Equal(ids("?after=thread_no0"), "")
			r.Equal(ids("?before=thread_no2&limit=2"), "thread_no4 thread_no3")
			r.Equal(ids("?before=thread_no4"), "thread_no1")
			r.Equal(ids("?before=thread_no1&limit=2"), "")
			r.ask(http.StatusNotFound, "GET", "/channels/dock/threads?before=thread_none", nil)
			r.ask(http.StatusBadRequest, "GET", "/channels/dock/threads?before=thread_no1&after=thread_no2", nil)
			r.Equal(r.serve("operator", "GET", "/channels/dock/threads?limit=1&count=true", nil).Header().Get(hub.HeaderTotal), "5")
			r.Equal(r.serve("operator", "GET", "/channels/dock/threads?limit=1", nil).Header().Get(hub.HeaderTotal), "")
			r.ask(http.StatusNotFound, "GET", "/channels/dock/threads?after=thread_none", nil)
			r.ask(http.StatusBadRequest, "GET", "/channels/dock/threads?limit=0", nil)
			one := r.get("/channels/dock/threads/thread_no1")["thread"].(obj)
			r.Equal([]any{one["title"], one["last_message_preview"], one["message_count"], one["participant_count"], one["opened_by_peer_id"], one["opened_session_id"]},
				[]any{"title 1", "more", 2.0, 2.0, "crane.s01", crane.session})
			r.ask(http.StatusNotFound, "GET", "/channels/dock/threads/thread_none", nil)
			r.restart()
		}
		long := strings.Repeat("é", 4000)
		crane.say(long, obj{"thread_id": "thread_long"})
		one := r.get("/channels/dock/threads/thread_long")["thread"].(obj)
		r.True(one["title"] == long && one["last_message_preview"] == long, "a long title is cut")
	})
	holds(t, "agh-network#133: only what is said to all is counted as public", agh.Config{}, func(r *rig) {
		crane, tug := r.join("dock", "crane", "crane.s01"), r.join("dock", "tug", "tug.s02")
		r.get("/channels/dock") // counted before and after
		crane.say("public", nil)
		pass(time.Second)
		crane.say("directed", obj{"to": "tug.s02"})
		crane.say("private", obj{"surface": "direct", "thread_id": nil, "to": "tug.s02"})
		tug.say("second", obj{"thread_id": "thread_other"})
		for range 2 {
			d := r.get("/channels/dock")["channel"].(obj)
			r.Equal([]any{d["message_count"], d["historical_participant_count"], d["last_message_preview"], d["kind_counts"]},
				[]any{2.0, 2.0, "second", []any{obj{"kind": "say", "count": 2.0}}})
			r.restart()
		}
	})
	runs(t, "work", agh.Config{}, func(r *rig) {
		crane, tug := r.join("dock", "crane", "crane.s01"), r.join("dock", "tug", "tug.s02")
		crane.say("do", obj{"surface": "direct", "thread_id": nil, "to": "tug.s02", "work_id": "work_1"})
		pass(time.Second)
		tug.trace(http.StatusOK, "crane.s01", "completed", obj{"surface": "direct", "thread_id": nil})
		w := r.get("/work/work_1")["work"].(obj)
		r.Equal(w, obj{
			"work_id": "work_1", "workspace_id": "ws_harbor", "channel": "dock", "surface": "direct", "direct_id": "direct_84746c510d5845aa9078a8ca2f0f04a2",
			"opened_by_peer_id": "crane.s01", "opened_session_id": crane.session, "target_peer_id": "tug.s02", "state": "completed",
			"opened_at": "2000-01-01T00:00:00Z", "last_activity_at": "2000-01-01T00:00:01Z", "terminal_at": "2000-01-01T00:00:01Z",
		})
		r.ask(http.StatusNotFound, "GET", "/work/work_2", nil)
		r.askAs("reader", http.StatusForbidden, "GET", "/work/work_1", nil)
		r.askAs("agent:tug", http.StatusOK, "GET", "/work/work_1", nil)
	})
}
