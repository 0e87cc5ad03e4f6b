package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A shell completes the ids of everything that a command names by one.
func TestIDsAreCompleted(t *testing.T) {
	t.Parallel()
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, map[string]string{
			"/v1/channels?limit=200&newest=true": `{"channels":[{"channel_id":"0190aa","manifest":{"type":"discussion"},"labels":{"title":"Which\nharbour"}}]}`,
			"/v1/requests?limit=200":             `{"requests":[{"request_id":"req-1","kind":"approval","title":"Sail?"},{"request_id":"req-2","kind":"clarification"}]}`,
			"/v1/requests?limit=200&state=open":  `{"requests":[{"request_id":"req-2","kind":"clarification"}]}`,
			"/v1/tasks?limit=200":                `{"tasks":[{"task_id":"task-1","state":"running","spec":{"title":"Load"}}]}`,
			"/v1/keys":                           `{"keys":[{"id":"0123456789ab","role":"agent","agent":"alice"},{"id":"ba9876543210","role":"reader"}]}`,
			"/hpd/sessions?limit=200":            `[{"id":"sess-1"},{"id":"bad\nid"}]`,
		}[r.URL.RequestURI()])
	}))
	t.Cleanup(hub.Close)
	for line, want := range map[string]string{
		"channels show":       "0190aa\tdiscussion Which harbour\n@latest\tthe one that was opened last\n",
		"requests show":       "req-1\tapproval Sail?\nreq-2\tclarification\n",
		"requests answer":     "req-2\tclarification\n",
		"tasks show":          "task-1\trunning Load\n",
		"tasks cancel":        "task-1\trunning Load\n",
		"keys revoke":         "0123456789ab\talice\nba9876543210\treader\n",
		"sessions show":       "sess-1\n",
		"sessions delete":     "sess-1\n",
		"events":              "sess-1\n",
		"sessions show other": "", // it takes one
	} {
		code, out, stderr := call(t, nil, append(append([]string{"__complete"}, strings.Fields(line)...), "--hub", hub.URL, "")...)
		if found, _, _ := strings.Cut(out, ":"); code != exitFine || found != want {
			t.Errorf("%s: exit %d, %q, want %q\n%s", line, code, out, want, stderr)
		}
	}
	if _, out, _ := call(t, nil, "__complete", "keys", "revoke", "--hub", hub.URL, "ba"); !strings.HasPrefix(out, "ba98") {
		t.Errorf("what was begun goes on with %q", out)
	}
}
