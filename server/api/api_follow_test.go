package api_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// frames reads server sent events one by one.
type frames struct {
	t    testing.TB
	body io.ReadCloser
	scan *bufio.Scanner
}

type frame struct{ id, name, data string }

func (s *site) follow(as, path string, header ...string) *frames {
	s.t.Helper()
	return s.followWith(s.http.Client(), as, path, header...)
}

func (s *site) followWith(client *http.Client, as, path string, header ...string) *frames {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.http.URL+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("As", as)
	req.Header.Set("Accept", "text/event-stream")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %s", path, resp.Status)
	}
	scan := bufio.NewScanner(resp.Body)
	scan.Buffer(nil, 4<<20)
	return &frames{t: s.t, body: resp.Body, scan: scan}
}

func (f *frames) next() frame {
	f.t.Helper()
	got, ok := f.try()
	if !ok {
		f.t.Fatalf("the stream ended: %v", f.scan.Err())
	}
	return got
}

// try is next for a stream that may end.
func (f *frames) try() (got frame, ok bool) {
	for f.scan.Scan() {
		line := f.scan.Text()
		switch {
		case line == "" && got != (frame{}):
			return got, true
		case strings.HasPrefix(line, "id: "):
			got.id = line[4:]
		case strings.HasPrefix(line, "event: "):
			got.name = line[7:]
		case strings.HasPrefix(line, "data: "):
			got.data = line[6:]
		}
	}
	return frame{}, false
}

func TestFollowing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent("alice")
	s.agent("bob")
	ch := s.open("conversation", "alice", "bob")
	f := s.follow(operator, "/v1/channels/"+ch+"/events")
	defer f.body.Close()
	for range 3 {
		if got := f.next(); got.name != "envelope" || !strings.Contains(got.data, "ag2.channel.") {
			t.Errorf("%+v", got)
		}
	}
	s.say(operator, ch, "alice", "live")
	got := f.next()
	if !strings.Contains(got.data, `"event_data":{"text":"live"}`) || !strings.Contains(got.data, `"position":"`+got.id+`"`) {
		t.Errorf("%+v", got)
	}
	s.say(operator, ch, "bob", "missed")
	again := s.follow(operator, "/v1/channels/"+ch+"/events", "Last-Event-ID", got.id)
	defer again.body.Close()
	if next := again.next(); !strings.Contains(next.data, "missed") {
		t.Errorf("resumed with %+v", next)
	}
	gap := s.follow(operator, "/v1/channels/"+ch+"/events?after=9.9.9")
	defer gap.body.Close()
	if first := gap.next(); first.name != "gap" || !strings.Contains(first.data, `"reason":"the epoch has changed"`) {
		t.Errorf("%+v", first)
	}
	s.say(operator, ch, "alice", "after the gap")
	if next := gap.next(); !strings.Contains(next.data, "after the gap") {
		t.Errorf("%+v", next)
	}
}

func TestFollowingEverything(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent("alice")
	s.agent("bob")
	s.agent("carol")
	one, two := s.open("conversation", "alice", "bob"), s.open("conversation", "bob", "carol")
	_, all := s.ask(operator, "GET", "/v1/events?limit=1000", "")
	f := s.follow("agent:carol", fmt.Sprintf("/v1/events?after=%s", all["next"]))
	defer f.body.Close()
	s.say(operator, one, "alice", "not for carol")
	s.say(operator, two, "bob", "for carol")
	if got := f.next(); !strings.Contains(got.data, `"for carol"`) {
		t.Errorf("carol follows %+v", got)
	}
}

func TestWhoSeesWhat(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent("alice")
	s.agent("bob")
	s.agent("eve")
	ch := s.open("conversation", "alice", "bob")
	for _, path := range []string{"/v1/channels/" + ch, "/v1/channels/" + ch + "/events", "/v1/channels/" + ch + "/views/full_transcript"} {
		for as, want := range map[string]int{
			operator: 200, "reader": 200, "agent:alice": 200, "agent:eve": 403, "agent:ghost": 403, "": 401,
		} {
			if status, p := s.ask(as, "GET", path, ""); status != want {
				t.Errorf("%q %s: %d %v, want %d", as, path, status, p, want)
			}
		}
	}
	for _, tc := range []struct{ method, path string }{
		{"DELETE", "/v1/channels/" + ch}, {"DELETE", "/v1/agents/eve"},
	} {
		for as, want := range map[string]int{"reader": 403, "agent:alice": 403, "": 401} {
			if status, _ := s.ask(as, tc.method, tc.path, ""); status != want {
				t.Errorf("%q %s %s: %d", as, tc.method, tc.path, status)
			}
		}
	}
	if _, page := s.ask("agent:eve", "GET", "/v1/channels", ""); len(page["channels"].([]any)) != 0 {
		t.Errorf("eve lists %v", page)
	}
	if status, _ := s.ask("agent:eve", "GET", "/v1/channels?agent=alice", ""); status != 403 {
		t.Errorf("eve asks for alice's: %d", status)
	}
}

func TestAgentsAuditHealth(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	alice := s.agent("alice")
	s.agent("bob")
	_, page := s.ask(operator, "GET", "/v1/agents?limit=1", "")
	list := page["agents"].([]any)
	if len(list) != 1 || page["next"] != alice || list[0].(map[string]any)["online"] != true {
		t.Errorf("%v", page)
	}
	_, shown := s.ask(operator, "GET", "/v1/agents/alice", "")
	if shown["passport"].(map[string]any)["agent_id"] != alice {
		t.Errorf("%v", shown)
	}
	ch := s.open("conversation", "alice", "bob")
	if status, _ := s.ask(operator, "DELETE", "/v1/agents/bob", ""); status != http.StatusNoContent {
		t.Errorf("remove: %d", status)
	}
	_, audit := s.ask(operator, "GET", "/v1/audit?channel="+ch, "")
	records := audit["records"].([]any)
	if len(records) != 1 || records[0].(map[string]any)["kind"] != "channel_created" {
		t.Errorf("%v", audit)
	}
	f := s.follow(operator, fmt.Sprintf("/v1/audit?kind=channel_closed&after=%s", audit["position"]))
	defer f.body.Close()
	s.ask(operator, "POST", "/v1/channels/"+ch+"/close", "")
	if got := f.next(); got.name != "audit" || !strings.Contains(got.data, `"reason":"explicit_close"`) {
		t.Errorf("%+v", got)
	}
	if status, health := s.ask(operator, "GET", "/v1/health", ""); status != 200 || health["version"] != "test" {
		t.Errorf("%d %v", status, health)
	}
}
