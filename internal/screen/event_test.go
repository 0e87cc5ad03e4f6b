package screen_test

import (
	"strings"
	"testing"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/internal/screen"
	"github.com/parley-hub/parley/request"
)

// Requests, and what became of them, are words for a person, not JSON.
func TestRequestsAreShownInWords(t *testing.T) {
	t.Parallel()
	ch := &v1.Channel{Names: map[string]string{"a": "alice", "h": "hana"}}
	for _, c := range []struct{ kind, data, want string }{
		{request.TypeRequest, `{"request_id":"r","title":"Wipe it?","choices":[{"id":"approve"},{"id":"deny"}]}`, "alice → hana: [asks] Wipe it? (approve|deny)"},
		{request.TypeRequest, `{"request_id":"r","title":"Which disk?"}`, "alice → hana: [asks] Which disk?"},
		{request.TypeAnswer, `{"request_id":"r","answer":{"choice":"deny","note":"not today"}}`, "alice → hana: [answers] deny not today"},
		{request.TypeAnswer, `{"request_id":"r","answer":{"text":"the second"}}`, "alice → hana: [answers] the second"},
		{request.TypeExpired, `{"request_id":"r"}`, "alice → hana: [the request is expired]"},
	} {
		ev := &v1.Event{}
		ev.Sender, ev.Audience, ev.Type, ev.Data = "a", []string{"h"}, c.kind, []byte(c.data)
		if line := strings.TrimSpace(screen.Line(ch, ev, false)); !strings.HasSuffix(line, c.want) {
			t.Errorf("%s: %q, want %q", c.kind, line, c.want)
		}
	}
}
