package hpd_test

import (
	"strings"
	"testing"
	"time"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/hpd"
	"github.com/parley-hub/parley/hub"
)

// remote is a producer over HTTP.
type remote struct {
	*rig
	agent string
	work  *reader
}

func (r *rig) producer(agent string) *remote {
	r.t.Helper()
	return &remote{r, agent, r.watch("/agents/"+agent+"/work", nil)}
}

func (p *remote) at(w object) string {
	return "/agents/" + p.agent + "/sessions/" + w["sessionId"].(string) + "/branches/" + w["branchId"].(string)
}

func (p *remote) publish(w object, key string, events ...object) answer {
	return p.send("POST", p.at(w)+"/events?runtimeRunId="+w["runtimeRunId"].(string), events, map[string]string{"Idempotency-Key": key})
}

func (p *remote) complete(w, body object) answer {
	return p.do("POST", p.at(w)+"/runs/"+w["runtimeRunId"].(string)+"/complete", body)
}

func delta(text string) object { return object{"type": "TEXT_DELTA", "messageId": "m", "text": text} }

func TestRemoteProducers(t *testing.T) {
	t.Parallel()
	t.Run("input, events, end", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		r := newRig(t, hpd.Config{})
		p := r.producer("far")
		s := r.session()
		watch := r.watch("/agents/far/sessions/"+s+"/branches/main/events/live", nil)
		a := r.do("POST", "/agents/far/sessions/"+s+"/branches/main/inputs", object{"text": "hi", "runConfig": object{"apiKey": "k"}})
		c.Equal(a.status, 202)
		w := p.work.named("input")
		c.Equal(w["runtimeRunId"], a.object()["runtimeRunId"])
		c.Equal(w["resumed"], any(false))
		c.Equal(w["runConfig"], any(object{"apiKey": "k"}))
		c.Equal(w["messages"].([]any)[0].(object)["contents"], any([]any{object{"$type": "text", "text": "hi"}}))
		c.Equal(p.publish(w, "", delta("a"), object{"type": "CARGO_MANIFEST_READY", "tons": 7}, delta("b")).object(), object{"accepted": 3.0})
		for _, bad := range []object{{"type": "BRANCH_RUN_COMPLETED", "runtimeRunId": "x", "agentId": "y"}, {"type": "MESSAGE_STARTED", "messageId": "m", "role": "user"}, {"type": "PERMISSION_REQUEST", "permissionId": "p", "sourceName": "s", "functionName": "f", "callId": "c"}} {
			got := p.publish(w, "", delta("no"), bad)
			c.Equal(got.status, 400)
			c.Contains(string(got.raw), "event 1")
		}
		c.Equal(p.do("POST", p.at(w)+"/events?runtimeRunId=other", delta("x")).status, 409)
		c.Equal(p.do("POST", p.at(w)+"/events", delta("x")).status, 400)
		c.Equal(p.complete(w, object{"status": "completed"}).status, 200)
		c.Equal(p.complete(w, object{"status": "completed"}).status, 200)
		c.Equal(p.complete(w, object{"status": "cancelled"}).status, 409)
		c.Equal(p.publish(w, "", delta("late")).status, 409)
		seen := watch.until("BRANCH_RUN_COMPLETED")
		c.Equal(types(seen), []string{"BRANCH_RUN_STARTED", "MESSAGE_TURN_STARTED", "TEXT_DELTA", "CARGO_MANIFEST_READY", "TEXT_DELTA", "MESSAGE_TURN_FINISHED", "BRANCH_RUN_COMPLETED"})
		c.Equal(seen[3]["tons"], any(7.0))
		c.False(strings.Contains(string(r.do("GET", "/sessions/"+s+"/branches/main/events", nil).raw), "apiKey"), "no secret is stored")
	})
	t.Run("a repeated call writes once", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		r := newRig(t, hpd.Config{})
		p := r.producer("far")
		s := r.session()
		watch := r.watch("/agents/far/sessions/"+s+"/branches/main/events/live", nil)
		r.input("far", s, "main", "hi")
		w := p.work.named("input")
		for range 3 {
			c.Equal(p.publish(w, "k-1", delta("a"), object{"type": "AGENT_TURN_STARTED", "iteration": 1}, delta("b")).status, 202)
		}
		c.Equal(p.publish(w, "k-2", delta("c")).status, 202)
		p.complete(w, object{"status": "failed", "error": object{"code": "Bad", "message": "luck"}})
		seen := watch.until("BRANCH_RUN_COMPLETED")
		c.Equal(len(only(seen, "TEXT_DELTA")), 3)
		c.Equal(len(only(seen, "AGENT_TURN_STARTED")), 1)
		c.Equal(seen[len(seen)-1]["errorType"], any("Bad"))
		c.Equal(len(only(r.history(s, "main"), "TEXT_DELTA")), 4) // with the user's
	})
	t.Run("questions and interruptions", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		r := newRig(t, hpd.Config{})
		p := r.producer("far")
		s := r.session()
		watch := r.watch("/agents/far/sessions/"+s+"/branches/main/events/live", nil)
		r.input("far", s, "main", "hi")
		w := p.work.named("input")
		ask := object{"type": "CLARIFICATION_REQUEST", "requestId": "q", "sourceName": "s", "question": "which?", "timeoutSeconds": 60, "runtimeRunId": w["runtimeRunId"]}
		c.Equal(p.do("POST", p.at(w)+"/requests", ask).object(), object{"requestId": "q"})
		c.Equal(p.do("POST", p.at(w)+"/requests", ask).status, 409)
		watch.until("CLARIFICATION_REQUEST")
		c.Equal(r.do("POST", p.at(w)+"/responses", object{"type": "CLARIFICATION_RESPONSE", "requestId": "q", "sourceName": "s", "question": "which?", "answer": "that"}).status, 200)
		got := p.work.named("response")
		c.Equal(got["answer"], any("that"))
		c.Equal(got["runtimeRunId"], w["runtimeRunId"])
		c.Equal(r.do("POST", p.at(w)+"/interrupt", object{"reason": "enough"}).status, 202)
		c.Equal(p.work.named("interrupt"), object{"runtimeRunId": w["runtimeRunId"], "reason": "enough"})
		for range 2 {
			c.Equal(p.complete(w, object{"status": "completed"}).object(), object{"status": "cancelled"})
		}
		c.Equal(p.complete(w, object{"status": "failed"}).status, 409)
		seen := watch.until("BRANCH_RUN_COMPLETED")
		c.Equal(seen[len(seen)-1]["cancelled"], any(true))
		r.crash() // the next hub answers both as this one did
		p = r.producer("far")
		c.Equal(p.complete(w, object{"status": "completed"}).object(), object{"status": "cancelled"})
		c.Equal(p.complete(w, object{"status": "failed"}).status, 409)
	})
	spec.Check(t, "hpd-events#39 hpd-events#101: an interruption that was taken cancels the run, also if its producer goes away", func(t *spec.T) {
		r := newRig(t, hpd.Config{ProducerGrace: time.Millisecond, InterruptGrace: time.Hour})
		p := r.producer("far")
		s := r.session()
		watch := r.watch("/agents/far/sessions/"+s+"/branches/main/events/live", nil)
		r.input("far", s, "main", "hi")
		w := p.work.named("input")
		t.Equal(r.do("POST", p.at(w)+"/interrupt", nil).status, 202)
		p.work.close()
		seen := watch.until("BRANCH_RUN_COMPLETED")
		t.Equal(seen[len(seen)-1]["cancelled"], any(true))
		t.Equal(seen[len(seen)-1]["errorType"], nil)
		t.Equal(types(seen)[len(seen)-2:], []string{"INTERRUPTION_HANDLED", "BRANCH_RUN_COMPLETED"})
		t.Equal(len(only(r.history(s, "main"), "MESSAGE_TURN_ERROR")), 0)
	})
	spec.Check(t, "hpd-events#60: a deleted session cancels the run of a producer elsewhere", func(t *spec.T) {
		r := newRig(t, hpd.Config{})
		p := r.producer("far")
		s := r.session()
		r.input("far", s, "main", "hi")
		w := p.work.named("input")
		t.Equal(r.do("DELETE", "/sessions/"+s, nil).status, 204)
		t.Equal(p.work.named("interrupt")["runtimeRunId"], w["runtimeRunId"])
		t.Equal(p.publish(w, "", delta("late")).status, 404)
	})
	t.Run("a producer that comes back gets its run again, also from the next hub", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		r := newRig(t, hpd.Config{})
		p := r.producer("far")
		s := r.session()
		r.input("far", s, "main", "hi there")
		w := p.work.named("input")
		p.publish(w, "", delta("a"))
		p.do("POST", p.at(w)+"/requests?runtimeRunId="+w["runtimeRunId"].(string), object{"type": "CLARIFICATION_REQUEST", "requestId": "q", "sourceName": "s", "question": "which?"})
		p.work.close()
		p = r.producer("far")
		again := p.work.named("input")
		c.Equal(again["runtimeRunId"], w["runtimeRunId"])
		c.Equal(again["resumed"], any(true))
		r.crash()
		c.Equal(r.do("GET", p.at(w)+"/runs/active", nil).object()["runtimeRunId"], w["runtimeRunId"])
		c.Equal(r.do("POST", p.at(w)+"/responses", object{"type": "CLARIFICATION_RESPONSE", "requestId": "q", "sourceName": "s", "question": "which?", "answer": "that"}).status, 200)
		p = r.producer("far")
		again = p.work.named("input")
		c.Equal(again["messages"].([]any)[0].(object)["contents"], any([]any{object{"$type": "text", "text": "hi there"}}))
		c.Equal(p.work.named("response")["answer"], any("that"))
		c.Equal(p.publish(again, "", delta("b")).status, 202)
		c.Equal(p.complete(again, object{"status": "completed"}).status, 200)
		c.Equal(len(only(r.history(s, "main"), "BRANCH_RUN_COMPLETED")), 1)
	})
	t.Run("a large answer that was taken is handed over by the next hub, and goes with the run", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		r := newRig(t, hpd.Config{})
		p := r.producer("far")
		s := r.session()
		r.input("far", s, "main", "hi")
		w := p.work.named("input")
		ask := "/requests?runtimeRunId=" + w["runtimeRunId"].(string)
		c.Equal(p.do("POST", p.at(w)+ask, object{"type": "CLIENT_TOOL_INVOKE_REQUEST", "requestId": "t", "toolName": "read", "callId": "c"}).status, 202)
		c.Equal(p.do("POST", p.at(w)+ask, object{"type": "CLARIFICATION_REQUEST", "requestId": "q", "sourceName": "s", "question": "which?"}).status, 202)
		p.work.close()
		large := strings.Repeat("x", 100<<10)
		content := []any{object{"type": "text", "text": large}}
		c.Equal(r.do("POST", p.at(w)+"/responses", object{"type": "CLIENT_TOOL_INVOKE_RESPONSE", "requestId": "t", "content": content, "augmentation": object{"hideTools": []any{"q"}}}).status, 200)
		c.Equal(r.do("POST", p.at(w)+"/responses", object{"type": "CLARIFICATION_RESPONSE", "requestId": "q", "sourceName": "s", "question": "which?", "answer": large}).status, 200)
		contents := func() int {
			home, err := r.hub.FindHome(t.Context(), "hpd", s)
			c.NoError(err)
			list, _, err := r.hub.Contents(t.Context(), home.ID, hub.ContentPage{Limit: 10})
			c.NoError(err)
			return len(list)
		}
		for range 2 {
			r.crash()
			p = r.producer("far")
			w = p.work.named("input")
			got := p.work.named("response")
			c.Equal(got["content"], any(content))
			c.Equal(got["augmentation"], any(object{"hideTools": []any{"q"}}))
			c.Equal(p.work.named("response")["answer"], any(large))
			c.Equal(contents(), 2)
			c.Equal(r.do("GET", p.at(w)[len("/agents/far"):]+"/content", nil).list(), []object{})
		}
		c.Equal(p.complete(w, object{"status": "completed"}).status, 200)
		c.Equal(contents(), 0)
	})
	t.Run("one that stays away loses its run", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		r := newRig(t, hpd.Config{ProducerGrace: time.Millisecond})
		p := r.producer("far")
		s := r.session()
		watch := r.watch("/agents/far/sessions/"+s+"/branches/main/events/live", nil)
		r.input("far", s, "main", "hi")
		p.work.named("input")
		p.work.close()
		seen := watch.until("BRANCH_RUN_COMPLETED")
		c.Equal(seen[len(seen)-1]["errorType"], any("RuntimeLost"))
		c.Equal(r.input("far", s, "main", "hi").status, 500)
	})
	t.Run("who asks only for the headers takes no work", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		r := newRig(t, hpd.Config{})
		c.Equal(r.do("HEAD", "/agents/far/work", nil).status, 200)
		c.Equal(r.input("far", r.session(), "main", "hi").status, 404) // the name is not registered
	})
	t.Run("several connections share the work", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		r := newRig(t, hpd.Config{})
		a, b := r.producer("far"), r.producer("far")
		for range 2 {
			r.input("far", r.session(), "main", "hi")
		}
		c.True(a.work.named("input")["runtimeRunId"] != b.work.named("input")["runtimeRunId"], "each has one")
	})
}
