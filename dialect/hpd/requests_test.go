package hpd_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/hpd"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/hub"
)

// asker is a rig with a producer that sends one request and repeats the answer.
type asker struct {
	*rig
	t       *spec.T
	session string
	w       *reader
	answers chan wire.Payload
}

func newAsker(t *spec.T, timeout time.Duration, question func(run *hpd.Run) wire.Payload) *asker {
	a := &asker{t: t, answers: make(chan wire.Payload, 4)}
	a.rig = newRig(t, hpd.Config{Producers: map[string]hpd.Producer{"p": hpd.ProducerFunc(func(ctx context.Context, run *hpd.Run, _ hpd.Work) error {
		answer, err := run.Ask(ctx, question(run), timeout)
		if err != nil {
			return err
		}
		a.answers <- answer
		return nil
	})}})
	a.session = a.rig.session()
	a.w = a.watch("/agents/p/sessions/"+a.session+"/branches/main/events/live", nil)
	t.Equal(a.input("p", a.session, "main", "x").status, 202)
	return a
}

func (a *asker) respond(body object) answer {
	return a.do("POST", "/agents/p/sessions/"+a.session+"/branches/main/responses", body)
}

func permission(*hpd.Run) wire.Payload {
	return wire.PermissionRequest{PermissionID: "p1", SourceName: "S", FunctionName: "wipe", CallID: "c1"}
}

func yes(choice any) object {
	return object{"type": "PERMISSION_RESPONSE", "permissionId": "p1", "sourceName": "S", "approved": true, "choice": choice}
}

func TestRequests(t *testing.T) {
	t.Parallel()
	spec.Check(t, "hpd-events#127: accepted once, then already resolved", func(t *spec.T) {
		a := newAsker(t, 0, permission)
		a.w.until("PERMISSION_REQUEST")
		first := a.respond(yes("allow_always"))
		t.Equal(first.status, 200)
		t.Equal(first.object(), object{"status": "accepted", "requestId": "p1", "accepted": true})
		p := (<-a.answers).(wire.PermissionResponse)
		t.Equal(p.Choice, wire.AllowAlways)
		second := a.respond(yes("ask"))
		t.Equal(second.status, 409)
		t.Equal(second.code(), "AlreadyResolved")
		t.Equal(second.object()["result"].(object)["status"], any("alreadyResolved"))
		types := types(a.w.until("BRANCH_RUN_COMPLETED"))
		t.Contains(strings.Join(types, " "), "AGENT_REQUEST_RESOLVED")
	})
	for name, choice := range map[string]any{"a number": 1, "snake case": "allow_always", "the enum's name": "AlwaysAllow"} {
		spec.Check(t, "hpd-events#13: a choice as "+name, func(t *spec.T) {
			a := newAsker(t, 0, permission)
			a.w.until("PERMISSION_REQUEST")
			t.Equal(a.respond(yes(choice)).status, 200)
			t.Equal((<-a.answers).(wire.PermissionResponse).Choice, wire.AllowAlways)
		})
	}
	spec.Check(t, "hpd-events#128: an unknown id is NotFound", func(t *spec.T) {
		a := newAsker(t, 0, permission)
		a.w.until("PERMISSION_REQUEST")
		body := yes("ask")
		body["permissionId"] = "other"
		got := a.respond(body)
		t.Equal(got.status, 409)
		t.Equal(got.code(), "NotFound")
		t.Contains(string(got.raw), `"errors":{"NotFound"`)
		// In another branch's scope it is unknown too, and stays open here.
		a.do("POST", "/agents/x/sessions/"+a.session+"/branches", object{"branchId": "b"})
		t.Equal(a.do("POST", "/agents/p/sessions/"+a.session+"/branches/b/responses", yes("ask")).status, 409)
		t.Equal(a.respond(yes("ask")).status, 200)
	})
	spec.Check(t, "hpd-events#129: a response of another type is refused, the request stays open", func(t *spec.T) {
		a := newAsker(t, 0, permission)
		a.w.until("PERMISSION_REQUEST")
		got := a.respond(object{"type": "CLARIFICATION_RESPONSE", "requestId": "p1", "sourceName": "S", "question": "q", "answer": "a"})
		t.Equal(got.status, 409)
		t.Equal(got.code(), "ResponseTypeMismatch")
		t.Equal(a.respond(yes("ask")).status, 200)
	})
	spec.Check(t, "hpd-events#130: another responder than the target is refused, the request stays open", func(t *spec.T) {
		desk := "desk"
		a := newAsker(t, 0, func(*hpd.Run) wire.Payload {
			return wire.ClientToolInvokeRequest{
				RequestID: "r1", ToolName: "t", CallID: "c", Arguments: wire.Raw("{}"), ResponsePolicy: wire.TargetedResponder,
				Target: &wire.Target{ResponderID: &desk, RequiredCapabilities: []string{"x"}},
			}
		})
		a.w.until("CLIENT_TOOL_INVOKE_REQUEST")
		reply := object{"type": "CLIENT_TOOL_INVOKE_RESPONSE", "requestId": "r1", "content": []any{}, "responderId": "desk"}
		t.Equal(a.respond(reply).code(), "TargetMismatch")
		reply["capabilities"] = []string{"x", "y"}
		t.Equal(a.respond(reply).status, 200)
		t.True((<-a.answers).(wire.ClientToolInvokeResponse).Success, "success defaults to true")
	})
	spec.Check(t, "hpd-events#131: after its time an answer is too late", func(t *spec.T) {
		a := newAsker(t, time.Millisecond, permission)
		a.w.until("AGENT_REQUEST_EXPIRED")
		got := a.respond(yes("ask"))
		t.Equal(got.status, 409)
		t.Equal(got.code(), "TimedOut")
	})
	spec.Check(t, "hpd-events#132 hpd-events#133: without a run it is BranchRuntimeNotActive; an empty body is 400", func(t *spec.T) {
		r := newRig(t, hpd.Config{})
		s := r.session()
		at := "/agents/p/sessions/" + s + "/branches/main/responses"
		got := r.do("POST", at, yes("ask"))
		t.Equal(got.status, 409)
		t.Equal(got.code(), "BranchRuntimeNotActive")
		t.Contains(string(got.raw), `"result":null`)
		t.Equal(r.do("POST", "/agents/p/sessions/"+s+"/threads/main/responses", yes("ask")).code(), "ThreadRuntimeNotActive")
		empty := r.do("POST", at, nil)
		t.Equal(empty.status, 400)
		t.Contains(string(empty.raw), "A response event envelope is required.")
		t.Equal(r.do("POST", at, object{"type": "USER_TEXT_INPUT", "text": "x"}).code(), "BidirectionalResponse")
		t.Equal(r.do("POST", "/agents/p/sessions/"+s+"/threads/main/responses", "{").code(), "RequestResponse")
		t.Equal(r.do("POST", "/agents/p/sessions/none/branches/main/responses", yes("ask")).status, 404)
	})
	spec.Check(t, "hpd-events#103: an interruption cancels what is asked; a late answer is told so", func(t *spec.T) {
		a := newAsker(t, 0, permission)
		a.w.until("PERMISSION_REQUEST")
		t.Equal(a.do("POST", "/agents/p/sessions/"+a.session+"/branches/main/interrupt", nil).status, 202)
		seen := types(a.w.until("BRANCH_RUN_COMPLETED"))
		t.Equal(seen, []string{"INTERRUPTION_HANDLED", "AGENT_REQUEST_CANCELLED", "BRANCH_RUN_COMPLETED"})
		got := a.respond(yes("ask"))
		t.Equal(got.status, 409)
		t.Equal(got.code(), "Cancelled")
	})
	spec.Check(t, "hpd-events#134: what is seen can be answered at once", func(t *spec.T) {
		a := newAsker(t, 0, permission)
		for f := range a.w.events {
			if f.event["type"] == "PERMISSION_REQUEST" {
				t.Equal(a.respond(yes("ask")).status, 200)
				break
			}
		}
	})
	t.Run("open requests are listed, and answered on another surface", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		a := newAsker(c, 0, permission)
		a.w.until("PERMISSION_REQUEST")
		list := a.do("GET", "/agents/p/sessions/"+a.session+"/branches/main/requests", nil).list()
		c.Equal(len(list), 1)
		c.Equal(list[0]["requestId"], any("p1"))
		c.Equal(list[0]["request"].(object)["functionName"], any("wipe"))
		page, err := a.hub.Requests(t.Context(), hub.RequestQuery{})
		c.NoError(err)
		_, err = a.hub.Answer(t.Context(), page.Requests[0].ID, hub.Answer{Choice: "deny_always"}, nil)
		c.NoError(err)
		got := (<-a.answers).(wire.PermissionResponse)
		c.False(got.Approved, "it was denied")
		c.Equal(got.Choice, wire.DenyAlways)
		// A permanent denial applies to the session and the function.
		a.w.until("BRANCH_RUN_COMPLETED")
		c.Equal(a.input("p", a.session, "main", "again").status, 202)
		c.False((<-a.answers).(wire.PermissionResponse).Approved, "it is denied for good")
		c.Equal(len(only(a.w.until("BRANCH_RUN_COMPLETED"), "PERMISSION_REQUEST")), 0)
	})
}

// The result of a request is available for an hour after its end, and then the
// request is unknown; a restart does not change this.
func TestEndedRequestsAreRemembered(t *testing.T) {
	t.Parallel()
	for status, end := range map[string]func(a *asker){
		"alreadyResolved": func(a *asker) { a.t.Equal(a.respond(yes("ask")).status, 200) },
		"cancelled": func(a *asker) {
			a.t.Equal(a.do("POST", "/agents/p/sessions/"+a.session+"/branches/main/interrupt", nil).status, 202)
		},
		"timedOut": func(*asker) {}, // its time limit is a millisecond
	} {
		t.Run(status, func(outer *testing.T) {
			outer.Parallel()
			t := &spec.T{T: outer}
			timeout := time.Duration(0)
			if status == "timedOut" {
				timeout = time.Millisecond
			}
			a := newAsker(t, timeout, permission)
			a.w.until("PERMISSION_REQUEST")
			end(a)
			a.w.until("BRANCH_RUN_COMPLETED")
			page, err := a.hub.Requests(t.Context(), hub.RequestQuery{})
			t.NoError(err)
			t.Equal(len(page.Requests), 1)
			ended := page.Requests[0].EndedAt
			for _, at := range []time.Time{ended, ended.Add(time.Hour - 1)} {
				a.config.Now = func() time.Time { return at }
				a.restart()
				got := a.respond(yes("ask"))
				t.Equal(got.status, 409)
				result := got.object()["result"].(object)
				t.Equal([]any{result["status"], result["requestId"], result["accepted"]}, []any{status, "p1", false})
				t.Equal(got.code(), strings.ToUpper(status[:1])+status[1:])
			}
			a.config.Now = func() time.Time { return ended.Add(time.Hour) }
			a.restart()
			got := a.respond(yes("ask"))
			t.Equal([]any{got.status, got.code(), got.object()["result"]}, []any{409, "BranchRuntimeNotActive", nil})
		})
	}
}

// A text that was cut within a character is half a surrogate pair in JSON. A client
// whose answer is refused for that receives no more events (§10.6 C8).
func TestCutTexts(t *testing.T) {
	t.Parallel()
	tool := func(*hpd.Run) wire.Payload {
		return wire.ClientToolInvokeRequest{RequestID: "t1", ToolName: "read", CallID: "c1"}
	}
	const answer = `{"type":"CLIENT_TOOL_INVOKE_RESPONSE","requestId":"t1","content":[{"type":"text","text":"cut \ud83d"}],"success":true}`
	taken := func(a *asker) {
		a.w.until("AGENT_REQUEST_RESOLVED")
		text, _ := json.Marshal((<-a.answers).(wire.ClientToolInvokeResponse).Content)
		a.t.Contains(string(text), "cut \ufffd")
		a.w.until("BRANCH_RUN_COMPLETED")
	}
	t.Run("over HTTP", func(outer *testing.T) {
		outer.Parallel()
		t := &spec.T{T: outer}
		a := newAsker(t, 0, tool)
		a.w.until("CLIENT_TOOL_INVOKE_REQUEST")
		t.Equal(a.do("POST", "/agents/p/sessions/"+a.session+"/branches/main/responses", answer).status, 200)
		taken(a)
	})
	t.Run("over a socket", func(outer *testing.T) {
		outer.Parallel()
		t := &spec.T{T: outer}
		a := newAsker(t, 0, tool)
		a.w.until("CLIENT_TOOL_INVOKE_REQUEST")
		a.socket(t, "/agents/p/sessions/"+a.session+"/branches/main/ws").send(answer)
		taken(a)
	})
}

// A refusal other than 409 would stop the stock client (§10.6 C8).
func TestAnswersThatAreTooLarge(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	a := newAsker(c, 0, func(*hpd.Run) wire.Payload {
		return wire.ClientToolInvokeRequest{RequestID: "t1", ToolName: "read", CallID: "c1"}
	})
	a.w.until("CLIENT_TOOL_INVOKE_REQUEST")
	with := func(content string) string {
		return `{"type":"CLIENT_TOOL_INVOKE_RESPONSE","requestId":"t1","content":[` + content + `]}`
	}
	at := "/agents/p/sessions/" + a.session
	for _, content := range []string{
		`{"type":"text","text":"` + strings.Repeat("x", 1<<20) + `"}`,
		`{"type":"json","value":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`,
	} {
		got := a.do("POST", at+"/branches/main/responses", with(content))
		c.Equal([]any{got.status, got.code()}, []any{409, "ResponseTooLarge"})
		c.Equal(a.do("POST", at+"/branches/none/responses", with(content)).status, 404)
	}
	c.Equal(a.do("POST", at+"/branches/main/responses", with(`{"type":"text","text":"short"}`)).status, 200)
	a.w.until("BRANCH_RUN_COMPLETED")
}
