package hpd_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/hpd"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/fault"
)

// Ids with slashes are found raw and encoded, by every kind of route.
func TestIDsWithSlashes(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	r := newRig(t, hpd.Config{Producers: map[string]hpd.Producer{"echo": hpd.Echo{}}})
	c.Equal(r.do("POST", "/sessions", object{"sessionId": "team/a"}).header.Get("Location"), "/hpd/sessions/team/a")
	made := r.do("POST", "/agents/echo/sessions/team/a/branches", object{"branchId": "subagent/scout/run-2"})
	c.Equal(made.header.Get("Location"), "/hpd/sessions/team/a/branches/subagent/scout/run-2")
	for _, session := range []string{"team/a", "team%2Fa"} {
		for _, id := range []string{"subagent/scout/run-2", "subagent%2Fscout%2Frun-2", "subagent%2Fscout/run-2"} {
			for _, segment := range []string{"branches", "threads"} {
				of := "/sessions/" + session + "/" + segment + "/" + id
				at := "/agents/echo" + of
				for _, path := range []string{of, of + "/events", of + "/siblings", of + "/content", at + "/runs", at + "/runs/active", at + "/requests"} {
					if got := r.do("GET", path, nil); got.status != 200 {
						t.Errorf("%s: %d %s", path, got.status, got.raw)
					}
				}
				ended := "BRANCH_RUN_COMPLETED"
				if segment == "threads" {
					ended = "THREAD_RUN_COMPLETED"
				}
				k := r.socket(c, at+"/ws")
				k.send(object{"type": "USER_TEXT_INPUT", "text": "hi"})
				k.until(ended)
				c.Equal(r.do("PATCH", of, object{"name": "n"}).status, 200)
			}
		}
	}
	for _, path := range []string{"", "/branches", "/threads", "/content", "/thread-graph"} {
		c.Equal(r.do("GET", "/sessions/team/a"+path, nil).status, 200)
	}
	c.Equal(r.do("DELETE", "/sessions/team%2Fa/branches/subagent%2Fscout%2Frun-2", nil).status, 204)
	c.Equal(r.do("DELETE", "/sessions/team/a", nil).status, 204)
}

// An id that no path could name is refused, and nothing is created.
func TestIDsOfRoutes(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	r := newRig(t, hpd.Config{Producers: map[string]hpd.Producer{"echo": hpd.Echo{}}})
	for _, id := range []string{"search", "a/branches", "a/branches/b", "a/threads/b", "a/content", "a/thread-graph", "a//b", "../a", "a/.", "a b", "é", "%41"} {
		got := r.do("POST", "/sessions", object{"sessionId": id})
		c.Equal(got.status, 400)
		c.Equal(got.code(), "CreateSessionError")
	}
	c.Equal(len(r.do("GET", "/sessions", nil).list()), 0)
	s := r.session()
	r.run("echo", s, "main", "hi")
	first := only(r.history(s, "main"), "MESSAGE_STARTED")[0]["messageId"]
	for _, id := range []string{
		"events", "a/events", "a/events/live", "a/stream", "inputs", "a/interrupt", "responses", "a/requests", "ws", "fork", "a/siblings",
		"runs", "a/runs/active", "a/runs/b", "a/runs/b/complete", "content", "a/content/b", "a/permissions/respond", "respond", "a//b", "..", "a/../b",
	} {
		for segment, word := range map[string]string{"branches": "Branch", "threads": "Thread"} {
			at := "/agents/echo/sessions/" + s + "/" + segment
			got := r.do("POST", at, object{"branchId": id})
			c.Equal(got.code(), "Create"+word+"Error")
			c.Equal(got.status, 400)
			got = r.do("POST", at+"/main/fork", object{"newThreadId": id, "fromMessageId": first})
			c.Equal(got.code(), "Fork"+word+"Error")
			c.Equal(got.status, 400)
		}
	}
	c.Equal(len(r.do("GET", "/sessions/"+s+"/branches", nil).list()), 1)
}

// No manipulation of a path reaches another session or branch.
func TestPathTricks(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	r := newRig(t, hpd.Config{})
	r.do("POST", "/sessions", object{"sessionId": "a"})
	r.do("POST", "/sessions", object{"sessionId": "b"})
	for _, path := range []string{
		"/sessions/b%2F..%2Fa", "/sessions/%2e%2e/a", "/sessions/b/%2e%2e/a", "/sessions/a%00", "/sessions/a%20", "/sessions/%61%2F", "/sessions/a%252Fb",
		"/sessions/b/branches/..%2F..%2Fa", "/sessions/b/branches/main%2Fevents", "/sessions/b/branches/%2e/main", "/sessions/b/branches/main%2F%2e%2e%2Fmain",
		"/agents/x%2Fsessions%2Fa/sessions/b", "/sessions/b%2Fbranches%2Fmain", "/sessions/b/branches%2Fmain", "/sessions/b/branches/main/", "/sessions/b/Branches/main",
		"/sessions/b/branches/MAIN", "/sessions/B",
		// These are sent unchanged: a cleaned path would be another one.
		"/sessions/b/../a", "/sessions/b/branches/../../a", "/sessions//a", "//sessions/a", "/../hpd/sessions/a", "/sessions/./a", "/sessions/a/", "/sessions/a/.",
		"/./sessions/a", "/sessions/b/branches//main", "/sessions/b/branches/x/../main", "/agents/x/../../sessions/a", "/sessions/a//branches/main", "/sessions/a/branches/main//events",
	} {
		got := r.do("GET", path, nil)
		if got.status != 404 || got.header.Get("Content-Type") != wire.ProblemType || got.code() == "" || got.header.Get("Location") != "" {
			t.Errorf("%s: %d %s", path, got.status, got.raw)
		}
	}
	c.Equal(r.do("GET", "/sessions/%61", nil).object()["id"], any("a")) // an encoded letter is that letter
}

// Requests that are refused before a route is found also get a response in this
// API's form: clients read `errors`.
func TestRefusedBefore(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	r := newRig(t, hpd.Config{})
	mount := r.server.Mount().Routes[0]
	if !mount.Exact {
		t.Error("paths would be redirected")
	}
	for _, tt := range []struct {
		path, code string
		err        error
		status     int
	}{
		{"/hpd/sessions/s", "GetSessionError", fault.New(fault.AuthFailed, "no such key"), 401},
		{"/hpd/sessions/s/threads/x", "GetThreadError", fault.New(fault.AccessDenied, "not this origin"), 403},
		{"/hpd/nothing", "InvalidRequest", fault.New(fault.AccessDenied, "not this host"), 403},
		{"/hpd/agents/a/sessions/s/branches/b/ws", "InvalidRequest", fault.New(fault.Unavailable, "shutting down"), 503},
	} {
		w := httptest.NewRecorder()
		mount.Refuse(w, httptest.NewRequest(http.MethodGet, tt.path, nil), tt.err)
		got := answer{w.Code, w.Header(), w.Body.Bytes()}
		c.Equal(got.status, tt.status)
		c.Equal(got.code(), tt.code)
		c.Equal(got.header.Get("Content-Type"), wire.ProblemType)
		if !strings.Contains(string(got.raw), tt.err.Error()) {
			t.Errorf("%s: %s", tt.path, got.raw)
		}
		c.Equal(got.header.Get("WWW-Authenticate") != "", tt.status == 401)
	}
}
