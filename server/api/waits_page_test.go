package api_test

import (
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"testing"
	"time"
)

// paged reads a list entry by entry, forward and then backward from the last one.
func (s *site) paged(as, path, list, field string) (forward, backward []string) {
	s.t.Helper()
	read := func(query string) (string, map[string]any) {
		status, page := s.ask(as, "GET", path+"limit=1"+query, "")
		if status != http.StatusOK {
			s.t.Fatalf("%s%s: %d %v", path, query, status, page)
		}
		items := page[list].([]any)
		if len(items) == 0 {
			return "", page
		}
		return items[0].(map[string]any)[field].(string), page
	}
	id, page := read("")
	forward = append(forward, id)
	for page["next"] != "" {
		id, page = read("&after=" + page["next"].(string))
		forward = append(forward, id)
	}
	for page["prev"] != "" {
		if id, page = read("&before=" + page["prev"].(string)); id != "" {
			backward = append(backward, id)
		}
	}
	slices.Reverse(backward)
	return forward, backward
}

// The turns of an agent are listed in pages, both ways, the first due first.
func TestTurnsOfAnAgentComeInPages(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent("alice")
	s.agent("bob")
	late, soon, between := s.within(30_000), s.within(600), s.within(3_000)
	never := s.expecting("", "discussion", "bob")
	want := []string{soon, between, late, never}
	for _, who := range []string{operator, "agent:alice"} {
		forward, backward := s.paged(who, "/v1/agents/alice/turns?", "turns", "channel_id")
		if !slices.Equal(forward, want) || !slices.Equal(backward, want[:3]) {
			t.Errorf("%s: %v, then back %v; want %v", who, forward, backward, want)
		}
	}
	s.refused("/v1/agents/alice/turns", "after=no", "not a position")
	if _, page := s.ask(operator, "GET", "/v1/agents/bob/turns", ""); len(page["turns"].([]any)) != 0 || page["next"] != "" {
		t.Errorf("bob has no turn: %v", page)
	}
	if _, sum := s.ask("agent:alice", "GET", "/v1/summary", ""); sum["channels"].(map[string]any)["active"] != 4.0 {
		t.Errorf("alice's summary: %v", sum)
	}
}

// Invitations come in pages, also those of one channel.
func TestInvitationsComeInPages(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent("alice")
	for _, name := range []string{"hana", "hugo", "ines"} {
		s.hub.Unbind(acker{s.hub}, s.human(name)) // nobody acks for them
	}
	ended := make(chan struct{})
	for _, invited := range []string{`["hana","hugo","ines"]`, `["ines"]`} {
		go func() {
			resp := s.do(operator, "POST", "/v1/channels", fmt.Sprintf(`{"type":"discussion","creator":"alice","participants":%s}`, invited))
			_ = resp.Body.Close()
			ended <- struct{}{}
		}()
	}
	list := "/v1/requests?kind=invite&"
	var total any
	for late := time.Now().Add(30 * time.Second); total != 4.0; runtime.Gosched() {
		if time.Now().After(late) {
			t.Fatalf("%v are invited", total)
		}
		_, page := s.ask(operator, "GET", list+"count", "")
		total = page["total"]
	}
	forward, backward := s.paged(operator, list, "requests", "request_id")
	if len(slices.Compact(slices.Sorted(slices.Values(forward)))) != 4 || !slices.Equal(backward, forward[:3]) {
		t.Errorf("%v, then back %v", forward, backward)
	}
	newest, _ := s.paged(operator, list+"newest&", "requests", "request_id")
	if slices.Reverse(newest); !slices.Equal(newest, forward) {
		t.Errorf("the newest first: %v, want %v backward", newest, forward)
	}
	for query, want := range map[string]int{"for=ines": 2, "for=hugo": 1, "for=alice": 0, "state=answered": 0} {
		if ids := s.listedRequests(operator, "?kind=invite&"+query); len(ids) != want {
			t.Errorf("%s: %v", query, ids)
		}
	}
	open, _ := s.ids(operator, "state=pending")
	for _, id := range open {
		s.ask(operator, "POST", "/v1/channels/"+id+"/close", "")
	}
	<-ended
	<-ended
}
