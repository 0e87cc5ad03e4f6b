package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/parley-hub/parley/adapter/branch"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/server/access"
	"github.com/parley-hub/parley/server/api"
)

func TestMethods(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, tc := range []struct {
		method, path, allow string
		want                int
	}{
		{"PUT", "/v1/channels", "GET, POST", 405},
		{"POST", "/v1/channels/x", "GET, DELETE", 405},
		{"GET", "/v1/channels/x/close", "POST", 405},
		{"DELETE", "/v1/health", "GET", 405},
		{"GET", "/v1/nothing", "", 404},
		{"GET", "/v1/", "", 404},
		{"HEAD", "/v1/events?follow=true", "", 200},
	} {
		resp := s.do(operator, tc.method, tc.path, "")
		raw := readAll(t, resp)
		if resp.StatusCode != tc.want || resp.Header.Get("Allow") != tc.allow {
			t.Errorf("%s %s: %s, Allow %q: %s", tc.method, tc.path, resp.Status, resp.Header.Get("Allow"), raw)
		}
		if tc.want >= 400 && resp.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s %s: %s", tc.method, tc.path, raw)
		}
	}
}

func TestFollowersAreBounded(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *api.Config) { c.Limits.Followers = 1 })
	f := s.follow(operator, "/v1/audit")
	status, p := s.ask(operator, "GET", "/v1/events?follow", "")
	if status != http.StatusServiceUnavailable || !strings.Contains(p["detail"].(string), "limits.followers") {
		t.Errorf("%d %v", status, p)
	}
	_ = f.body.Close()
	s.awaitFollowers(0)
	_ = s.follow(operator, "/v1/events").body.Close()
}

func TestPagesAreBounded(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *api.Config) { c.Limits.Page = 2 })
	for _, name := range []string{"alice", "bob", "carol"} {
		s.agent(name)
	}
	for _, limit := range []string{"", "?limit=2", "?limit=3", "?limit=1000000"} {
		if _, page := s.ask(operator, "GET", "/v1/agents"+limit, ""); len(page["agents"].([]any)) != 2 || page["next"] == "" {
			t.Errorf("%s: %v", limit, page)
		}
	}
}

// A silent stream is kept alive, and ends when the server drains.
func TestSilentStreams(t *testing.T) {
	t.Parallel()
	stopping := make(chan struct{})
	s := newSite(t, func(c *api.Config) {
		c.Limits.KeepAlive = time.Millisecond
		c.Stopping = func(context.Context) <-chan struct{} { return stopping }
	})
	f := s.follow(operator, "/v1/events")
	defer f.body.Close()
	for kept := false; !kept; kept = f.scan.Text() == ": keepalive" {
		if !f.scan.Scan() {
			t.Fatal(f.scan.Err())
		}
	}
	close(stopping)
	if got, ok := f.try(); ok {
		t.Errorf("after the end came %+v", got)
	}
}

// Positions that are gone are answered with a gap on every stream, which then
// goes on from the end.
func TestGaps(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent("alice")
	s.agent("bob")
	ch := s.open("conversation", "alice", "bob")
	for path, after := range map[string]string{
		"/v1/events": "9.9.0", "/v1/events?label=team=red": "9.9.0", "/v1/audit": "9.9", "/v1/channels/" + ch + "/events": "9.9.9",
	} {
		f := s.follow(operator, path, "Last-Event-ID", after)
		got := f.next()
		var gap struct{ Reason, Head string }
		if err := json.Unmarshal([]byte(got.data), &gap); err != nil || got.name != "gap" || gap.Reason == "" || gap.Head != got.id {
			t.Errorf("%s: %+v", path, got)
		}
		_ = f.body.Close()
		again := s.follow(operator, path, "Last-Event-ID", got.id)
		if strings.Contains(path, "audit") {
			s.ask(operator, "POST", "/v1/channels", `{"creator":"alice","type":"conversation","participants":["bob"]}`)
		} else {
			s.say(operator, ch, "alice", "after the gap in "+path)
		}
		if next := again.next(); next.name == "gap" || !strings.Contains(next.data, "after the gap in "+path) && !strings.Contains(next.data, "channel_created") {
			t.Errorf("%s goes on with %+v", path, next)
		}
		_ = again.body.Close()
	}
	for _, path := range []string{"/v1/events?after=9.9.0", "/v1/events?after=9", "/v1/audit?follow&after=x"} {
		if status, p := s.ask(operator, "GET", path, ""); status != 410 && status != 400 {
			t.Errorf("%s: %d %v", path, status, p)
		}
	}
}

// FuzzRequests asks for whatever comes to mind: it is answered with JSON and
// never with a fault of the hub.
func FuzzRequests(f *testing.F) {
	s := newSite(f)
	s.agent("alice")
	s.agent("bob")
	ch := s.open("conversation", "alice", "bob")
	paths := []string{
		"GET /v1/channels", "POST /v1/channels", "GET /v1/channels/" + ch, "POST /v1/channels/" + ch + "/events", "GET /v1/channels/" + ch + "/events",
		"GET /v1/events", "GET /v1/agents", "GET /v1/tasks", "POST /v1/tasks/t/cancel", "GET /v1/audit", "GET /v1/channels/" + ch + "/views/full_transcript",
		"GET /v1/channels/" + ch + "/views/windowed_summary", "GET /v1/agents/alice", "POST /v1/channels/none/close",
	}
	for i := range paths {
		for _, query := range []string{
			"", "limit=0", "limit=-1&after=%00", "after=1.1.1&as=alice", "after=1.1", "follow=maybe", "follow", "label==", "label=a&label=b=c",
			"state=x&type=%ff", "since=now&until=2026-03-09T10:15:42Z", "kind=robot&query=%25&capability=", "recent_n=99999999999999999999", "newest=7&agent=bob",
		} {
			f.Add(uint8(i), query, "")
		}
		for _, body := range []string{
			`{}`, `{"sender":"alice","text":"x"}`, `{"sender":"alice","text":null,"event_type":"","event_data":{}}`, `{"sender":"alice","event_type":"a.b","event_data":{"n":1e999}}`,
			`{"creator":"alice","type":"workflow","participants":["bob"],"knobs":{"graph":{}}}`, `{"creator":"alice","type":"","participants":[],"ttl":-1}`, `[`, `null`, `"x"`,
			`{"sender":"alice","text":"` + "\xff" + `"}`, `{"sender":"alice","text":"x","text":"y"}`, `{"sender":"alice","text":"x","ttl_seconds":-9223372036854775808}`,
			`{"sender":"alice","text":"x","audience":["alice","alice"],"priority":"99"}`, `{"reason":"` + strings.Repeat("r", 5000) + `"}`, strings.Repeat("[", 20000),
		} {
			f.Add(uint8(i), "", body)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, query, body string) {
		method, path, _ := strings.Cut(paths[int(which)%len(paths)], " ")
		r := httptest.NewRequest(method, "http://hub"+path, strings.NewReader(body))
		r.URL.RawQuery = query
		ctx, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		w := httptest.NewRecorder()
		s.v1.ServeHTTP(w, r.WithContext(access.With(ctx, access.Principal{Role: access.Operator})))
		if w.Code >= 500 && w.Code != http.StatusServiceUnavailable {
			t.Fatalf("%s %s?%s with %q: %d %s", method, path, query, body, w.Code, w.Body)
		}
		if w.Header().Get("Content-Type") != "text/event-stream" && !json.Valid(w.Body.Bytes()) {
			t.Fatalf("%s %s?%s with %q: %d %s", method, path, query, body, w.Code, w.Body)
		}
	})
}

func TestChannelPagesTakeBothForms(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := strings.Repeat("0", 32)
	for after, want := range map[string]int{
		id: http.StatusOK, id + "." + id: http.StatusOK,
		id + ".": http.StatusBadRequest, "." + id: http.StatusBadRequest, id + "." + id + "." + id: http.StatusBadRequest,
	} {
		if status, body := s.ask(operator, "GET", "/v1/channels?after="+after, ""); status != want {
			t.Errorf("after=%s: %d %v", after, status, body)
		}
	}
	if status, body := s.ask(operator, "GET", "/v1/tasks?after="+id+"."+id, ""); status != http.StatusBadRequest {
		t.Errorf("a task after a channel of a home: %d %v", status, body)
	}
}

func TestTypesOfOneDialectAreNotOpened(t *testing.T) {
	t.Parallel()
	s := newSiteOn(t, hub.Options{Adapters: []channel.Adapter{branch.New(branch.Options{})}})
	s.agent("alice")
	s.agent("bob")
	status, p := s.ask(operator, "POST", "/v1/channels", `{"creator":"alice","type":"branch","participants":["bob"]}`)
	if detail, _ := p["detail"].(string); status != http.StatusConflict || !strings.Contains(detail, "through the hpd dialect only") {
		t.Errorf("%d %v", status, p)
	}
}
