package api_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

// Whoever looks at an agent's turns takes nothing out of its hands: the turn is
// handed over when the agent gets it.
func TestLookingAtTurnsHandsNothingOver(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent("alice")
	bob := s.agent("bob")
	ch := s.open("consulting", "alice", "bob")
	s.hub.Unbind(acker{s.hub}, bob) // away from here on
	s.tell(ch, "alice", "please look")
	for range 2 {
		for _, who := range []string{operator, "reader", "agent:bob"} {
			_, page := s.ask(who, "GET", "/v1/agents/bob/turns", "")
			turns := page["turns"].([]any)
			if len(turns) != 1 {
				t.Fatalf("%s sees %v", who, page)
			}
			turn := turns[0].(map[string]any)
			if since, err := time.Parse(time.RFC3339Nano, turn["since"].(string)); turn["handed_at"] != nil || err != nil || since.IsZero() {
				t.Errorf("%s sees %v", who, turn)
			}
		}
		if _, shown := s.ask(operator, "GET", "/v1/channels/"+ch, ""); shown["turn"].(map[string]any)["handed_at"] != nil {
			t.Errorf("the channel's turn: %v", shown["turn"])
		}
	}
	if err := s.hub.BindReplaying(t.Context(), bob, acker{s.hub}, ""); err != nil {
		t.Fatal(err)
	}
	if _, page := s.ask(operator, "GET", "/v1/agents/bob/turns", ""); page["turns"].([]any)[0].(map[string]any)["handed_at"] == nil {
		t.Errorf("after it came to bob: %v", page)
	}
}

// Agents are listed by who was seen last, and only those who are online.
func TestAgentsWhoWereSeenLast(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent("alice")
	bob, carl := s.agent("bob"), s.agent("carl")
	s.hub.Unbind(acker{s.hub}, bob)
	s.hub.Unbind(acker{s.hub}, carl)
	agents := func(query string) (list []map[string]any) {
		t.Helper()
		status, page := s.ask(operator, "GET", "/v1/agents?"+query, "")
		if status != http.StatusOK {
			t.Fatalf("%s: %d %v", query, status, page)
		}
		for _, a := range page["agents"].([]any) {
			list = append(list, a.(map[string]any))
		}
		return list
	}
	seen := func(a map[string]any) string { text, _ := a["last_seen_at"].(string); return text }
	if by := agents("sort=seen"); len(by) != 3 || seen(by[0]) < seen(by[1]) || seen(by[1]) < seen(by[2]) || seen(by[0]) == "" {
		t.Errorf("by who was seen last: %v", by)
	}
	if got := agents("online"); len(got) != 1 || got[0]["passport"].(map[string]any)["name"] != "alice" {
		t.Errorf("online: %v", got)
	}
	if status, _ := s.ask(operator, "GET", "/v1/agents?sort=age", ""); status != http.StatusBadRequest {
		t.Errorf("another order: %d", status)
	}
}

// One call closes at most 1,000 channels, and says where the next one goes on.
func TestACallClosesAtMostAThousandChannels(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	busyChannels(t, s.hub, 1005)
	status, done := s.ask(operator, "POST", "/v1/channels/close", `{"filter":{"agent":"alice","state":["active"]},"dry_run":true}`)
	if status != http.StatusOK || done["matched"] != 1000.0 || done["next"] == "" {
		t.Fatalf("a dry run: %d, matched %v, next %v", status, done["matched"], done["next"])
	}
	next := ""
	for _, want := range []int{1000, 5} {
		status, done := s.ask(operator, "POST", "/v1/channels/close", fmt.Sprintf(`{"filter":{"agent":"alice","state":["active"]},"expect":%d,"after":%q}`, want, next))
		if status != http.StatusOK || done["closed"] != float64(want) {
			t.Fatalf("closing %d: %d, closed %v, failed %v", want, status, done["closed"], done["failed"])
		}
		next = done["next"].(string)
	}
	if open, _ := s.ids(operator, "state=active"); next != "" || len(open) != 0 {
		t.Errorf("next %q, open %v", next, open)
	}
}
