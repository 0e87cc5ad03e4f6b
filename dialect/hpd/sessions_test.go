package hpd_test

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-hub/parley/adapter/branch"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/hpd"
)

func TestSessions(t *testing.T) {
	t.Parallel()
	spec.Check(t, "hpd-events#50: without a body, a generated id and the branch main", func(t *spec.T) {
		r := newRig(t, hpd.Config{})
		a := r.do("POST", "/sessions", nil)
		t.Equal(a.status, 201)
		id, _ := a.object()["id"].(string)
		t.True(regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(id), "id %q has 32 hex digits", id)
		list := r.do("GET", "/sessions/"+id+"/branches", nil).list()
		t.Equal(len(list), 1)
		t.Equal(list[0]["id"], "main")
		t.Equal(list[0]["name"], "main")
	})
	spec.Check(t, "hpd-events#51 hpd-events#52: an explicit id, and where the session is", func(t *spec.T) {
		r := newRig(t, hpd.Config{})
		a := r.do("POST", "/sessions", object{"sessionId": "s-7"})
		t.Equal(a.status, 201)
		t.Equal(a.object()["id"], "s-7")
		t.Equal(a.header.Get("Location"), "/hpd/sessions/s-7")
		t.Equal(r.do("GET", "/sessions/s-7", nil).object()["id"], "s-7")
	})
	spec.Check(t, "hpd-events#53: a second session of an id is refused and destroys nothing", func(t *spec.T) {
		r := newRig(t, hpd.Config{})
		r.do("POST", "/sessions", object{"sessionId": "s-7", "metadata": object{"a": 1}})
		a := r.do("POST", "/sessions", object{"sessionId": "s-7", "metadata": object{"b": 2}})
		t.Equal(a.status, 409)
		t.Equal(a.code(), "CreateSessionError")
		t.Equal(r.do("GET", "/sessions/s-7", nil).object()["metadata"], any(object{"a": 1.0}))
	})
	spec.Check(t, "hpd-events#54: metadata is always an object", func(t *spec.T) {
		r := newRig(t, hpd.Config{})
		id := r.session()
		t.Contains(string(r.do("GET", "/sessions/"+id, nil).raw), `"metadata":{}`)
		t.Contains(string(r.do("GET", "/sessions", nil).raw), `"metadata":{}`)
		t.Contains(string(r.do("POST", "/sessions/search", "{}").raw), `"metadata":{}`)
	})
	spec.Check(t, "hpd-events#55 hpd-events#56: a change merges, null removes a key, null metadata changes nothing", func(t *spec.T) {
		r := newRig(t, hpd.Config{})
		r.do("POST", "/sessions", object{"sessionId": "s", "metadata": object{"a": 1, "b": 2}})
		a := r.do("PATCH", "/sessions/s", `{"metadata":{"a":null,"c":[3]}}`)
		t.Equal(a.status, 200)
		t.Equal(a.object()["metadata"], any(object{"b": 2.0, "c": []any{3.0}}))
		for _, body := range []string{`{"metadata":null}`, `{}`} {
			t.Equal(r.do("PATCH", "/sessions/s", body).object()["metadata"], any(object{"b": 2.0, "c": []any{3.0}}))
		}
		t.Equal(r.do("PATCH", "/sessions/s", `{"metadata":{"b":null,"c":null}}`).object()["metadata"], any(object{}))
		t.Equal(r.do("PATCH", "/sessions/nobody", `{}`).status, 404)
	})
	spec.Check(t, "hpd-events#57: search by string form, every key, pages of 50", func(t *spec.T) {
		r := newRig(t, hpd.Config{})
		for range 52 {
			r.do("POST", "/sessions", object{"metadata": object{"n": 5, "k": "x"}})
		}
		r.do("POST", "/sessions", object{"sessionId": "other", "metadata": object{"n": 5, "k": "y"}})
		t.Equal(len(r.do("POST", "/sessions/search", `{}`).list()), 50)
		t.Equal(len(r.do("POST", "/sessions/search", `{"metadata":{"n":"5","k":"x"},"limit":100}`).list()), 52)
		t.Equal(len(r.do("POST", "/sessions/search", `{"metadata":{"n":"5","k":"x"},"offset":50}`).list()), 2)
		t.Equal(r.do("POST", "/sessions/search", `{"metadata":{"n":5,"k":"y"}}`).list()[0]["id"], any("other"))
		t.Equal(len(r.do("POST", "/sessions/search", `{"metadata":{"missing":1}}`).list()), 0)
	})
	spec.Check(t, "hpd-events#58: lists sort and page", func(t *spec.T) {
		r := newRig(t, hpd.Config{})
		for _, id := range []string{"a", "b", "c"} {
			r.do("POST", "/sessions", object{"sessionId": id})
		}
		r.do("PATCH", "/sessions/a", `{"metadata":{"x":1}}`)
		order := func(query string) string {
			var ids []string
			for _, s := range r.do("GET", "/sessions"+query, nil).list() {
				ids = append(ids, s["id"].(string))
			}
			return strings.Join(ids, "")
		}
		t.Equal(order(""), "acb")
		t.Equal(order("?sortDirection=asc"), "bca")
		t.Equal(order("?sortBy=createdAt&sortDirection=asc"), "abc")
		t.Equal(order("?sortBy=createdAt&limit=1&offset=1"), "b")
		t.Equal(r.do("GET", "/sessions?sortBy=name", nil).status, 400)
		t.Equal(r.do("GET", "/sessions?limit=x", nil).status, 400)
	})
}

func TestIDs(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	r := newRig(t, hpd.Config{})
	for _, id := range []string{"a b", "a//b", "../x", "a/./b", strings.Repeat("x", 201), "ü", "search", "a/branches", "a/content/b", "/a", "a/", " a", "a\n"} {
		a := r.do("POST", "/sessions", object{"sessionId": id})
		c.Equal(a.status, 400)
		c.Equal(a.code(), "CreateSessionError")
	}
	s := r.session()
	for _, id := range []string{"a/events", "events", "x/runs/y", "a/events/live", "b?c", "..", "a/../b", "complete", " b", "b\t"} {
		a := r.do("POST", "/agents/x/sessions/"+s+"/branches", object{"branchId": id})
		c.Equal(a.status, 400)
		c.Equal(a.code(), "CreateBranchError")
	}
	fork := r.do("POST", "/agents/x/sessions/"+s+"/branches/main/fork", object{"newBranchId": "b ", "fromMessageId": "m"})
	c.Equal([]any{fork.status, fork.code()}, []any{400, "ForkBranchError"})
	c.Equal(len(r.do("GET", "/sessions/"+s+"/branches", nil).list()), 1)
	for _, path := range []string{"/sessions/" + s + "/branches/%2e%2e", "/sessions/%2e%2e%2f" + s, "/nothing", "/sessions/" + s + "/branches/main/nothing", "/evals/scores"} {
		a := r.do("GET", path, nil)
		c.Equal(a.status, 404)
		c.Equal(a.header.Get("Content-Type"), "application/problem+json")
	}
	c.Equal(r.do("PUT", "/sessions", nil).status, 405)
	c.Equal(r.do("PUT", "/sessions", nil).header.Get("Allow"), "POST, GET")
	c.Equal(r.do("POST", "/sessions", `{"sessionId":`).status, 400)
	c.Equal(r.do("POST", "/sessions", object{"metadata": object{"x": strings.Repeat("y", 20_000)}}).status, 413)
}

func TestBranches(t *testing.T) {
	t.Parallel()
	spec.Check(t, "hpd-events#61: a blank id is generated and is the name", func(t *spec.T) {
		r := newRig(t, hpd.Config{})
		s := r.session()
		for _, body := range []any{object{"branchId": " "}, nil, object{}} {
			a := r.do("POST", "/agents/x/sessions/"+s+"/branches", body)
			t.Equal(a.status, 201)
			id := a.object()["id"].(string)
			t.Equal(a.object()["name"], any(id))
			t.Equal(a.header.Get("Location"), "/hpd/sessions/"+s+"/branches/"+id)
			t.Equal(r.do("GET", "/sessions/"+s+"/branches/"+id, nil).object(), a.object())
		}
	})
	t.Run("a branch says under which id /v1 knows it", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, hpd.Config{})
		s := r.session()
		id := r.do("GET", "/sessions/"+s+"/branches/main", nil).header.Get("Parley-Channel")
		m, err := r.hub.Channel(t.Context(), id)
		if err != nil {
			t.Fatalf("channel %q: %v", id, err)
		}
		if want := string(branch.Knobs{Session: s, Branch: "main"}.Bytes()); string(m.Knobs) != want {
			t.Errorf("knobs %s, want %s", m.Knobs, want)
		}
	})
	t.Run("a body may say a branch's id under both names", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		r := newRig(t, hpd.Config{})
		for _, name := range []string{"branches", "threads"} {
			a := r.do("POST", "/agents/x/sessions/"+r.session()+"/"+name, object{"branchId": "both", "threadId": "both"})
			c.Equal(a.status, 201)
			c.Equal(a.object()["id"], any("both"))
		}
	})
	spec.Check(t, "hpd-events#62 hpd-events#63: a taken id is 409, an unknown session 404", func(t *spec.T) {
		r := newRig(t, hpd.Config{})
		s := r.session()
		t.Equal(r.do("POST", "/agents/x/sessions/"+s+"/branches", object{"branchId": "main"}).status, 409)
		a := r.do("POST", "/agents/x/sessions/nobody/branches", object{"branchId": "b"})
		t.Equal(a.status, 404)
		t.Equal(a.header.Get("Content-Type"), "application/problem+json")
	})
	spec.Check(t, "hpd-events#83: the display name falls back and is cut to 30 characters", func(t *spec.T) {
		r := newRig(t, hpd.Config{Producers: map[string]hpd.Producer{"echo": hpd.Echo{}}})
		s := r.session()
		long := strings.Repeat("é", 31)
		r.do("POST", "/agents/x/sessions/"+s+"/branches", object{"branchId": "b", "name": "b"})
		name := func(change any) any { return r.do("PATCH", "/sessions/"+s+"/branches/b", change).object()["name"] }
		t.Equal(name(object{"name": "Tone"}), any("Tone"))
		t.Equal(name(object{"name": ""}), any("b"))
		t.Equal(name(object{"description": long}), any(strings.Repeat("é", 30)+"..."))
		t.Equal(name(object{"description": long[:60]}), any(long[:60]))
		t.Equal(name(object{"description": ""}), any("b"))
		r.run("echo", s, "b", "what the user said first, at length")
		t.Equal(name(object{}), any("what the user said first, at l..."))
	})
	spec.Check(t, "hpd-events#84: a change appends BRANCH_METADATA_UPDATED with all four fields", func(t *spec.T) {
		r := newRig(t, hpd.Config{})
		s := r.session()
		r.do("POST", "/agents/x/sessions/"+s+"/branches", object{"branchId": "b", "tags": []string{"t"}, "metadata": object{"k": 1, "gone": 2}})
		a := r.do("PATCH", "/sessions/"+s+"/branches/b", object{"description": "d", "metadata": object{"gone": nil, "n": 3}})
		t.Equal(a.status, 200)
		t.Equal(a.object()["metadata"], any(object{"k": 1.0, "n": 3.0}))
		t.Equal(a.object()["tags"], any([]any{"t"}))
		h := r.history(s, "b")
		t.Equal(types(h), []string{"BRANCH_CREATED", "BRANCH_METADATA_UPDATED", "BRANCH_TREE_UPDATED", "BRANCH_METADATA_UPDATED"})
		last := h[3]
		t.Equal(last["branchMetadata"], any(object{"k": 1.0, "n": 3.0}))
		t.Equal(last["description"], any("d"))
		t.Equal(last["name"], any("b"))
		t.Equal(last["tags"], any([]any{"t"}))
		t.Equal(r.do("PATCH", "/sessions/"+s+"/branches/nobody", "{}").status, 404)
	})
	spec.Check(t, "hpd-events#85: an id with slashes, encoded and raw", func(t *spec.T) {
		r := newRig(t, hpd.Config{})
		s := r.session()
		id := "subagent/scout/run-2"
		t.Equal(r.do("POST", "/agents/x/sessions/"+s+"/branches", object{"branchId": id}).status, 201)
		for _, path := range []string{"subagent%2Fscout%2Frun-2", id, "subagent%2fscout/run-2"} {
			t.Equal(r.do("GET", "/sessions/"+s+"/branches/"+path, nil).object()["id"], any(id))
			t.Equal(len(r.do("GET", "/sessions/"+s+"/branches/"+path+"/events", nil).list()), 3)
			t.Equal(string(r.do("GET", "/agents/x/sessions/"+s+"/threads/"+path+"/runs/active", nil).raw), "null")
		}
	})
}

func TestThreads(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	r := newRig(t, hpd.Config{})
	s := r.session()
	a := r.do("POST", "/agents/x/sessions/"+s+"/threads", object{"threadId": "t", "metadata": object{"kind": "subagent", "parentSessionId": s, "parentThreadId": "main"}})
	c.Equal(a.status, 201)
	c.Equal(a.header.Get("Location"), "/hpd/sessions/"+s+"/threads/t")
	c.Contains(string(a.raw), `"childThreads":[]`, `"parentThreadId":"main"`)
	c.Contains(string(r.do("GET", "/sessions/"+s+"/branches/t", nil).raw), `"childBranches":[]`, `"parentBranchId":"main"`)
	h := r.do("GET", "/sessions/"+s+"/threads/t/events", nil).list()
	c.Equal(types(h), []string{"THREAD_CREATED", "THREAD_METADATA_UPDATED", "THREAD_TREE_UPDATED"})
	c.Equal(h[0]["threadId"], any("t"))
	c.Equal(r.do("POST", "/agents/x/sessions/"+s+"/threads", object{"threadId": "t"}).code(), "CreateThreadError")
	c.Equal(r.do("GET", "/sessions/"+s+"/thread-graph", nil).object()["runtimeChildren"], any([]any{object{"threadId": "t", "parentThreadId": "main"}}))
}

// The error for a member of the wrong type uses JSON's words, not Go's.
func TestABodyOfTheWrongType(t *testing.T) {
	t.Parallel()
	r := newRig(t, hpd.Config{})
	answer := r.do("POST", "/sessions", `{"metadata":5}`)
	if text := string(answer.raw); !strings.Contains(text, `/metadata`) || !strings.Contains(text, "number") || strings.Contains(text, "Go ") {
		t.Errorf("it is answered with %s", text)
	}
}

// A part of the history is selected by the position before it and by its length.
func TestPartsOfAHistory(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	r := newRig(t, hpd.Config{Producers: map[string]hpd.Producer{"echo": hpd.Echo{}}})
	s := r.session()
	watch := r.watch("/agents/echo/sessions/"+s+"/branches/main/events/live", nil)
	r.input("echo", s, "main", "hi")
	frames := watch.frames("BRANCH_RUN_COMPLETED")
	all := r.history(s, "main")
	n := len(all)
	c.True(n > 6, "%d events", n)
	for query, want := range map[string][]object{
		"?limit=3": all[:3], "?after=2": all[2:], "?after=2&limit=3": all[2:5], "?limit=99999999": all, fmt.Sprint("?after=", n-1): all[n-1:],
		fmt.Sprint("?after=", n): {}, "?after=99999999&limit=5": {}, "?after=0": all,
		"?after=" + url.QueryEscape(frames[0].id): all[int(frames[0].event["sequenceNumber"].(float64)):],
	} {
		for _, surface := range []string{"branches", "threads"} {
			got := r.do("GET", "/sessions/"+s+"/"+surface+"/main/events"+query, nil)
			c.Equal(got.status, 200)
			c.Equal(len(got.list()), len(want))
			if surface == "branches" {
				c.Equal(got.list(), want)
			}
		}
	}
	for _, query := range []string{"?limit=0", "?limit=-1", "?limit=x", "?after=-1"} {
		got := r.do("GET", "/sessions/"+s+"/branches/main/events"+query, nil)
		c.Equal([]any{got.status, got.code()}, []any{400, "GetEventsError"})
	}
}
