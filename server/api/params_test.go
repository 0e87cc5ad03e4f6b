package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/task"
)

// What is no place in a list, no position and no number is refused, with what
// would be right.
func TestParametersAreJudged(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent("alice")
	s.agent("bob")
	ch := s.open("conversation", "alice", "bob")
	at := "/v1/channels/" + ch
	lists := []string{"/v1/channels", "/v1/channels?newest", "/v1/agents", "/v1/tasks", "/v1/audit"}
	for _, path := range lists {
		for _, after := range []string{"nonsense", "1.2.3", strings.ToUpper(ch[:31]) + "F", ch[:31], ch + "0", "%00"} {
			s.refused(path, "after="+after, "is not a position in this list; send what the page before said as next")
		}
		gone := strings.Repeat("0", 32)
		if status, p := s.ask(operator, "GET", with(path, "after="+gone), ""); status != http.StatusOK {
			t.Errorf("%s after one that is gone: %d %v", path, status, p)
		}
	}
	for _, path := range append(lists, at+"/events", "/v1/events", at+"/events?follow", "/v1/events?follow", "/v1/audit?follow") {
		for _, limit := range []string{"0", "-1", "x", "1.5", "99999999999999999999"} {
			s.refused(path, "limit="+limit, "is not a number from 1 to 2147483647")
		}
	}
	for path, form := range map[string]string{
		at + "/events": "epoch.incarnation.sequence", at + "/events?follow": "epoch.incarnation.sequence",
		"/v1/events": "epoch.offset.n", "/v1/events?follow": "epoch.offset.n", "/v1/audit?follow": "epoch.offset",
	} {
		for _, after := range []string{"nonsense", "1", "1.x.2", "-1.0.0", ch} {
			s.refused(path, "after="+after, form)
		}
	}
	if _, p := s.ask(operator, "GET", at+"/views/nonsense", ""); !strings.HasSuffix(p["detail"].(string), "windowed_summary, threaded") {
		t.Errorf("the views there are: %v", p)
	}
	for _, view := range []string{"windowed_summary", "threaded"} {
		s.refused(at+"/views/"+view, "recent_n=none", "is not a number from 1")
	}
	for _, name := range []string{"since", "until"} {
		s.refused("/v1/audit", name+"=yesterday", "write it like 2026-03-09T10:15:42Z")
	}
}

// with adds a parameter to a path that may have some.
func with(path, param string) string {
	if strings.Contains(path, "?") {
		return path + "&" + param
	}
	return path + "?" + param
}

// refused asks for what must be answered with a problem that says what is right.
func (s *site) refused(path, param, says string) {
	s.t.Helper()
	resp := s.do(operator, "GET", with(path, param), "")
	if resp.StatusCode == http.StatusOK {
		_ = resp.Body.Close()
		s.t.Errorf("%s %s is accepted", path, param)
		return
	}
	raw := string(readAll(s.t, resp))
	if resp.StatusCode != http.StatusBadRequest || !strings.Contains(raw, `"code":"invalid"`) || !strings.Contains(raw, says) {
		s.t.Errorf("%s %s: %s %s, want %q", path, param, resp.Status, raw, says)
	}
}

// An agent's key lists its own tasks, and those of the channels it takes part
// in, whoever owns them.
func TestTasksAnAgentSees(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	alice, bob, eve := s.agent("alice"), s.agent("bob"), s.agent("eve")
	shared, private := s.open("conversation", "alice", "bob"), s.open("conversation", "bob", "eve")
	for _, task := range []task.Task{
		{ID: "a-alone", Owner: alice},
		{ID: "b-alone", Owner: bob},
		{ID: "a-shared", Owner: alice, Channel: shared},
		{ID: "b-shared", Owner: bob, Channel: shared, State: task.Running},
		{ID: "b-private", Owner: bob, Channel: private},
		{ID: "e-private", Owner: eve, Channel: private},
	} {
		task.CreatedAt = time.Now()
		if err := s.hub.ObserveTask(t.Context(), task, nil, hub.MirrorOff); err != nil {
			t.Fatal(err)
		}
	}
	everything := "a-alone b-alone a-shared b-shared b-private e-private"
	for _, tc := range []struct{ as, query, want string }{
		{operator, "", everything},
		{"reader", "", everything},
		{"agent:alice", "", "a-alone a-shared b-shared"},
		{"agent:bob", "", "b-alone a-shared b-shared b-private e-private"},
		{"agent:eve", "", "b-private e-private"},
		{"agent:alice", "owner=alice", "a-alone a-shared"},
		{"agent:alice", "owner=bob", "b-shared"},
		{"agent:alice", "owner=eve", ""},
		{"agent:alice", "channel=" + shared, "a-shared b-shared"},
		{"agent:alice", "channel=" + private, ""},
		{"agent:alice", "state=running", "b-shared"},
	} {
		for _, limit := range []string{"1", "2", "50"} {
			got, after := []string{}, ""
			for {
				status, page := s.ask(tc.as, "GET", "/v1/tasks?limit="+limit+"&"+tc.query+after, "")
				if status != http.StatusOK {
					t.Fatalf("%+v: %d %v", tc, status, page)
				}
				for _, task := range page["tasks"].([]any) {
					got = append(got, task.(map[string]any)["task_id"].(string))
				}
				if page["next"] == "" {
					break
				}
				after = "&after=" + page["next"].(string)
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("%s %s by %s: got %q, want %q", tc.as, tc.query, limit, got, tc.want)
			}
		}
	}
	for path, want := range map[string]int{"b-shared": 200, "a-alone": 200, "b-private": 403, "b-alone": 403} {
		if status, p := s.ask("agent:alice", "GET", "/v1/tasks/"+path, ""); status != want {
			t.Errorf("%s: %d %v, want %d", path, status, p, want)
		}
	}
}

// The key of an agent that nobody has registered concerns nothing: it must not
// be taken for one that sees all.
func TestKeyOfAnUnregisteredAgent(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	alice := s.agent("alice")
	s.agent("bob")
	ch := s.open("conversation", "alice", "bob")
	if err := s.hub.ObserveTask(t.Context(), task.Task{ID: "scan", Owner: alice, Channel: ch}, nil, hub.MirrorOff); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"/v1/channels", "/v1/channels?agent=alice", "/v1/channels/" + ch, "/v1/channels/" + ch + "/events", "/v1/channels/" + ch + "/messages",
		"/v1/channels/" + ch + "/views/full_transcript", "/v1/events", "/v1/events?follow", "/v1/tasks", "/v1/tasks/scan", "/v1/audit",
	} {
		resp := s.do("agent:ghost", "GET", path, "")
		if resp.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %s", path, resp.Status)
		}
		_ = resp.Body.Close()
	}
}
