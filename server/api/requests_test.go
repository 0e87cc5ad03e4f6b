package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/request"
)

const question = `{"kind":"approval","title":"Remove it?","for":"bob","action":{"name":"rm","arguments":{"path":"/x"}},"choices":[{"id":"approve"},{"id":"deny"}]}`

// listedRequests are the ids of a page.
func (s *site) listedRequests(as, query string) (ids []string) {
	s.t.Helper()
	status, page := s.ask(as, "GET", "/v1/requests"+query, "")
	if status != http.StatusOK {
		s.t.Fatalf("%s: %d %v", query, status, page)
	}
	for _, r := range page["requests"].([]any) {
		ids = append(ids, r.(map[string]any)["request_id"].(string))
	}
	return ids
}

func TestRequests(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent("alice")
	bob := s.agent("bob")
	s.agent("carol")
	ch := s.open("conversation", "alice", "bob")
	at := "/v1/channels/" + ch + "/requests"
	status, asked := s.ask("agent:alice", "POST", at, strings.Replace(question, "{", `{"idempotency_key":"k",`, 1))
	if status != http.StatusCreated || asked["state"] != "open" || asked["for"] != bob {
		t.Fatalf("%d %v", status, asked)
	}
	id := asked["request_id"].(string)
	digest := asked["action"].(map[string]any)["digest"].(string)
	// A restarted agent finds its own again, by the header too.
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.http.URL+at, strings.NewReader(question))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("As", "agent:alice")
	req.Header.Set("Idempotency-Key", "k")
	resp, err := s.http.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	var again map[string]any
	if err := json.Unmarshal(readAll(t, resp), &again); err != nil || again["request_id"] != id {
		t.Errorf("%v %v", again, err)
	}
	if status, p := s.ask("agent:carol", "POST", at, question); status != http.StatusForbidden {
		t.Errorf("carol asks: %d %v", status, p)
	}
	for as, want := range map[string][]string{operator: {id}, "reader": {id}, "agent:alice": {id}, "agent:bob": {id}, "agent:carol": nil} {
		if got := s.listedRequests(as, ""); !slices.Equal(got, want) {
			t.Errorf("%s is shown %v", as, got)
		}
	}
	if status, _ := s.ask("agent:carol", "GET", "/v1/requests/"+id, ""); status != http.StatusForbidden {
		t.Errorf("carol is shown it: %d", status)
	}
	answer := "/v1/requests/" + id + "/answer"
	for body, want := range map[string]int{
		`{"choice":"perhaps"}`:                        http.StatusBadRequest,
		`{"choice":"approve","digest":"sha256:0000"}`: http.StatusConflict,
		`{"choice":"approve","as":"carol"}`:           http.StatusForbidden,
		`{"chioce":"approve"}`:                        http.StatusBadRequest,
	} {
		if status, p := s.ask("agent:bob", "POST", answer, body); status != want {
			t.Errorf("%s: %d %v", body, status, p)
		}
	}
	if status, p := s.ask("agent:alice", "POST", answer, `{"choice":"approve"}`); status != http.StatusForbidden {
		t.Errorf("alice answers herself: %d %v", status, p)
	}
	status, got := s.ask("agent:bob", "POST", answer, fmt.Sprintf(`{"choice":"approve","note":"ok","digest":%q}`, digest))
	if status != http.StatusOK || got["state"] != "answered" || got["answer"].(map[string]any)["by"].(map[string]any)["agent_id"] != bob {
		t.Errorf("%d %v", status, got)
	}
	if status, _ := s.ask("agent:bob", "POST", answer, `{"choice":"approve"}`); status != http.StatusOK {
		t.Errorf("the same again: %d", status)
	}
	status, p := s.ask("agent:bob", "POST", answer, `{"choice":"deny"}`)
	if status != http.StatusConflict || p["reason"] != "request_answered" || p["request"].(map[string]any)["answer"].(map[string]any)["choice"] != "approve" {
		t.Errorf("another answer: %d %v", status, p)
	}
	if got := s.listedRequests(operator, "?state=open"); got != nil {
		t.Errorf("open: %v", got)
	}
}

func TestAnExpiredRequestIsGone(t *testing.T) {
	t.Parallel()
	start := time.Now()
	var passed atomic.Int64
	s := newSiteOn(t, hub.Options{Now: func() time.Time { return start.Add(time.Duration(passed.Load())) }})
	alice := s.agent("alice")
	s.agent("bob")
	ch := s.open("conversation", "alice", "bob")
	asked, err := s.hub.Ask(t.Context(), hub.Asking{Request: hub.Request{
		Kind: request.Approval, Channel: ch, AskedBy: alice, Title: "Soon?", DueAt: start.Add(time.Minute), Choices: []request.Choice{{ID: "approve"}},
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	passed.Store(int64(time.Hour))
	status, p := s.ask(operator, "POST", "/v1/requests/"+asked.ID+"/answer", `{"choice":"approve"}`)
	if status != http.StatusGone || p["reason"] != "request_expired" || p["request"].(map[string]any)["state"] != "expired" {
		t.Errorf("%d %v", status, p)
	}
}

func TestFollowingRequests(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent("alice")
	s.agent("bob")
	ch := s.open("conversation", "alice", "bob")
	_, page := s.ask(operator, "GET", "/v1/requests", "")
	_, asked := s.ask(operator, "POST", "/v1/channels/"+ch+"/requests", strings.Replace(question, "{", `{"asked_by":"alice",`, 1))
	id := asked["request_id"].(string)
	f := s.follow("agent:bob", "/v1/requests?after="+page["position"].(string))
	defer f.body.Close()
	first := f.next()
	if first.name != "request" || !strings.Contains(first.data, id) || !strings.Contains(first.data, `"state":"open"`) {
		t.Fatalf("%+v", first)
	}
	s.ask("agent:bob", "POST", "/v1/requests/"+id+"/answer", `{"choice":"deny"}`)
	again := s.follow(operator, "/v1/requests?kind=approval", "Last-Event-ID", first.id)
	defer again.body.Close()
	for _, stream := range []*frames{f, again} {
		if got := stream.next(); !strings.Contains(got.data, `"state":"answered"`) || got.id == first.id {
			t.Errorf("%+v", got)
		}
	}
	gap := s.follow(operator, "/v1/requests?after=9.9.0")
	defer gap.body.Close()
	if got := gap.next(); got.name != "gap" {
		t.Errorf("%+v", got)
	}
}
