package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/parley-hub/parley/server/api"
)

// A parameter that would not select what the caller means is refused by every route,
// with what it takes.
func TestParametersAreThoseOfTheRoute(t *testing.T) {
	t.Parallel()
	s := newSite(t, chats(t))
	s.agent("user")
	s.agent("alice")
	s.agent("bob")
	at := "/v1/channels/" + s.open("conversation", "alice", "bob")
	for path, takes := range map[string]string{
		"/v1/channels": "agent, type, state, label, q, waiting_for, overdue, form, sort, newest, after, before, limit, count",
		"/v1/tasks":    "owner, channel, state, newest, after, before, limit, count", "/v1/events": "after, limit, as, follow, label, type",
		at: "none", at + "/state": "at", "/v1/health": "none", "/v1/openapi.json": "none", "/v1/chat/sessions": "agent, as, after, limit",
	} {
		s.refused(path, "lable=x", `\"lable\" is not a parameter of GET /v1/`)
		s.refused(path, "lable=x", ", which takes "+takes+`"`)
		s.refused(path, "=1", `\"\" is not a parameter`)
		if status, p := s.ask(operator, "GET", path+"?&", ""); status != http.StatusOK {
			t.Errorf("%s?&: %d %v", path, status, p)
		}
	}
	if status, p := s.ask(operator, "POST", at+"/close?reason=no", `{}`); status != http.StatusBadRequest || !strings.Contains(p["detail"].(string), "takes none") {
		t.Errorf("a parameter of a post: %d %v", status, p)
	}
	s.refused("/v1/channels", "limit=1&limit=2", "limit is given 2 times; give it once")
	s.refused("/v1/channels", "newest&newest", "newest is given 2 times")
	if status, p := s.ask(operator, "GET", "/v1/channels?state=active&state=closed&label=a%3Db&label=c%3Dd", ""); status != http.StatusOK {
		t.Errorf("a list of values: %d %v", status, p)
	}
	for _, path := range []string{at + "/export", at + "/export?form=markdown", at + "/export?form=bundle"} {
		s.refused(path, "home=maybe", `home=\"maybe\" is neither true nor false`)
	}
	s.refused(at+"/export?form=bundle", "home", "is in no home; leave out home")
}

// The document says what a number may be.
func TestDocumentBoundsNumbers(t *testing.T) {
	t.Parallel()
	doc := newSite(t).v1.(*api.API).Document()["paths"].(map[string]any)
	for at, want := range map[[2]string]int{{"/v1/channels", "limit"}: 1, {"/v1/channels/{id}/views/{name}", "recent_n"}: 1, {"/v1/channels/{id}/state", "at"}: 0} {
		for _, p := range doc[at[0]].(map[string]any)["get"].(map[string]any)["parameters"].([]any) {
			if p := p.(map[string]any); p["name"] == at[1] && p["schema"].(map[string]any)["minimum"] != want {
				t.Errorf("%v: %v", at, p)
			}
		}
	}
}

// The header and the member are one key: two different ones are a mistake of the
// caller.
func TestOneKeyForARepeat(t *testing.T) {
	t.Parallel()
	s := newSite(t, chats(t))
	s.agent("alice")
	s.agent("bob")
	s.agent("user")
	s.echo("parrot")
	at := "/v1/channels/" + s.open("conversation", "alice", "bob")
	for path, c := range map[string]struct{ body, member string }{
		at + "/events":   {`{"sender":"alice","text":"x"`, "idempotency_key"},
		at + "/requests": {`{"asked_by":"alice","kind":"approval","title":"t"`, "idempotency_key"},
		"/v1/chat":       {`{"agent":"parrot","message":"x"`, "run_id"},
	} {
		for header, want := range map[string]string{
			"other": c.member + " and the header Idempotency-Key are the same thing, and differ; send one of them",
			"\xe9":  "the header Idempotency-Key is not UTF-8",
			"k":     "",
		} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.http.URL+path, strings.NewReader(c.body+`,"`+c.member+`":"k"}`))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("As", operator)
			req.Header.Set("Idempotency-Key", header)
			resp, err := s.http.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			answer := string(readAll(t, resp))
			if want == "" && resp.StatusCode/100 != 2 || want != "" && (resp.StatusCode != http.StatusBadRequest || !strings.Contains(answer, want)) {
				t.Errorf("%s with the header %q: %s %s", path, header, resp.Status, answer)
			}
		}
	}
}

// What is not a list of messages is not taken for none.
func TestTypedMessagesOfAChatAreAList(t *testing.T) {
	t.Parallel()
	s := newSite(t, chats(t))
	s.agent("user")
	s.echo("parrot")
	for typed, want := range map[string]int{`1`: 400, `"x"`: 400, `true`: 400, `null`: 200, `[]`: 200, `{}`: 200} {
		status, p := s.ask(operator, "POST", "/v1/chat", `{"agent":"parrot","message":"x","input_messages":`+typed+`}`)
		if status != want || want == 400 && p["detail"] != "input_messages is a list of tool calls and their results" {
			t.Errorf("%s: %d %v", typed, status, p)
		}
	}
	before := s.sessions()
	call := `{"role":"assistant","metadata":{"type":"tool_call","tool_name":"t","tool_call_id":"c"}}`
	for typed, want := range map[string]string{
		`[` + call + `]`: "every tool call in input_messages needs its result, and the reverse",
		`[5]`:            "invalid_ai_message_envelope: message must be an array",
		`[{"role":""}]`:  "invalid_ai_message_envelope: role must be a non-empty string",
		`[{}]`:           "input_messages may hold tool calls and tool results only",
	} {
		status, p := s.ask(operator, "POST", "/v1/chat", `{"agent":"parrot","input_messages":`+typed+`}`)
		if status != 400 || p["detail"] != want {
			t.Errorf("%s: %d %v", typed, status, p)
		}
	}
	if after := s.sessions(); after != before {
		t.Errorf("refusals made %d sessions", after-before)
	}
	// Only the contract's white space is trimmed.
	if status, p := s.ask(operator, "POST", "/v1/chat", `{"agent":"parrot","message":"\u00a0"}`); status != 200 || p["reply"] != "\u00a0" {
		t.Errorf("a space that is not trimmed: %d %v", status, p)
	}
	if status, p := s.ask(operator, "POST", "/v1/chat", `{"agent":"parrot","message":" ","input_messages":null}`); status != 400 || p["detail"] != "message is empty; say something" {
		t.Errorf("nothing: %d %v", status, p)
	}
}

// sessions counts the chat sessions there are.
func (s *site) sessions() int {
	s.t.Helper()
	status, page := s.ask(operator, "GET", "/v1/chat/sessions", "")
	if status != http.StatusOK {
		s.t.Fatalf("%d %v", status, page)
	}
	return len(page["sessions"].([]any))
}
