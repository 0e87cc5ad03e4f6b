package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/task"
)

// expecting opens a channel of alice with others in which this is expected.
func (s *site) expecting(list, kind, other string) string {
	s.t.Helper()
	status, ch := s.ask(operator, "POST", "/v1/channels", fmt.Sprintf(
		`{"creator":"alice","type":%q,"participants":[%q],"knobs":{"expectations":[%s]}}`, kind, other, list))
	if status != http.StatusCreated {
		s.t.Fatalf("%d %v", status, ch)
	}
	return ch["channel_id"].(string)
}

// within opens a discussion whose turns are due after so many seconds.
func (s *site) within(seconds int) string {
	return s.expecting(fmt.Sprintf(`{"name":"turn_within","on_violation":"audit","params":{"seconds":%d}}`, seconds), "discussion", "bob")
}

// The channel whose turn is due first comes first; one in which nothing is due is
// not listed, and one that is overdue stays after its violation was noted.
func TestChannelsByWhenTheyAreDue(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	s := newSiteOn(t, hub.Options{Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
	s.agent("alice")
	s.agent("bob")
	late, soon, between := s.within(30_000), s.within(600), s.within(3_000)
	s.human("hana")
	idle := s.expecting("", "discussion", "bob")
	never := s.expecting("", "consulting", "hana")
	s.tell(never, "alice", "please look")
	for query, want := range map[string][]string{
		"sort=due":                          {soon, between, late},
		"sort=due&newest":                   {late, between, soon},
		"sort=due&form=row":                 {soon, between, late},
		"sort=due&waiting_for=alice":        {soon, between, late, idle}, // never due is last
		"sort=due&waiting_for=alice&newest": {idle, late, between, soon},
		"sort=due&waiting_for=bob":          nil,
		"sort=due&overdue":                  nil,
		"sort=due&waiting_for=people":       {never}, // also without a deadline
	} {
		if got, _ := s.ids(operator, query); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
	one, page := s.ids(operator, "sort=due&limit=1")
	two, page := s.ids(operator, "sort=due&limit=1&after="+page["next"].(string))
	three, last := s.ids(operator, "sort=due&limit=1&after="+page["next"].(string))
	if got := slices.Concat(one, two, three); !slices.Equal(got, []string{soon, between, late}) || last["next"] != "" {
		t.Errorf("one by one: %v, then %v", got, last["next"])
	}
	first, page := s.ids(operator, "sort=due&waiting_for=alice&limit=2")
	rest, _ := s.ids(operator, "sort=due&waiting_for=alice&limit=2&after="+page["next"].(string))
	if got := slices.Concat(first, rest); !slices.Equal(got, []string{soon, between, late, idle}) {
		t.Errorf("alice's by two: %v", got)
	}
	if back, _ := s.ids(operator, "sort=due&limit=1&before="+last["prev"].(string)); !slices.Equal(back, []string{between}) {
		t.Errorf("back: %v", back)
	}

	ahead.Store(int64(time.Hour))
	for _, when := range []string{"before", "after"} {
		for query, want := range map[string][]string{"overdue&sort=due": {soon, between}, "overdue": {soon, between}} {
			if got, _ := s.ids(operator, query); !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
				t.Errorf("%s %s the violations are noted: %v, want %v", query, when, got, want)
			}
		}
		_, sum := s.ask(operator, "GET", "/v1/summary", "")
		if n := sum["channels"].(map[string]any)["overdue"]; when == "before" && n != 2.0 {
			t.Errorf("%v overdue", n)
		}
		if n := s.hub.SweepExpectations(t.Context()); when == "before" && n != 2 {
			t.Errorf("%d violations were noted", n)
		}
	}
}

// The fullest inbox comes first. It holds what a connected agent was told and has
// not answered: who is away is told when it comes back, and has none.
func TestAgentsWithTheFullestInboxFirst(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent("alice")
	bob, away := s.agent("bob"), s.agent("dave")
	s.agent("carol")
	talk := map[string]string{}
	for _, other := range []string{"bob", "carol", "dave"} {
		talk[other] = s.open("conversation", "alice", other)
	}
	s.hub.Unbind(acker{s.hub}, away)
	for other, n := range map[string]int{"bob": 1, "carol": 3, "dave": 5} {
		for i := range n {
			s.tell(talk[other], "alice", fmt.Sprint(i))
		}
	}
	depths := func(query string) string {
		t.Helper()
		status, page := s.ask(operator, "GET", "/v1/agents?sort=pending&"+query, "")
		if status != http.StatusOK {
			t.Fatalf("%d %v", status, page)
		}
		var list []string
		for _, a := range page["agents"].([]any) {
			a := a.(map[string]any)
			list = append(list, fmt.Sprint(a["passport"].(map[string]any)["name"], " ", a["inbox_depth"]))
		}
		return strings.Join(list, ", ")
	}
	if got := depths(""); got != "carol 3, bob 1, alice 0, dave 0" {
		t.Errorf("by inbox: %s", got)
	}
	if got := depths("limit=1"); got != "carol 3" {
		t.Errorf("the first: %s", got)
	}
	s.tell(talk["carol"], "carol", "read")
	s.tell(talk["bob"], "alice", "more")
	s.tell(talk["bob"], "alice", "and more")
	if got := depths("limit=2"); got != "bob 3, carol 2" {
		t.Errorf("after an answer: %s", got)
	}
	_, page := s.ask(operator, "GET", "/v1/channels/"+talk["bob"]+"/events?limit=1000", "")
	events := page["events"].([]any)
	if err := s.hub.Ack(t.Context(), bob, talk["bob"], events[len(events)-1].(map[string]any)["envelope_id"].(string)); err != nil {
		t.Fatal(err)
	}
	if got := depths(""); got != "carol 2, alice 0, bob 0, dave 0" {
		t.Errorf("after a receipt: %s", got)
	}
}

// Tasks page both ways, the newest first if that is asked for, in the states that
// are named.
func TestTasksPageBothWays(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	alice := s.agent("alice")
	states := []task.State{task.Created, task.Running, task.Failed, task.Completed, task.Running, task.Failed, task.Created}
	for i, state := range states {
		if err := s.hub.ObserveTask(t.Context(), task.Task{ID: fmt.Sprint("t", i), Owner: alice, State: state, CreatedAt: time.Now()}, nil, hub.MirrorOff); err != nil {
			t.Fatal(err)
		}
	}
	list := func(query string) (ids string, page map[string]any) {
		t.Helper()
		status, page := s.ask(operator, "GET", "/v1/tasks?"+query, "")
		if status != http.StatusOK {
			t.Fatalf("%s: %d %v", query, status, page)
		}
		for _, found := range page["tasks"].([]any) {
			ids += found.(map[string]any)["task_id"].(string) + " "
		}
		return strings.TrimSpace(ids), page
	}
	for query, want := range map[string]string{
		"":                            "t0 t1 t2 t3 t4 t5 t6",
		"newest":                      "t6 t5 t4 t3 t2 t1 t0",
		"state=running":               "t1 t4",
		"state=running&state=failed":  "t1 t2 t4 t5",
		"newest&state=created&state=": "t6 t0",
		"state=completed&state=failed&newest&limit=2": "t5 t3",
		"state=cancelled&state=expired":               "",
	} {
		if got, _ := list(query); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	for query, want := range map[string][]string{
		"limit=3&":        {"t0 t1 t2", "t3 t4 t5", "t6"},
		"limit=3&newest&": {"t6 t5 t4", "t3 t2 t1", "t0"},
		"limit=2&newest&state=running&state=failed&": {"t5 t4", "t2 t1"},
	} {
		var got []string
		after, prev := "", ""
		for {
			ids, page := list(query + after)
			if got, prev = append(got, ids), page["prev"].(string); page["next"] == "" {
				break
			}
			after = "after=" + page["next"].(string)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s onward: %q, want %q", query, got, want)
		}
		for i := len(want) - 2; i >= 0; i-- {
			ids, page := list(query + "before=" + prev)
			if prev = page["prev"].(string); ids != want[i] || (prev == "") != (i == 0) {
				t.Errorf("%s back: %q (prev %q), want %q", query, ids, prev, want[i])
			}
		}
	}
}
