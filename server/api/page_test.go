package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/server/api"
	"github.com/parley-hub/parley/task"
)

// post stores a text of some size, past the bound of a request.
func (s *site) post(ch, sender string, size int) {
	s.t.Helper()
	_, err := s.hub.Post(s.t.Context(), &envelope.Envelope{
		Channel: ch, Sender: sender, Type: envelope.TypeText, Data: fmt.Appendf(nil, `{"text":%q}`, strings.Repeat("x", size)),
	}, nil)
	if err != nil {
		s.t.Fatal(err)
	}
}

// A page ends when it is large, however few its entries are, and the pages
// together are everything once.
func TestPagesAreBoundedInBytes(t *testing.T) {
	t.Parallel()
	const entry = 16 << 10
	s := newSite(t, func(c *api.Config) { c.Limits.PageBytes = 4 * entry })
	alice := s.agent("alice")
	s.agent("bob")
	s.unbounded("bob")
	var channels, tasks, agents []string
	padding := strings.Repeat("x", entry-1000)
	for i := range 9 {
		opened, err := s.hub.Open(t.Context(), hub.Opening{
			Creator: alice, Type: "conversation", Participants: []string{s.id("bob")}, Knobs: fmt.Appendf(nil, `{"pad":%q}`, padding[i:]),
		})
		if err != nil {
			t.Fatal(err)
		}
		channels = append(channels, opened.ID)
		task := task.Task{ID: fmt.Sprint("task-", i), Owner: alice, State: task.Running, Progress: fmt.Appendf(nil, `{"pad":%q}`, padding)}
		if err := s.hub.ObserveTask(t.Context(), task, nil, hub.MirrorOff); err != nil {
			t.Fatal(err)
		}
		tasks = append(tasks, task.ID)
		skilled := padding[i:]
		p, err := s.hub.Register(t.Context(), hub.Registration{
			Passport: &identity.Passport{Name: fmt.Sprint("agent-", i), Auth: identity.Auth{Scheme: identity.SchemeNone}}, Skill: &skilled,
		})
		if err != nil {
			t.Fatal(err)
		}
		agents = append(agents, p.ID())
	}
	var events []string
	for i := range 9 {
		s.post(channels[0], alice, entry-1000)
		events = append(events, fmt.Sprint(i+4))
	}
	for _, tc := range []struct {
		path, list string
		name       func(entry map[string]any) string
		want       []string
	}{
		{"/v1/channels/" + channels[0] + "/events", "events", func(e map[string]any) string { return fmt.Sprint(e["sequence"]) }, append([]string{"1", "2", "3"}, events...)},
		{"/v1/events?type=conversation", "events", nil, nil},
		{"/v1/channels", "channels", func(e map[string]any) string { return e["channel_id"].(string) }, channels},
		{"/v1/channels?newest", "channels", func(e map[string]any) string { return e["channel_id"].(string) }, reversed(channels)},
		{"/v1/tasks", "tasks", func(e map[string]any) string { return e["task_id"].(string) }, tasks},
		{"/v1/agents", "agents", func(e map[string]any) string { return e["passport"].(map[string]any)["agent_id"].(string) }, append([]string{alice, s.id("bob")}, agents...)},
	} {
		t.Run(tc.path, func(t *testing.T) {
			t.Parallel()
			got, sizes := []string{}, []int{}
			after := ""
			for {
				raw := readAll(t, s.do(operator, "GET", with(tc.path, "limit=1000"+after), ""))
				var page map[string]json.RawMessage
				if err := json.Unmarshal(raw, &page); err != nil {
					t.Fatalf("%v: %.200s", err, raw)
				}
				var list []map[string]any
				if err := json.Unmarshal(page[tc.list], &list); err != nil {
					t.Fatalf("%v: %.200s", err, raw)
				}
				for _, entry := range list {
					if tc.name != nil {
						got = append(got, tc.name(entry))
					}
				}
				sizes = append(sizes, len(raw))
				var next string
				if err := json.Unmarshal(page["next"], &next); err != nil {
					t.Fatal(err)
				}
				if more, says := page["more"]; next == "" || says && string(more) == "false" {
					break
				}
				after = "&after=" + next
			}
			if tc.name != nil && !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
			if len(sizes) < 3 || slices.Max(sizes) > 6*entry {
				t.Errorf("pages of %v bytes", sizes)
			}
		})
	}
}

func (s *site) id(name string) string {
	s.t.Helper()
	p, err := s.hub.Agent(name)
	if err != nil {
		s.t.Fatal(err)
	}
	return p.ID()
}

func reversed(list []string) []string {
	list = slices.Clone(list)
	slices.Reverse(list)
	return list
}

// A view of a log that is too long to be held is refused, with what would do;
// one that shows only the end of it is not.
func TestViewsAreBounded(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *api.Config) { c.Limits.View = 64 << 10 })
	alice := s.agent("alice")
	bob := s.agent("bob")
	s.unbounded("bob")
	s.unbounded("alice")
	ch := s.open("conversation", "alice", "bob")
	at := "/v1/channels/" + ch
	for range 70 { // about 100 KiB with what each takes besides
		s.post(ch, alice, 1_000)
	}
	for _, word := range []string{"one", "two", "three"} {
		s.say(operator, ch, "bob", word)
	}
	for _, path := range []string{"/views/full_transcript", "/views/named_transcript", "/views/threaded", "/messages", "/views/windowed_summary?recent_n=1000"} {
		status, p := s.ask(operator, "GET", at+path, "")
		if status != http.StatusRequestEntityTooLarge || p["code"] != "too_large" || !strings.Contains(p["detail"].(string), at+"/events") {
			t.Errorf("%s: %d %v", path, status, p)
		}
	}
	for _, name := range []string{"windowed_summary", "named_windowed_summary"} {
		status, shown := s.ask(operator, "GET", at+"/views/"+name+"?as=bob&recent_n=2", "")
		who := alice + ", " + bob
		if name == "named_windowed_summary" {
			who = "alice, bob"
		}
		want := []any{
			map[string]any{"role": "summary", "text": "Earlier in this channel: 71 messages from " + who + ".", "elided": 71.0},
			map[string]any{"role": "assistant", "text": "two"},
			map[string]any{"role": "assistant", "text": "three"},
		}
		if status != http.StatusOK || fmt.Sprint(shown["events"]) != fmt.Sprint(want) {
			t.Errorf("%s: %d %.1000v", name, status, shown)
		}
	}
}

// A list of agents pages both ways, in each of its orders; an agent that is gone
// keeps its place in the order of registration.
func TestAgentsPageBothWays(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, name := range []string{"dora", "alice", "eve", "bob", "carl"} {
		s.agent(name)
	}
	names := func(query string) (list []string, page map[string]any) {
		status, page := s.ask(operator, "GET", "/v1/agents?limit=2&"+query, "")
		if status != http.StatusOK {
			t.Fatalf("%s: %d %v", query, status, page)
		}
		for _, a := range page["agents"].([]any) {
			list = append(list, a.(map[string]any)["passport"].(map[string]any)["name"].(string))
		}
		return list, page
	}
	for query, want := range map[string][]string{"": {"dora", "alice", "eve", "bob", "carl"}, "sort=name&": {"alice", "bob", "carl", "dora", "eve"}} {
		first, page := names(query)
		second, page2 := names(query + "after=" + page["next"].(string))
		third, page3 := names(query + "after=" + page2["next"].(string))
		if got := slices.Concat(first, second, third); !slices.Equal(got, want) || page["prev"] != "" || page3["next"] != "" {
			t.Errorf("%q onward: %v (prev %v, next %v), want %v", query, got, page["prev"], page3["next"], want)
		}
		back, page2 := names(query + "before=" + page3["prev"].(string))
		begin, page := names(query + "before=" + page2["prev"].(string))
		if !slices.Equal(back, second) || !slices.Equal(begin, first) || page["prev"] != "" {
			t.Errorf("%q back: %v, %v (prev %v)", query, back, begin, page["prev"])
		}
		if again, _ := names(query + "after=" + page["next"].(string)); !slices.Equal(again, second) {
			t.Errorf("%q onward again: %v", query, again)
		}
	}
	gone := s.id("eve")
	if err := s.hub.Unregister(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	if list, _ := names("after=" + gone); !slices.Equal(list, []string{"bob", "carl"}) {
		t.Errorf("behind one that is gone: %v", list)
	}
	if list, _ := names("before=" + gone); !slices.Equal(list, []string{"dora", "alice"}) {
		t.Errorf("in front of one that is gone: %v", list)
	}
	if status, p := s.ask(operator, "GET", "/v1/agents?before=nobody", ""); status != http.StatusBadRequest {
		t.Errorf("a place that is none: %d %v", status, p)
	}
}
