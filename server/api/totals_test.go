package api_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/task"
)

// counts asks for a list and how many it has in all.
func (s *site) counts(as, path string) (total any, exact bool) {
	s.t.Helper()
	status, page := s.ask(as, "GET", path, "")
	if status != http.StatusOK {
		s.t.Fatalf("%s: %d %v", path, status, page)
	}
	return page["total"], page["total_exact"].(bool)
}

// Every list tells how many the filters select, on whatever page, if that is asked
// for; an agent is told of what it sees.
func TestListsSayHowManyThereAre(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	alice := s.agent("alice")
	s.agent("bob")
	s.agent("carol")
	s.human("hana")
	var chats []string
	for range 3 {
		chats = append(chats, s.open("conversation", "alice", "bob"))
	}
	s.open("discussion", "carol", "hana")
	if status, body := s.ask(operator, "POST", "/v1/channels/"+chats[0]+"/close", `{"reason":"done"}`); status != http.StatusOK {
		t.Fatalf("%d %v", status, body)
	}
	s.tell(chats[1], "alice", "your turn")
	for i := range 3 {
		status, body := s.ask(operator, "POST", "/v1/channels/"+chats[1]+"/requests", fmt.Sprintf(`{"asked_by":"alice","kind":"approval","title":"May I %d?","choices":[{"id":"yes"}]}`, i))
		if status != http.StatusCreated {
			t.Fatalf("%d %v", status, body)
		}
		if i > 0 {
			continue
		}
		if status, body := s.ask(operator, "POST", "/v1/requests/"+body["request_id"].(string)+"/answer", `{"choice":"yes"}`); status != http.StatusOK {
			t.Fatalf("%d %v", status, body)
		}
	}
	for i, state := range []task.State{task.Running, task.Failed, task.Running} {
		if err := s.hub.ObserveTask(t.Context(), task.Task{ID: fmt.Sprint("t", i), Owner: alice, State: state, CreatedAt: time.Now()}, nil, hub.MirrorOff); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]any{
		"/v1/channels?count":                               4.0,
		"/v1/channels?count&limit=1":                       4.0,
		"/v1/channels?count&form=row&sort=activity":        3.0, // that have not ended
		"/v1/channels?count&sort=activity&type=discussion": 1.0,
		"/v1/channels?count&type=conversation":             3.0,
		"/v1/channels?count&state=closed":                  1.0,
		"/v1/channels?count&state=active":                  3.0,
		"/v1/channels?count&agent=carol":                   1.0,
		"/v1/channels?count&q=carol&sort=activity":         1.0,
		"/v1/channels?count&waiting_for=carol":             1.0,
		"/v1/channels?count&q=nothing":                     0.0,
		"/v1/channels":                                     nil,
		"/v1/channels?count=false":                         nil,
		"/v1/tasks?count":                                  3.0,
		"/v1/tasks?count&state=running&limit=1":            2.0,
		"/v1/tasks?count&owner=bob":                        0.0,
		"/v1/tasks":                                        nil,
		"/v1/requests?count":                               3.0,
		"/v1/requests?count&state=open&sort=due&limit=1":   2.0,
		"/v1/requests?count&state=answered":                1.0,
		"/v1/requests?count&kind=approval&for=bob":         0.0,
		"/v1/requests?count&kind=turn":                     0.0,
		"/v1/requests":                                     nil,
		"/v1/audit?count&kind=channel_closed":              1.0,
		"/v1/audit?count&kind=channel_created&limit=1":     4.0,
		"/v1/audit?count&kind=nothing":                     0.0,
		"/v1/audit":                                        nil,
		"/v1/agents?limit=1":                               4.0,
		"/v1/agents?query=ali":                             1.0,
	} {
		if total, exact := s.counts(operator, path); total != want || exact != (want != nil) {
			t.Errorf("%s: %v, exact %v; want %v", path, total, exact, want)
		}
	}
	for path, want := range map[string]any{"/v1/channels?count": 1.0, "/v1/channels?count&sort=activity": 1.0, "/v1/tasks?count": 0.0, "/v1/requests?count": 0.0} {
		if total, exact := s.counts("agent:carol", path); total != want || !exact {
			t.Errorf("carol, %s: %v, exact %v; want %v", path, total, exact, want)
		}
	}
	_, page := s.ask(operator, "GET", "/v1/tasks?count&limit=2", "")
	if total, _ := s.counts(operator, "/v1/tasks?count&limit=2&after="+page["next"].(string)); total != 3.0 {
		t.Errorf("on the second page: %v", total)
	}
	for _, path := range []string{"/v1/channels", "/v1/tasks", "/v1/requests", "/v1/audit"} {
		if status, body := s.ask(operator, "GET", path+"?count=many", ""); status != http.StatusBadRequest {
			t.Errorf("%s: %d %v", path, status, body)
		}
	}
}

// Counting ends at 1,000, and after 4,096 entries were looked at: it then says that
// there are at least so many.
func TestCountingIsBounded(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	alice := s.agent("alice")
	for i := range 1000 {
		if err := s.hub.ObserveTask(t.Context(), task.Task{ID: fmt.Sprint("t", i), Owner: alice, State: task.Running, CreatedAt: time.Now()}, nil, hub.MirrorOff); err != nil {
			t.Fatal(err)
		}
	}
	if total, exact := s.counts(operator, "/v1/tasks?count&limit=1"); total != 1000.0 || !exact {
		t.Errorf("of 1,000 tasks: %v, exact %v", total, exact)
	}
	if err := s.hub.ObserveTask(t.Context(), task.Task{ID: "one more", Owner: alice, State: task.Failed, CreatedAt: time.Now()}, nil, hub.MirrorOff); err != nil {
		t.Fatal(err)
	}
	if total, exact := s.counts(operator, "/v1/tasks?count&limit=1"); total != 1000.0 || exact {
		t.Errorf("of 1,001 tasks: %v, exact %v", total, exact)
	}
	if total, exact := s.counts(operator, "/v1/tasks?count&state=failed"); total != 1.0 || !exact {
		t.Errorf("failed: %v, exact %v", total, exact)
	}
	for range 4096 {
		if err := s.hub.Audit(t.Context(), "common", nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.hub.Audit(t.Context(), "seldom", nil); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]float64{"kind=common": 1000, "kind=seldom": 0, "kind=seldom&newest": 1, "": 1000} {
		if total, exact := s.counts(operator, "/v1/audit?count&limit=1&"+query); total != want || exact {
			t.Errorf("audit, %s: %v, exact %v; want at least %v", query, total, exact, want)
		}
	}
}

// A page looks at 4,096 entries. Where a filter selects none of them it is empty, and
// goes on; nothing is left out on the way, in either direction.
func TestPagesOfRareFiltersAreBounded(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	alice := s.agent("alice")
	observe := func(id string, state task.State) {
		t.Helper()
		if err := s.hub.ObserveTask(t.Context(), task.Task{ID: id, Owner: alice, State: state, CreatedAt: time.Now()}, nil, hub.MirrorOff); err != nil {
			t.Fatal(err)
		}
	}
	record := func(kind string) {
		t.Helper()
		if err := s.hub.Audit(t.Context(), kind, nil); err != nil {
			t.Fatal(err)
		}
	}
	record("seldom")
	observe("first", task.Failed)
	for i := range 4100 {
		observe(fmt.Sprint("t", i), task.Running)
		record("common")
	}
	record("seldom")
	observe("last", task.Failed)
	for path, field := range map[string]string{"/v1/tasks?state=failed": "tasks", "/v1/audit?kind=seldom": "records", "/v1/audit?kind=never": "records"} {
		want := 2
		if path == "/v1/audit?kind=never" {
			want = 0
		}
		for _, order := range []string{"", "&newest"} {
			found, pages, short := 0, 0, 0
			for after := ""; pages == 0 || after != ""; pages++ {
				if pages == 10 {
					t.Fatalf("%s%s does not end", path, order)
				}
				query := path + order
				if after != "" {
					query += "&after=" + after
				}
				status, page := s.ask(operator, "GET", query, "")
				if status != http.StatusOK {
					t.Fatalf("%s: %d %v", query, status, page)
				}
				after = page["next"].(string)
				n := len(page[field].([]any))
				if found += n; n < 2 && after != "" {
					short++
				}
			}
			if found != want || short == 0 {
				t.Errorf("%s%s: %d found on %d pages, of which %d were short", path, order, found, pages, short)
			}
		}
	}
	// A program that asks the hub itself gets all that fit.
	list, next, err := s.hub.Tasks(t.Context(), hub.TaskQuery{State: task.Failed})
	if err != nil || len(list) != 2 || next != "" {
		t.Errorf("%d tasks, next %q, %v", len(list), next, err)
	}
}
