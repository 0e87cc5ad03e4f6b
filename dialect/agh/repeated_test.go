package agh_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-hub/parley/dialect/agh"
)

// A message that is not stored is not acted on twice either, and a sender that
// causes answers pays for them.
func TestRepeated(t *testing.T) {
	t.Parallel()
	discovery := func(members obj) obj {
		all := obj{"kind": "whois", "surface": nil, "thread_id": nil, "body": obj{"type": "request"}}
		for k, v := range members {
			all[k] = v
		}
		return all
	}
	card := obj{"peer_id": "far.s9", "profiles_supported": []string{}, "capabilities": []string{}, "artifacts_supported": []string{}, "trust_modes_supported": []string{}}
	over(t, "agh-network#65: a repeated question is not answered again", agh.Config{}, func(r *rig, a *air, crane, tug *host, f *far) {
		for _, to := range []any{nil, "tug.s02"} {
			id := f.send(discovery(obj{"to": to}))
			before := len(a.published("whois"))
			r.True(before > 0, "nobody answers")
			f.send(discovery(obj{"to": to, "id": id}))
			r.Equal(len(a.published("whois")), before)
			other := &far{r, a, "far.s8"}
			other.send(discovery(obj{"to": to, "id": id})) // an id is unique for each sender
			r.True(len(a.published("whois")) > before, "the same id of another peer is not answered")
		}
		r.Equal(strings.Count(strings.Join(r.audited("rejected"), "\n"), `"reason":"duplicate"`), 2)
	})
	over(t, "agh-network#65: a repeated answer is delivered once", agh.Config{}, func(r *rig, a *air, crane, tug *host, f *far) {
		members := discovery(obj{"id": "w-1", "reply_to": "q", "body": obj{"type": "response", "peer_card": card}})
		f.send(members)
		f.send(members)
		r.Equal(tug.inbox(), []string{"w-1"})
	})
	over(t, "agh-network#65: a repeated greeting keeps nobody present", agh.Config{}, func(r *rig, a *air, crane, tug *host, f *far) {
		members := discovery(obj{"kind": "greet", "to": nil, "id": "g-1", "body": obj{"peer_card": card}})
		remotes := func() any { return r.get("/channels/dock")["channel"].(obj)["remote_peer_count"] }
		f.send(members)
		r.Equal(remotes(), any(1.0))
		pass(50 * time.Second)
		f.send(members)
		pass(10 * time.Second)
		r.Equal(remotes(), nil)
		crane.send(http.StatusNotFound, obj{"to": "far.s9"})
		members["id"] = "g-2"
		f.send(members)
		r.Equal(remotes(), any(1.0))
	})
	over(t, "agh-network#69: what was rejected is not remembered, of the discovery neither", agh.Config{}, func(r *rig, a *air, crane, tug *host, f *far) {
		f.send(discovery(obj{"to": nil, "id": "w-1", "ts": time.Now().Unix() - 400}))
		f.send(discovery(obj{"to": nil, "id": "w-1", "body": obj{"type": "odd"}}))
		r.Equal(len(a.published("whois")), 0)
		f.send(discovery(obj{"to": nil, "id": "w-1"}))
		r.Equal(len(a.published("whois")), 2)
	})
	over(t, "agh-network#66: each copy is answered while its sender's budget lasts, and answers count", agh.Config{Limits: agh.Limits{SenderRate: 20}}, func(r *rig, a *air, crane, tug *host, f *far) {
		id := f.send(obj{"work_id": "work_1"})
		for range 30 {
			f.send(obj{"work_id": "work_1", "id": id})
		}
		r.Equal(len(a.published("receipt")), 9) // of twenty: the message, nine copies and their answers, and one copy without
		pass(time.Second)
		f.send(obj{"work_id": "work_1", "id": id})
		r.Equal(len(a.published("receipt")), 10)
		r.Equal(tug.inbox(), []string{id})
	})
	over(t, "agh-network#57: what is wrong in a room of others is not answered", agh.Config{}, func(r *rig, a *air, crane, tug *host, f *far) {
		other := "direct_" + strings.Repeat("0", 32)
		f.send(obj{"surface": "direct", "thread_id": nil, "direct_id": other, "work_id": "work_1", "ts": 5})
		f.send(obj{"surface": "direct", "thread_id": nil, "direct_id": other, "work_id": "work_1", "body": obj{}})
		r.Equal(len(a.published("receipt")), 0)
	})
	over(t, "agh-network#89: in a thread of the sender's own form", agh.Config{}, func(r *rig, a *air, crane, tug *host, f *far) {
		id := f.send(obj{"thread_id": "t1", "work_id": "work_1", "ts": 5})
		f.send(obj{"thread_id": "t1", "work_id": "work_1", "id": id})
		f.send(obj{"thread_id": "t1", "work_id": "work_1", "id": id})
		synctest.Wait()
		r.Equal(each(a.published("receipt"), "thread_id"), []string{"t1", "t1"})
	})
}

// TestSendNulls checks that a null member counts as absent.
func TestSendNulls(t *testing.T) {
	t.Parallel()
	runs(t, "null is absent, and what must be an object is one", agh.Config{}, func(r *rig) {
		crane, tug := r.join("dock", "crane", "crane.s01"), r.join("dock", "tug", "tug.s02")
		text := func(more string) string {
			return `{"session_id":"` + crane.session + `","channel":"dock","surface":"thread","thread_id":"thread_tide"` + more + `}`
		}
		r.ask(http.StatusOK, "POST", "/send", text(`,"body":{"text":"a"},"id":null,"workspace_id":null,"kind":null,"direct_id":null,"to":null,"work_id":null,`+
			`"reply_to":null,"trace_id":null,"causation_id":null,"expires_at":null,"ext":null`))
		got := tug.waiting()[0]
		_, has := got["ext"]
		r.Equal([]any{got["kind"], has}, []any{"say", false})
		for _, bad := range []string{
			``, `,"body":null`, `,"body":[]`, `,"body":"x"`, `,"body":5`, `,"body":{"text":"a"},"ext":[]`, `,"body":{"text":"a"},"ext":"x"`, `,"body":{"text":"a"},"interaction_id":null`,
		} {
			answer := r.ask(http.StatusBadRequest, "POST", "/send", text(bad))
			r.False(strings.Contains(answer["error"].(string), "jsonbuf"), "%s: %s", bad, answer["error"])
		}
		r.Equal(len(tug.inbox()), 1)
	})
	holds(t, "agh-network#45: a trace's result is sent only as an object", agh.Config{}, func(r *rig) {
		crane, tug := r.join("dock", "crane", "crane.s01"), r.join("dock", "tug", "tug.s02")
		crane.say("do", obj{"to": "tug.s02", "work_id": "work_1"})
		for _, result := range []any{[]int{1}, "x", 5, true} {
			tug.about(http.StatusBadRequest, "trace", "crane.s01", obj{"state": "working", "result": result}, nil)
		}
		r.Equal(r.work("work_1"), "submitted")
		for _, result := range []any{obj{"n": 1}, nil} {
			tug.about(http.StatusOK, "trace", "crane.s01", obj{"state": "working", "result": result}, nil)
		}
		r.Equal(r.work("work_1"), "working")
	})
}
