package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
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

// What the hub waits for of people stands in the same list, by two kinds of its own.
func TestWaitsForPeopleAreRequests(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent("alice")
	s.agent("bob")
	hana := s.human("hana")
	ask := func(as, query string) (list []map[string]any, page map[string]any) {
		status, page := s.ask(as, "GET", "/v1/requests?"+query, "")
		if status != http.StatusOK {
			t.Fatalf("%s: %d %v", query, status, page)
		}
		for _, r := range page["requests"].([]any) {
			list = append(list, r.(map[string]any))
		}
		return list, page
	}
	var channels []string
	for i := range 3 {
		ch := s.open("consulting", "alice", "hana")
		s.tell(ch, "alice", fmt.Sprintf("question %d", i))
		channels = append(channels, ch)
	}
	s.tell(s.open("consulting", "alice", "bob"), "alice", "not for a person")
	turns, _ := ask(operator, "kind=turn&state=open")
	if len(turns) != 3 {
		t.Fatalf("turns: %v", turns)
	}
	for i, r := range turns {
		if r["kind"] != "turn" || r["channel_id"] != channels[i] || r["for"] != hana || r["state"] != "open" || r["channel_title"] != fmt.Sprintf("question %d", i) {
			t.Errorf("turn %d: %v", i, r)
		}
	}
	first, page := ask(operator, "kind=turn&limit=2")
	rest, behind := ask(operator, "kind=turn&limit=2&after="+page["next"].(string))
	back, _ := ask(operator, "kind=turn&limit=2&before="+behind["prev"].(string))
	if len(first) != 2 || len(rest) != 1 || behind["next"] != "" || fmt.Sprint(back) != fmt.Sprint(first) {
		t.Errorf("pages: %v, %v, %v", first, rest, back)
	}
	if newest, _ := ask(operator, "kind=turn&newest"); newest[0]["channel_id"] != channels[2] {
		t.Errorf("the newest: %v", newest)
	}
	for query, want := range map[string]int{"state=answered": 0, "channel=" + channels[1]: 1, "for=bob": 0, "for=hana": 3, "asked_by=alice": 3} {
		if list, _ := ask(operator, "kind=turn&"+query); len(list) != want {
			t.Errorf("%s: %v", query, list)
		}
	}
	if list, _ := ask("agent:hana", "kind=turn"); len(list) != 3 {
		t.Errorf("hana sees %v", list)
	}
	if list, _ := ask("agent:alice", "kind=turn"); len(list) != 0 {
		t.Errorf("alice sees %v", list)
	}
	s.tell(channels[0], "hana", "an answer")
	if list, _ := ask(operator, "kind=turn"); len(list) != 2 {
		t.Errorf("after an answer: %v", list)
	}
	s.refused("/v1/requests?kind=turn", "after=no", "not a position")
	if status, _ := s.ask("agent:alice", "POST", "/v1/channels/"+channels[1]+"/requests", `{"kind":"turn","title":"x"}`); status != http.StatusBadRequest {
		t.Errorf("a turn that is asked: %d", status)
	}
}

// An invitation that a person has not answered waits for that person.
func TestInvitationsOfPeopleAreRequests(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent("alice")
	hana := s.human("hana")
	s.hub.Unbind(acker{s.hub}, hana) // nobody acks for her
	opened := make(chan int, 1)
	go func() {
		resp := s.do(operator, "POST", "/v1/channels", `{"type":"conversation","creator":"alice","participants":["hana"],"labels":{"title":"Come in"}}`)
		_ = resp.Body.Close()
		opened <- resp.StatusCode
	}()
	var invite map[string]any
	for late := time.Now().Add(30 * time.Second); invite == nil; runtime.Gosched() {
		_, page := s.ask("agent:hana", "GET", "/v1/requests?kind=invite", "")
		if list := page["requests"].([]any); len(list) > 0 {
			invite = list[0].(map[string]any)
		} else if time.Now().After(late) {
			t.Fatal("nobody is invited")
		}
	}
	if invite["for"] != hana || invite["channel_title"] != "Come in" || invite["due_at"] == nil || invite["if_nobody_answers"] == "" {
		t.Errorf("%v", invite)
	}
	ch := invite["channel_id"].(string)
	if status, said := s.ask("agent:hana", "POST", "/v1/channels/"+ch+"/events", `{"sender":"hana","event_type":"ag2.channel.invite.ack"}`); status != http.StatusCreated {
		t.Fatalf("the ack: %d %v", status, said)
	}
	if status := <-opened; status != http.StatusCreated {
		t.Errorf("opened: %d", status)
	}
	if ids := s.listedRequests(operator, "?kind=invite"); len(ids) != 0 {
		t.Errorf("after the ack: %v", ids)
	}
}
