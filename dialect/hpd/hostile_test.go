package hpd_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-hub/parley/dialect/hpd"
)

// Each refusal has the exact status and code, says what was wrong, and changes
// nothing.
func TestBadInput(t *testing.T) {
	t.Parallel()
	r := newRig(t, hpd.Config{Producers: map[string]hpd.Producer{"echo": hpd.Echo{}}, Limits: hpd.Limits{Event: 4 << 10}})
	far := r.producer("far")
	s := r.session()
	other := r.session()
	r.input("far", s, "main", "go")
	w := far.work.named("input")
	run := w["runtimeRunId"].(string)
	a, b := "/agents/far/sessions/"+s+"/branches/main", "/sessions/"+s+"/branches/main"
	before, unrelated, sessions := len(r.history(s, "main")), len(r.history(other, "main")), len(r.do("GET", "/sessions", nil).list())

	huge := strings.Repeat("x", 8<<10)
	deep := strings.Repeat("[", 1_500) + strings.Repeat("]", 1_500)
	events := a + "/events?runtimeRunId=" + run
	many := "[" + strings.Repeat(`{"type":"TEXT_DELTA","messageId":"m","text":"x"},`, 512) + `{"type":"TEXT_DELTA","messageId":"m","text":"x"}]`
	for _, tt := range []struct {
		method, path, body string
		status             int
		code, says         string
	}{
		// Texts that are not envelopes.
		{"POST", a + "/inputs", `{`, 400, "InputError", "not valid"},
		{"POST", a + "/inputs", `[]`, 400, "InputError", ""},
		{"POST", a + "/inputs", `"x"`, 400, "InputError", ""},
		{"POST", a + "/inputs", `{}`, 400, "InputError", ""},
		{"POST", a + "/inputs", `{"type":null,"text":"x"}`, 400, "InputError", ""},
		{"POST", a + "/inputs", `{"type":"NOVEL"}`, 400, "InputError", "NOVEL"},
		{"POST", a + "/inputs", `{"text":"  "}`, 400, "InputError", ""},
		{"POST", a + "/inputs", `{"type":"USER_MESSAGES_INPUT","messages":[]}`, 400, "InputError", ""},
		{"POST", a + "/inputs", `{"type":"PERMISSION_RESPONSE","permissionId":"p","approved":true}`, 400, "InputError", ""},
		{"POST", a + "/inputs", "{\"text\":\"\xff\"}", 400, "InputError", ""},
		{"POST", a + "/inputs", `{"text":"a","text":"b"}`, 400, "InputError", ""},
		{"POST", a + "/inputs", deep, 400, "InputError", ""},
		{"POST", a + "/responses", ``, 400, "BidirectionalResponse", "A response event envelope is required."},
		{"POST", a + "/responses", `{"type":"USER_TEXT_INPUT","text":"x"}`, 400, "BidirectionalResponse", ""},
		{"POST", a + "/interrupt", `{"type":"USER_TEXT_INPUT","text":"x"}`, 400, "InterruptError", ""},
		// Events that a producer may not publish: nothing of the list is accepted.
		{"POST", events, `[{"type":"TEXT_DELTA","messageId":"m","text":"x"},{"type":"BRANCH_CREATED"}]`, 400, "PublishError", "event 1"},
		{"POST", events, `[{"type":"TEXT_DELTA","messageId":"m","text":"x"},{"type":"TEXT_DELTA","text":5}]`, 400, "PublishError", "event 1"},
		{"POST", events, `[{"type":"TEXT_DELTA","messageId":"m","text":"x"},{"text":"x"}]`, 400, "PublishError", "event 1"},
		{"POST", events, `[]`, 400, "PublishError", "at least one"},
		{"POST", events, many, 413, "PublishError", "512"},
		{"POST", events, `{"type":"CLIENT_TOOL_INVOKE_REQUEST","requestId":"q","toolName":"t"}`, 400, "PublishError", "request"},
		// Another scope, another run.
		{"POST", events, `{"type":"TEXT_DELTA","messageId":"m","text":"x","sessionId":"` + other + `"}`, 400, "PublishError", "scope"},
		{"POST", events, `{"type":"TEXT_DELTA","messageId":"m","text":"x","threadId":"elsewhere"}`, 400, "PublishError", "scope"},
		{"POST", a + "/events?runtimeRunId=none", `{"type":"TEXT_DELTA","messageId":"m","text":"x"}`, 409, "BranchRunNotActive", "none"},
		{"POST", strings.Replace(events, s, other, 1), `{"type":"TEXT_DELTA","messageId":"m","text":"x"}`, 409, "BranchRunNotActive", ""},
		{"POST", strings.Replace(events, "/far/", "/echo/", 1) + "x", `{"type":"TEXT_DELTA","messageId":"m","text":"x"}`, 409, "BranchRunNotActive", ""},
		{"POST", a + "/requests?runtimeRunId=" + run, `{"type":"CLIENT_TOOL_INVOKE_REQUEST","requestId":5,"toolName":"t"}`, 400, "RequestError", ""},
		{"POST", a + "/runs/" + run + "/complete", `{"status":"done"}`, 400, "CompleteError", "completed, failed or cancelled"},
		{"POST", "/agents/echo/sessions/" + other + "/branches/main/inputs", `{"type":"USER_MESSAGES_INPUT","messages":[null]}`, 400, "InputError", "not null"},
		{"POST", "/agents/echo/sessions/" + other + "/branches/main/inputs", `{"type":"USER_MESSAGES_INPUT","messages":[{"contents":[null]}]}`, 400, "InputError", "not null"},
		{"POST", "/agents/x/sessions/" + s + "/branches", `{"branchId":"b","branchId":"c"}`, 400, "CreateBranchError", "duplicate"},
		// Text after the value.
		{"POST", "/sessions", `{} x`, 400, "CreateSessionError", "valid JSON"},
		{"POST", "/sessions", `{"sessionId":"two"}{}`, 400, "CreateSessionError", "valid JSON"},
		{"POST", "/agents/x/sessions/" + s + "/branches", `{"threadId":"b"}]`, 400, "CreateBranchError", "valid JSON"},
		{"PATCH", b, `{"name":"n"},`, 400, "UpdateBranchError", "valid JSON"},
		{"POST", a + "/runs/" + run + "/complete", `{"status":"completed"} 1`, 400, "CompleteError", "valid JSON"},
		{"POST", events, `[{"type":"TEXT_DELTA","messageId":"m","text":"x"}] 5`, 400, "PublishError", "follows the list"},
		{"POST", events, `{"type":"TEXT_DELTA","messageId":"m","text":"x"} 5`, 400, "PublishError", "follows the event"},
		// Too large.
		{"POST", "/agents/echo/sessions/" + other + "/branches/main/inputs", `{"text":"` + huge + `"}`, 413, "InputError", "POST …/content"},
		{"POST", events, `{"type":"TEXT_DELTA","messageId":"m","text":"` + huge + `"}`, 413, "PublishError", "limits.event"},
		{"POST", "/sessions", `{"metadata":{"a":"` + strings.Repeat("x", 20<<10) + `"}}`, 413, "CreateSessionError", "limits.record"},
		{"PATCH", b, `{"description":"` + strings.Repeat("x", 20<<10) + `"}`, 413, "UpdateBranchError", "limits.record"},
		// Paths and ids.
		{"POST", "/sessions", `{"sessionId":"../` + s + `"}`, 400, "CreateSessionError", ""},
		{"POST", "/sessions", `{"sessionId":"a//b"}`, 400, "CreateSessionError", ""},
		{"POST", "/sessions", `{"sessionId":"a b"}`, 400, "CreateSessionError", ""},
		{"POST", "/agents/x/sessions/" + s + "/branches", `{"branchId":"x/events/live"}`, 400, "CreateBranchError", ""},
		{"POST", a + "/fork", `{"fromMessageId":"m","newBranchId":"."}`, 400, "ForkBranchError", ""},
		{"GET", "/sessions/" + other + "%2F..%2F" + s + "/branches/main", ``, 404, "GetBranchError", ""},
		{"GET", "/sessions/" + other + "/branches/..%2F..%2F" + s + "%2Fbranches%2Fmain", ``, 404, "GetBranchError", ""},
		{"GET", "/sessions/%00/branches/main", ``, 404, "GetBranchError", ""},
		{"GET", b + "/events?after=yesterday", ``, 400, "GetEventsError", "position"},
		{"GET", b + "/events?limit=-1", ``, 400, "GetEventsError", "limit"},
		{"GET", a + "/events/live?after=1.2.x", ``, 400, "GetEventsError", "position"},
		{"DELETE", "/sessions/" + s + "/branches/main", ``, 400, "ProtectedBranch", ""},
		{"PUT", b, `{}`, 405, "InvalidRequest", "GET, PATCH, DELETE"},
	} {
		got := r.do(tt.method, tt.path, tt.body)
		name := fmt.Sprintf("%s %.120s %.60s", tt.method, tt.path, tt.body)
		if got.status != tt.status {
			t.Errorf("%s: %d, not %d: %.300s", name, got.status, tt.status, got.raw)
			continue
		}
		problem := got.object()
		if got.header.Get("Content-Type") != "application/problem+json" || problem["status"] != float64(tt.status) || problem["title"] == "" {
			t.Errorf("%s: is no problem: %s", name, got.raw)
		}
		if got.code() != tt.code || !strings.Contains(string(got.raw), tt.says) {
			t.Errorf("%s: %.300s; want %s and %q", name, got.raw, tt.code, tt.says)
		}
		if len(got.raw) > 2_000 {
			t.Errorf("%s: the answer has %d bytes of what was sent", name, len(got.raw))
		}
	}
	if n := len(r.history(s, "main")); n != before {
		t.Errorf("%d events were stored", n-before)
	}
	if n := len(r.history(other, "main")); n != unrelated {
		t.Errorf("%d events were stored in the other session", n-unrelated)
	}
	if n := len(r.do("GET", "/sessions", nil).list()); n != sessions {
		t.Errorf("%d sessions were made", n-sessions)
	}
	if n := len(r.do("GET", "/sessions/"+s+"/branches", nil).list()); n != 1 {
		t.Errorf("%d branches", n)
	}
	if a := r.do("GET", a+"/runs/active", nil).object(); a["runtimeRunId"] != run {
		t.Errorf("the run is not active any more: %v", a)
	}
	far.complete(w, object{"status": "completed"})
}

// FuzzServer sends any body to any route that accepts one: no response is a server
// error, each refusal is a problem, and a refusal of an input or of a producer's
// events stores nothing.
func FuzzServer(f *testing.F) {
	r := newRig(f, hpd.Config{Producers: map[string]hpd.Producer{"echo": hpd.Echo{}}})
	far := r.producer("far")
	s := r.session()
	r.input("far", s, "main", "go")
	run := far.work.named("input")["runtimeRunId"].(string)
	a := "/agents/far/sessions/" + s + "/branches/main"
	routes := []string{
		a + "/inputs", a + "/responses", a + "/events?runtimeRunId=" + run, a + "/requests?runtimeRunId=" + run,
		a + "/fork", "/sessions/search", "/agents/x/sessions/" + s + "/branches", a + "/runs/" + run + "/complete?",
	}
	for i, body := range []string{
		`{"text":"hi","runConfig":{}}`, `{"type":"PERMISSION_RESPONSE","permissionId":"p","choice":1}`, `[{"type":"TEXT_DELTA","text":"a","messageId":"m"}]`,
		`{"type":"CLARIFICATION_REQUEST","requestId":"q","sourceName":"s","question":"?","timeoutSeconds":1}`, `{"fromMessageId":"m","newBranchId":"x"}`,
		`{"metadata":{"a":5},"limit":1}`, `{"branchId":"b/c","tags":["x"],"metadata":{"k":null}}`, `{"status":"x"}`,
	} {
		f.Add(byte(i), []byte(body))
	}
	f.Fuzz(func(t *testing.T, route byte, body []byte) {
		r := *r
		r.t = t
		path := routes[int(route)%len(routes)]
		before := len(r.history(s, "main"))
		got := r.do("POST", path, string(body))
		switch {
		case got.status == http.StatusInternalServerError:
			t.Fatalf("%s %q: %s", path, body, got.raw)
		case got.status < http.StatusBadRequest:
			return
		}
		if got.code() == "" || got.header.Get("Content-Type") != "application/problem+json" {
			t.Fatalf("%s %q: %d is no problem: %s", path, body, got.status, got.raw)
		}
		if after := len(r.history(s, "main")); after != before {
			t.Fatalf("%s %q: refused with %d, and %d events stored", path, body, got.status, after-before)
		}
	})
}
