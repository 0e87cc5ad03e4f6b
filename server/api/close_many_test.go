package api_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestManyChannelsAreClosedAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent("alice")
	s.agent("bob")
	s.agent("carol")
	for range 3 {
		s.open("conversation", "alice", "bob")
	}
	other := s.open("conversation", "carol", "bob")
	post := func(as, body string) (int, map[string]any) { return s.ask(as, "POST", "/v1/channels/close", body) }
	if status, dry := post(operator, `{"filter":{"agent":"alice"},"dry_run":true}`); status != http.StatusOK || dry["matched"] != 3.0 || dry["closed"] != 0.0 {
		t.Errorf("a dry run: %d %v", status, dry)
	}
	if status, _ := post(operator, `{"filter":{"agent":"alice"},"expect":2}`); status != http.StatusConflict {
		t.Errorf("another number: %d", status)
	}
	if status, _ := post(operator, `{"filter":{"agent":"alice"}}`); status != http.StatusBadRequest {
		t.Errorf("without a number: %d", status)
	}
	if status, _ := post("reader", `{"filter":{},"expect":4}`); status != http.StatusForbidden {
		t.Errorf("a reader: %d", status)
	}
	if status, seen := post("agent:carol", `{"filter":{},"dry_run":true}`); status != http.StatusOK || seen["matched"] != 1.0 {
		t.Errorf("carol: %d %v", status, seen)
	}
	status, done := post(operator, `{"filter":{"agent":"alice","state":["active"]},"reason":"tidied","expect":3}`)
	if status != http.StatusOK || done["closed"] != 3.0 || len(done["failed"].([]any)) != 0 || done["next"] != "" {
		t.Errorf("closed: %d %v", status, done)
	}
	if open, _ := s.ids(operator, "state=active"); len(open) != 1 || open[0] != other {
		t.Errorf("open: %v", open)
	}
	if status, done := post(operator, fmt.Sprintf(`{"filter":{"channel_ids":[%q]},"expect":1}`, other)); status != http.StatusOK || done["closed"] != 1.0 {
		t.Errorf("by id: %d %v", status, done)
	}
}

func TestAChannelIsDownloaded(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent("alice")
	s.agent("bob")
	s.agent("carol")
	ch := s.open("discussion", "alice", "bob", "carol")
	s.tell(ch, "alice", "# not a heading\n\n../../etc")
	if status, body := s.ask(operator, "POST", "/v1/channels/"+ch+"/events", `{"sender":"bob","event_type":"app.note","event_data":{"secret":"whisper"},"audience":["alice"]}`); status != http.StatusCreated {
		t.Fatalf("%d %v", status, body)
	}
	get := func(as, form string) (*http.Response, string) {
		t.Helper()
		resp := s.do(as, "GET", "/v1/channels/"+ch+"/export?form="+form, "")
		defer resp.Body.Close()
		data, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s %v: %s", form, resp.Status, err, data)
		}
		if name := resp.Header.Get("Content-Disposition"); !strings.HasPrefix(name, `attachment; filename="channel-`+ch+`.`) {
			t.Errorf("the file is named %s", name)
		}
		return resp, string(data)
	}
	_, lines := get(operator, "jsonl")
	for line := range strings.SplitSeq(strings.TrimSpace(lines), "\n") {
		var e map[string]any
		if err := json.Unmarshal([]byte(line), &e); err != nil || e["channel_id"] != ch {
			t.Errorf("%s: %v", line, err)
		}
	}
	if _, carol := get("agent:carol", "jsonl"); !strings.Contains(lines, "whisper") || strings.Contains(carol, "whisper") {
		t.Error("a whisper is downloaded by who may not read it, or by nobody")
	}
	if resp, markdown := get(operator, "markdown"); !strings.Contains(markdown, "> # not a heading") || strings.Contains(markdown, "\n# not") || resp.Header.Get("Content-Type") != "text/markdown; charset=utf-8" {
		t.Errorf("markdown: %s", markdown)
	}
	var messages []map[string]any
	if _, text := get(operator, "messages"); json.Unmarshal([]byte(text), &messages) != nil || len(messages) == 0 {
		t.Errorf("messages: %s", text)
	}
	if status, _ := s.ask(operator, "GET", "/v1/channels/"+ch+"/export?form=pdf", ""); status != http.StatusBadRequest {
		t.Errorf("another form: %d", status)
	}
}
