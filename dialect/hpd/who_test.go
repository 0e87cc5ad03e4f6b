package hpd_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gobwas/ws"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/hpd"
	"github.com/parley-hub/parley/hub"
)

// byHeader returns the caller from a header, as a guard would from a key.
func byHeader(r *http.Request) hpd.Who {
	switch who := r.Header.Get("Who"); who {
	case "operator":
		return hpd.Who{Role: hpd.Operator, Key: "key-of-operator"}
	case "reader":
		return hpd.Who{Role: hpd.Reader}
	case "":
		return hpd.Who{}
	default:
		return hpd.Who{Role: hpd.Agent, Agent: who, Key: "key-of-" + who}
	}
}

// TestWhoMay checks every cell of the table of rights against the routes. The
// status of a call that names something missing, or has no effect, shows whether
// the caller may make it.
func TestWhoMay(t *testing.T) {
	t.Parallel()
	r := newRig(t, hpd.Config{Who: byHeader, Producers: map[string]hpd.Producer{"echo": hpd.Echo{}}})
	as := func(who, method, path string, body any) answer {
		return r.send(method, path, body, map[string]string{"Who": who})
	}
	c := &spec.T{T: t}
	c.Equal(as("operator", "POST", "/sessions", object{"sessionId": "ops"}).status, 201)
	c.Equal(as("ada", "POST", "/sessions", object{"sessionId": "adas"}).status, 201)
	named := strings.NewReplacer("{agentId}", "echo", "{branchId}", "nowhere", "{runtimeRunId}", "none", "{contentId}", "none")
	call := func(who string, right hpd.Right, session string) int {
		path := strings.ReplaceAll(named.Replace(right.Path), "{sessionId}", session)
		if strings.HasSuffix(path, "/ws") {
			_, _, _, err := ws.Dialer{Header: ws.HandshakeHeaderHTTP{"Who": {who}}}.Dial(t.Context(), strings.Replace(r.http.URL, "http", "ws", 1)+"/hpd"+path)
			var status ws.StatusError
			if !errors.As(err, &status) {
				t.Errorf("%s: %v", path, err)
			}
			return int(status)
		}
		body := any(`{"metadata":5}`) // refused when it is read, so that the call has no effect
		if right.Method == http.MethodGet || right.Method == http.MethodDelete {
			body = nil
		}
		return as(who, right.Method, path, body).status
	}
	refused := func(status int) bool { return status == 401 || status == 403 }
	for _, right := range hpd.Rights() {
		t.Run(right.Method+" "+right.Path, func(t *testing.T) {
			t.Parallel()
			if got := call("", right, "adas"); got != 401 {
				t.Errorf("without a key: %d, not 401", got)
			}
			if got := call("operator", right, "adas"); refused(got) || right.Operator != hpd.Yes {
				t.Errorf("operator: %d", got)
			}
			if got := call("reader", right, "adas"); refused(got) != (right.Reader == hpd.No) {
				t.Errorf("reader may %s: %d", right.Reader, got)
			}
			own, foreign := call("ada", right, "adas"), call("ada", right, "ops")
			switch right.Agent {
			case hpd.No:
				if own != 403 {
					t.Errorf("an agent may not: %d", own)
				}
			case hpd.Itself:
				// echo is another agent, and ada takes part in its own session
				// only.
				if strings.HasSuffix(right.Path, "/work") && own != 403 {
					t.Errorf("another agent's work: %d", own)
				}
			case hpd.Theirs:
				if refused(own) {
					t.Errorf("an agent in its own session: %d", own)
				}
				if strings.Contains(right.Path, "{sessionId}") && foreign < 400 {
					t.Errorf("an agent in another's session: %d", foreign)
				}
			case hpd.Yes:
				if refused(own) {
					t.Errorf("an agent may: %d", own)
				}
			}
		})
	}
}

// The meaning of the cells: sessions of others do not exist for a caller, a caller
// cannot produce for runs of others, and a reader's socket only watches.
func TestWhatIsTheirs(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	r := newRig(t, hpd.Config{Who: byHeader, Producers: map[string]hpd.Producer{"echo": hpd.Echo{}}})
	as := func(who, method, path string, body any) answer {
		return r.send(method, path, body, map[string]string{"Who": who})
	}
	c.Equal(as("operator", "POST", "/sessions", object{"sessionId": "ops"}).status, 201)
	c.Equal(as("ada", "POST", "/sessions", object{"sessionId": "adas"}).status, 201)
	in := func(session string) string { return "/agents/echo/sessions/" + session + "/branches/main" }
	for _, row := range []struct {
		method, path               string
		body                       any
		operator, reader, ada, bob int
	}{
		{"GET", "/sessions/ops", nil, 200, 200, 404, 404},
		{"GET", "/sessions/adas", nil, 200, 200, 200, 404},
		{"GET", "/sessions/adas/branches/main/events", nil, 200, 200, 200, 404},
		{"GET", in("adas") + "/runs", nil, 200, 200, 200, 404},
		{"GET", in("adas") + "/runs/active", nil, 200, 200, 200, 404},
		{"GET", in("adas") + "/requests", nil, 200, 200, 200, 404},
		{"GET", "/sessions/adas/content", nil, 200, 200, 200, 404},
		{"GET", "/sessions/adas/thread-graph", nil, 200, 200, 200, 404},
		{"PATCH", "/sessions/adas", "{}", 200, 403, 200, 404},
		{"PATCH", "/sessions/adas/branches/main", "{}", 200, 403, 200, 404},
		{"POST", in("adas") + "/interrupt", nil, 409, 403, 409, 404},
		{"DELETE", "/sessions/adas/branches/none", nil, 404, 403, 404, 404},
		{"POST", "/agents", `{"name":"n","config":{}}`, 201, 403, 403, 403},
		{"GET", "/agents", nil, 200, 200, 200, 200},
	} {
		for who, want := range map[string]int{"operator": row.operator, "reader": row.reader, "ada": row.ada, "bob": row.bob} {
			if got := as(who, row.method, row.path, row.body).status; got != want {
				t.Errorf("%s %s as %q: %d, want %d", row.method, row.path, who, got, want)
			}
		}
	}
	c.Equal(len(as("ada", "GET", "/sessions", nil).list()), 1)
	c.Equal(len(as("bob", "GET", "/sessions", nil).list()), 0)
	c.Equal(len(as("reader", "GET", "/sessions", nil).list()), 2)

	// An input makes its sender and the run's agent members; inputs are posted
	// under the identity of the caller.
	c.Equal(as("ada", "POST", in("adas")+"/inputs", object{"text": "hi"}).status, 202)
	c.Equal(as("echo", "GET", "/sessions/adas", nil).status, 200)

	// Another agent's key can neither take work nor publish for a run.
	work := r.watch("/agents/far/work", map[string]string{"Who": "far"})
	c.Equal(as("bob", "GET", "/agents/far/work", nil).status, 403)
	far := "/agents/far/sessions/adas/branches/b"
	c.Equal(as("ada", "POST", "/agents/far/sessions/adas/branches", object{"branchId": "b"}).status, 201)
	c.Equal(as("ada", "POST", far+"/inputs", object{"text": "hi"}).status, 202)
	run := work.named("input")["runtimeRunId"].(string)
	ask := object{"type": "CLARIFICATION_REQUEST", "requestId": "q", "sourceName": "s", "question": "?"}
	for who, want := range map[string]int{"ada": 403, "reader": 403, "bob": 404} {
		c.Equal(as(who, "POST", far+"/events?runtimeRunId="+run, delta("x")).status, want)
		c.Equal(as(who, "POST", far+"/requests?runtimeRunId="+run, ask).status, want)
		c.Equal(as(who, "POST", far+"/runs/"+run+"/complete", object{"status": "completed"}).status, want)
	}
	c.Equal(as("far", "POST", far+"/events?runtimeRunId="+run, delta("x")).status, 202)
	c.Equal(as("far", "POST", far+"/requests?runtimeRunId="+run, ask).status, 202)
	c.Equal(as("far", "POST", far+"/runs/"+run+"/complete", object{"status": "completed"}).status, 200)
	c.Equal(as("ada", "POST", far+"/runs/"+run+"/complete", object{"status": "completed"}).status, 403)

	// The audit names the key.
	c.Equal(as("operator", "DELETE", "/sessions/ops", nil).status, 204)
	c.Equal(as("ada", "DELETE", "/sessions/adas/branches/b", nil).status, 204)
	lines, _, err := r.hub.AuditLog(t.Context(), hub.AuditQuery{Limit: 1000})
	c.NoError(err)
	var audit strings.Builder
	for _, line := range lines {
		audit.Write(line.Data)
	}
	for _, want := range []string{`"home_deleted"`, `"key":"key-of-operator"`, `"channel_deleted"`, `"key":"key-of-ada"`} {
		c.Contains(audit.String(), want)
	}
}

const rightsHead = `# HPD routes

Every route below ` + "`/hpd`" + `, and who may call it. This page is generated from the table that serves
them (` + "`make docs`" + `); ` + "`/hpd/openapi.json`" + ` describes bodies and answers. Everything below
` + "`/branches/`" + ` is served below ` + "`/threads/`" + ` too, in the names of that generation.

Until the first key exists, whoever is on this machine is operator. An operator may call every
route; its inputs are posted as the person of the setting ` + "`hpd.user`" + `. Without a key where one is
needed the answer is 401, where a cell says no it is 403.

- **theirs**: sessions that the agent or person created, or in which a branch or run names it;
  others are answered with 404.
- **itself**: for the runs and the work of that agent.
- **watch**: the socket shows events, and closes at an input.

| Route | What it does | Reader's key | Agent's or person's key |
|---|---|---|---|
`

// TestRoutesPage compares the page with the table. PARLEY_UPDATE=1 rewrites it.
func TestRoutesPage(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(rightsHead)
	for _, r := range hpd.Rights() {
		fmt.Fprintf(&b, "| `%s %s` | %s | %s | %s |\n", r.Method, r.Path, r.Says, r.Reader, r.Agent)
	}
	path := filepath.Join("..", "..", "docs", "hpd-routes.md")
	if os.Getenv("PARLEY_UPDATE") != "" {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(page) != b.String() {
		t.Error("docs/hpd-routes.md is not what the table says; run make docs")
	}
}

func TestTokenInThePath(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	r := newRig(t, hpd.Config{})
	take := r.server.Mount().Routes[0].Token
	for _, row := range []struct{ in, token, out string }{
		{"/hpd/~secret/sessions/s", "secret", "/hpd/sessions/s"},
		{"/hpd/~secret/sessions/s/branches/a%2Fb/ws", "secret", "/hpd/sessions/s/branches/a%2Fb/ws"},
		{"/hpd/sessions/~s", "", "/hpd/sessions/~s"},
		{"/hpd/sessions?access_token=secret", "secret", "/hpd/sessions"},
	} {
		u, err := url.Parse(row.in)
		c.NoError(err)
		c.Equal(take(u), row.token)
		c.Equal(u.EscapedPath(), row.out)
	}
}
