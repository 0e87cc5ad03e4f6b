package hpd_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/hpd"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/view/branch"
)

func TestInputFamily(t *testing.T) {
	t.Parallel()
	echo := hpd.Config{Producers: map[string]hpd.Producer{"echo": hpd.Echo{}}}
	main := func(s string) string { return "/agents/echo/sessions/" + s + "/branches/main" }
	spec.Check(t, "seed-003#13: an invalid envelope on an input route is 400 and stores nothing", func(t *spec.T) {
		r := newRig(t, echo)
		s := r.session()
		before := len(r.history(s, "main"))
		for _, route := range []string{"/inputs", "/interrupt", "/responses", "/stream", "/events/stream"} {
			for _, body := range []string{"{", "[]", `"x"`, `{"type":null}`, `{"type":7}`, `{"type":"NO_SUCH"}`, `{"type":"TEXT_DELTA","messageId":"m","text":"x"}`} {
				got := r.do("POST", main(s)+route, body)
				t.Equal(got.status, 400)
				t.Equal(got.header.Get("Content-Type"), wire.ProblemType)
			}
		}
		t.Equal(len(r.history(s, "main")), before)
	})
	spec.Check(t, "seed-003#14: an invalid frame closes the socket with 1007", func(t *spec.T) {
		r := newRig(t, echo)
		s := r.session()
		for _, frame := range []string{"{", "[]", `{"type":null}`, `{"type":"NO_SUCH"}`} {
			k := r.socket(t, main(s)+"/ws")
			k.send(frame)
			code, _ := k.closed()
			t.Equal(code, 1007)
		}
	})
	spec.Check(t, "seed-003#46 seed-003#49: messages start a run; they are in the history, the input is not", func(t *spec.T) {
		r := newRig(t, echo)
		s := r.session()
		w := r.watch(main(s)+"/events/live", nil)
		t.Equal(r.do("POST", main(s)+"/inputs", object{"type": "USER_MESSAGES_INPUT", "messages": []object{{"messageId": "u1", "text": "one"}, {"messageId": "u2", "role": "system", "text": "two"}}}).status, 202)
		w.until("BRANCH_RUN_COMPLETED")
		history := r.history(s, "main")
		var ids []any
		for _, e := range only(history, "MESSAGE_STARTED") {
			ids = append(ids, e["messageId"])
		}
		t.Equal(ids, []any{"u1", "u2"})
		t.False(strings.Contains(strings.Join(types(history), " "), "_INPUT"), "%v", types(history))
	})
	spec.Check(t, "seed-003#47 hpd-events#20: an interruption ends the active run, once", func(t *spec.T) {
		g := newGate()
		r := newRig(t, hpd.Config{Producers: map[string]hpd.Producer{"echo": g}})
		s := r.session()
		r.input("echo", s, "main", "x")
		<-g.started
		w := r.watch(main(s)+"/events/live", nil)
		for range 2 {
			a := r.do("POST", main(s)+"/interrupt", object{"type": "INTERRUPTION_REQUEST", "reason": "enough", "source": 0})
			t.True(a.status == 202 || a.code() == "BranchRunNotActive", "%d %s", a.status, a.raw)
		}
		seen := w.until("BRANCH_RUN_COMPLETED")
		t.Equal(seen[len(seen)-1]["cancelled"], any(true))
		history := types(r.history(s, "main"))
		t.Equal(strings.Count(strings.Join(history, " "), "BRANCH_RUN_COMPLETED"), 1)
		t.False(slices.Contains(history, "INTERRUPTION_REQUEST"), "%v", history)
	})
	spec.Check(t, "seed-003#54: a failed turn is reported live, and in the history by conversion only", func(t *spec.T) {
		d := newDoing(t)
		w := d.watch("/agents/p/sessions/"+d.session+"/branches/main/events/live", nil)
		d.steps.next = func(ctx context.Context, run *hpd.Run) error {
			err := run.Publish(ctx, wire.MessageTurnError{Message: "a middleware's"})
			return errors.Join(err, &hpd.RunError{Type: "Model", Message: "model gone"})
		}
		d.input("p", d.session, "main", "x")
		live := only(w.until("BRANCH_RUN_COMPLETED"), "MESSAGE_TURN_ERROR")
		t.Equal([]any{live[0]["message"], live[1]["errorType"]}, []any{"a middleware's", "Model"})
		kept := only(d.history(d.session, "main"), "MESSAGE_TURN_ERROR")
		t.Equal(len(kept), 1)
		t.Equal(kept[0]["eventId"], live[1]["eventId"])
	})
	spec.Check(t, "seed-003#127: an operation that a lock refuses does not change what is shown of the run", func(t *spec.T) {
		g := newGate()
		r := newRig(t, hpd.Config{Producers: map[string]hpd.Producer{"echo": g}})
		s := r.session()
		r.do("POST", "/agents/x/sessions/"+s+"/branches", object{"branchId": "b"})
		base := "/agents/echo/sessions/" + s + "/branches/b"
		w := r.watch(base+"/events/live", nil)
		r.input("echo", s, "b", "x")
		<-g.started
		before := r.do("GET", base+"/runs/active", nil)
		refused := r.do("DELETE", "/sessions/"+s+"/branches/b", nil)
		t.Equal(refused.status, 409)
		t.Equal(refused.code(), "DeleteBranchError") // not a code for runs
		t.Equal(string(r.do("GET", base+"/runs/active", nil).raw), string(before.raw))
		close(g.open)
		var transcript branch.Transcript
		for _, e := range w.until("BRANCH_RUN_COMPLETED") {
			if e["type"] == "BRANCH_RUN_COMPLETED" {
				t.Equal(any(transcript.Run), e["runtimeRunId"]) // busy until the run's own end
			}
			data, err := json.Marshal(e)
			t.NoError(err)
			transcript.Apply(branch.Event{Type: e["type"].(string), Data: data})
		}
		t.Equal(transcript.Run, "")
	})
	spec.Check(t, "seed-003#131: a child's text, tools and permissions are on the parent's live stream", func(t *spec.T) {
		d := newDoing(t)
		d.do("POST", "/agents/x/sessions/"+d.session+"/branches", object{"branchId": "subagent/scout", "metadata": object{"kind": "subagent", "parentSessionId": d.session, "parentBranchId": "main"}})
		w := d.watch("/agents/p/sessions/"+d.session+"/branches/main/events/live", nil)
		d.steps.next = func(ctx context.Context, run *hpd.Run) error {
			err := run.Publish(ctx, wire.TextMessageStart{MessageID: "m", Role: "assistant"}, wire.TextDelta{MessageID: "m", Text: "from the child"}, wire.ToolCallStart{CallID: "c", Name: "f", MessageID: "m"})
			_, _, asked := run.Permit(ctx, wire.PermissionRequest{PermissionID: "q", FunctionName: "f", CallID: "c"}, 0)
			return errors.Join(err, asked)
		}
		d.input("p", d.session, "subagent/scout", "x")
		seen := w.until("PERMISSION_REQUEST")
		for _, name := range []string{"TEXT_DELTA", "TOOL_CALL_START", "PERMISSION_REQUEST"} {
			t.Equal(only(seen, name)[0]["branchId"], any("subagent/scout"))
		}
		t.Equal(d.do("POST", "/agents/p/sessions/"+d.session+"/branches/subagent/scout/responses", object{"type": "PERMISSION_RESPONSE", "permissionId": "q", "sourceName": "s", "approved": true}).status, 200)
		w.until("BRANCH_RUN_COMPLETED")
		t.Equal(len(only(d.history(d.session, "main"), "TEXT_DELTA")), 0) // stored on the child's branch only
	})
}
