package hpd_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/hpd"
	"github.com/parley-hub/parley/dialect/hpd/wire"
)

// The oldest clients start a run and read its stream in one call.
func TestStreamOfOneRun(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	r := newRig(t, hpd.Config{Producers: map[string]hpd.Producer{"echo": hpd.Echo{}}})
	s := r.session()
	for _, surface := range []string{"branches", "threads"} {
		at := "/agents/echo/sessions/" + s + "/" + surface + "/main"
		for path, body := range map[string]string{
			"/stream":        `{"text":"some words","runConfig":{}}`,
			"/events/stream": `{"type":"USER_MESSAGES_INPUT","messages":[{"text":"some words"}]}`,
		} {
			res, err := http.Post(r.http.URL+"/hpd"+at+path, "application/json", strings.NewReader(body))
			c.NoError(err)
			c.Equal(res.StatusCode, 200)
			c.Equal(res.Header.Get("Content-Type"), "text/event-stream")
			data, err := io.ReadAll(res.Body) // it ends by itself, without an error
			c.NoError(err)
			c.NoError(res.Body.Close())
			text := string(data)
			started, ended := strings.Index(text, "_RUN_STARTED"), strings.Index(text, "_RUN_COMPLETED")
			c.True(0 < started && started < ended && !strings.Contains(text[ended:], "\nid: "), "from the run's start to its end:\n%s", text)
			c.Equal(strings.Count(text, `"TEXT_DELTA"`), 2)
			c.Equal(strings.Contains(text, "THREAD_RUN"), surface == "threads")
		}
		for path, body := range map[string]string{"/stream": `{"text":" "}`, "/events/stream": `{"type":"TEXT_DELTA","messageId":"m","text":"x"}`} {
			got := r.do("POST", at+path, body)
			c.Equal(got.status, 400)
			c.Equal(got.header.Get("Content-Type"), wire.ProblemType)
		}
	}
	c.Equal(r.do("POST", "/agents/echo/sessions/nope/branches/main/stream", `{"text":"x"}`).status, 404)
	g := newGate()
	busy := newRig(t, hpd.Config{Producers: map[string]hpd.Producer{"g": g}})
	s = busy.session()
	busy.input("g", s, "main", "x")
	<-g.started
	c.Equal(busy.do("POST", "/agents/g/sessions/"+s+"/branches/main/stream", `{"text":"x"}`).code(), "BranchRunActive")
}

// Each kind of answer had a route of its own.
func TestRespondRoutes(t *testing.T) {
	t.Parallel()
	for path, row := range map[string]struct {
		question wire.Payload
		body     object // with an id in it
	}{
		"permissions":    {wire.PermissionRequest{PermissionID: "q", SourceName: "s", FunctionName: "f", CallID: "c"}, object{"permissionId": "q", "sourceName": "s", "approved": true}},
		"continuation":   {wire.ContinuationRequest{ContinuationID: "q", SourceName: "s", CurrentIteration: 20, MaxIterations: 20}, object{"continuationId": "q", "sourceName": "s", "approved": true}},
		"clarifications": {wire.ClarificationRequest{RequestID: "q", SourceName: "s", Question: "?"}, object{"requestId": "q", "sourceName": "s", "question": "?", "answer": "yes"}},
		"client-tools":   {wire.ClientToolInvokeRequest{RequestID: "q", ToolName: "t", CallID: "c"}, object{"requestId": "q", "content": []object{}, "success": true}},
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			c := &spec.T{T: t}
			a := newAsker(c, 0, func(*hpd.Run) wire.Payload { return row.question })
			q, _ := wire.RequestOf(&wire.Event{Payload: row.question})
			a.w.until(q.Type)
			at := "/agents/p/sessions/" + a.session + "/branches/main/"
			for _, other := range []string{"permissions", "continuation", "clarifications", "client-tools"} {
				if other != path {
					got := a.do("POST", at+other+"/respond", object{"type": q.Expects, "permissionId": "q", "continuationId": "q", "requestId": "q", "sourceName": "s", "approved": true, "answer": "a", "question": "?", "content": []object{}})
					c.Equal(got.status, 400)
					c.Equal(got.code(), "BidirectionalResponse")
				}
			}
			c.Equal(a.do("POST", at+path+"/respond", nil).status, 400)
			got := a.do("POST", at+path+"/respond", row.body)
			c.Equal(got.object(), object{"status": "accepted", "requestId": "q", "accepted": true})
			c.Equal((<-a.answers).EventType(), q.Expects)
			c.Equal(a.do("POST", at+path+"/respond", row.body).code(), "AlreadyResolved")
		})
	}
}

// The responses of a server without evaluations, and the routes that it does not
// have.
func TestNoSuchRoute(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	r := newRig(t, hpd.Config{})
	for _, path := range []string{"/evals/scores", "/evals/trend/x", "/evals/branch-comparison", "/nothing", "/sessions/", "/agents/a/sessions", "/agents/a/sessions/s", "/agents/a/b"} {
		for _, method := range []string{"GET", "POST"} {
			got := r.do(method, path, nil)
			c.Equal(got.status, 404)
			c.Equal(got.header.Get("Content-Type"), wire.ProblemType)
			c.Equal(got.object()["status"], any(404.0))
		}
	}
}
