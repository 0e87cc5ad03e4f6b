package hpd_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gobwas/ws"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/hpd"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/internal/wsconn"
)

func live(agent, session string) string {
	return "/agents/" + agent + "/sessions/" + session + "/branches/main/events/live"
}

func TestLimitOfStreams(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	r := newRig(t, hpd.Config{Limits: hpd.Limits{Streams: 1}})
	at := live("p", r.session())
	w := r.watch(at, nil)
	for _, path := range []string{at, "/agents/p/work"} {
		got := r.do("GET", path, nil)
		c.Equal(got.status, http.StatusServiceUnavailable)
		c.Contains(string(got.raw), "1 streams are open, which is the limit (hpd.limits.streams)")
	}
	w.close()
	eventually(t, func() bool {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.http.URL+"/hpd"+at, nil)
		c.NoError(err)
		res, err := http.DefaultTransport.RoundTrip(req)
		c.NoError(err)
		_ = res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
}

func TestLimitOfSessions(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	r := newRig(t, hpd.Config{Limits: hpd.Limits{Sessions: 2}})
	for range 3 {
		r.session()
	}
	for query, want := range map[string]int{"": 2, "?limit=99": 2, "?limit=1": 1, "?offset=2": 1, "?offset=3": 0} {
		c.Equal(len(r.do("GET", "/sessions"+query, nil).list()), want)
	}
	for query, want := range map[string]string{"?count=true": "3", "?count=true&limit=1&offset=2": "3", "?count=true&offset=9": "3", "?count=false": "", "": ""} {
		c.Equal(r.do("GET", "/sessions"+query, nil).header.Get(hub.HeaderTotal), want)
	}
	c.Equal(r.do("GET", "/sessions?count=3", nil).status, http.StatusBadRequest)
	c.Equal(len(r.do("POST", "/sessions/search", object{"limit": 99}).list()), 2)
	c.Equal(len(r.do("POST", "/sessions/search", object{"offset": 2}).list()), 1)
}

// clarify sends a request as a remote producer.
func (p *remote) clarify(w object, id string) answer {
	ask := object{"type": "CLARIFICATION_REQUEST", "requestId": id, "sourceName": "s", "question": "?"}
	return p.do("POST", p.at(w)+"/requests?runtimeRunId="+w["runtimeRunId"].(string), ask)
}

func (p *remote) clarified(w object, id string) answer {
	return p.do("POST", p.at(w)+"/responses", object{"type": "CLARIFICATION_RESPONSE", "requestId": id, "sourceName": "s", "question": "?", "answer": id})
}

func TestLimitOfRequests(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	r := newRig(t, hpd.Config{Limits: hpd.Limits{Requests: 2}})
	p := r.producer("far")
	r.input("far", r.session(), "main", "hi")
	w := p.work.named("input")
	for i := range 4 {
		c.Equal(p.clarify(w, fmt.Sprint("q", i)).status, 202)
	}
	list := p.do("GET", p.at(w)+"/requests", nil).list()
	c.Equal([]any{len(list), list[0]["requestId"], list[1]["requestId"]}, []any{2, "q0", "q1"})
	for i := range 3 { // requests that are not listed are answered too
		c.Equal(p.clarified(w, fmt.Sprint("q", i)).status, 200)
	}
	c.Equal(p.clarified(w, "q2").code(), "AlreadyResolved")
	// It is not among the last two, once its own end was shown.
	eventually(t, func() bool { return p.clarified(w, "q0").code() == "NotFound" })
	// After a restart the newest requests are taken over, in the order of asking.
	p.work.close()
	r.crash()
	p = r.producer("far")
	c.Equal(p.work.named("input")["resumed"], any(true))
	c.Equal(p.work.named("response")["requestId"], any("q2"))
	c.Equal(p.clarified(w, "q3").status, 200)
	c.Equal(p.work.named("response")["requestId"], any("q3"))
}

func TestLimitOfKeys(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	r := newRig(t, hpd.Config{Limits: hpd.Limits{Keys: 2}})
	p := r.producer("far")
	s := r.session()
	watch := r.watch(live("far", s), nil)
	r.input("far", s, "main", "hi")
	w := p.work.named("input")
	for _, key := range []string{"a", "a", "b", "a", "b", "c", "c", "a"} { // c drops the oldest key, a
		c.Equal(p.publish(w, key, object{"type": "CARGO_LOADED", "key": key}).status, 202)
	}
	for range 3 { // stored events are never written twice
		for _, key := range []string{"d", "e", "f"} {
			c.Equal(p.publish(w, key, delta(key)).status, 202)
		}
	}
	c.Equal(p.complete(w, object{"status": "completed"}).status, 200)
	var keys, texts []any
	for _, e := range watch.until("BRANCH_RUN_COMPLETED") {
		switch e["type"] {
		case "CARGO_LOADED":
			keys = append(keys, e["key"])
		case "TEXT_DELTA":
			texts = append(texts, e["text"])
		}
	}
	c.Equal(keys, []any{"a", "b", "c", "a"})
	c.Equal(texts, []any{"d", "e", "f"})
}

func TestLimitOfWork(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	const inputs = 16
	r := newRig(t, hpd.Config{Limits: hpd.Limits{Work: 1, BehindBytes: 1 << 30}})
	// A producer that connects, and then reads nothing.
	conn, err := net.Dial("tcp", r.http.Listener.Addr().String())
	c.NoError(err)
	defer conn.Close()
	_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	_, err = io.WriteString(conn, "GET /hpd/agents/far/work HTTP/1.1\r\nHost: x\r\n\r\n")
	c.NoError(err)
	_, err = conn.Read(make([]byte, 16)) // it is connected
	c.NoError(err)
	runs := map[any]bool{}
	for range inputs {
		a := r.input("far", r.session(), "main", strings.Repeat("x", 256<<10))
		c.Equal(a.status, 202)
		runs[a.object()["runtimeRunId"]] = true
	}
	_ = conn.SetReadDeadline(time.Now().Add(wait))
	if _, err := io.Copy(io.Discard, conn); err != nil { // it is cut off; otherwise the stream would not end
		var late net.Error
		c.False(errors.As(err, &late) && late.Timeout(), "the producer was not cut off")
	}
	p := r.producer("far") // gets everything, however much that is
	for range inputs {
		w := p.work.named("input")
		c.True(runs[w["runtimeRunId"]], "a run comes twice, or is not one: %v", w["runtimeRunId"])
		delete(runs, w["runtimeRunId"])
	}
	c.Equal(len(runs), 0)
}

func TestLimitOfRecent(t *testing.T) {
	t.Parallel()
	for most, traced := range map[int]bool{1: false, 100: true} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			t.Parallel()
			c := &spec.T{T: t}
			r := newRig(t, hpd.Config{Producers: map[string]hpd.Producer{"echo": hpd.Echo{}}, Limits: hpd.Limits{Recent: most}})
			s := r.session()
			watch := r.watch(live("echo", s), nil)
			r.input("echo", s, "main", "hi")
			seen := watch.until("BRANCH_RUN_COMPLETED")
			c.Equal(types(seen)[:2], []string{"BRANCH_RUN_STARTED", "MESSAGE_TURN_STARTED"})
			c.Equal(seen[0]["traceId"] != nil, traced) // the next event of its batch took its place
		})
	}
}

func TestLimitOfRemembered(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	hang := hpd.ProducerFunc(func(ctx context.Context, _ *hpd.Run, _ hpd.Work) error {
		<-ctx.Done()
		return ctx.Err()
	})
	r := newRig(t, hpd.Config{Producers: map[string]hpd.Producer{"p": hang}, Limits: hpd.Limits{Remembered: 1}})
	sessions := []string{r.session(), r.session(), r.session()}
	for _, s := range sessions {
		c.Equal(r.input("p", s, "main", "x").status, 202)
	}
	r.crash()
	for range 3 { // each drops the one before, which is then checked again
		for _, s := range sessions {
			list := r.do("GET", "/agents/p/sessions/"+s+"/branches/main/runs", nil).list()
			c.Equal([]any{len(list), list[0]["error"].(object)["type"]}, []any{1, "RuntimeLost"})
			c.Equal(len(only(r.history(s, "main"), "BRANCH_RUN_COMPLETED")), 1)
		}
	}
}

func TestLimitsOfSockets(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	r := newRig(t, hpd.Config{Producers: map[string]hpd.Producer{"echo": hpd.Echo{}}, Limits: hpd.Limits{Socket: wsconn.Limits{Connections: 1, FrameBytes: 4 << 10}}})
	at := "/agents/echo/sessions/" + r.session() + "/branches/main/ws"
	k := r.socket(c, at)
	_, _, _, err := ws.Dial(t.Context(), strings.Replace(r.http.URL, "http", "ws", 1)+"/hpd"+at)
	c.True(err != nil && strings.Contains(err.Error(), "503"), "a second one: %v", err)
	k.send(object{"type": "USER_TEXT_INPUT", "text": strings.Repeat("x", 8<<10)})
	code, reason := k.closed()
	c.Equal(code, 1009)
	c.Contains(reason, "a message has at most 4096 bytes (hpd.limits.frame_bytes)")
}

func TestLimitOfUploads(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	r := newRig(t, hpd.Config{Limits: hpd.Limits{Upload: 3 * time.Minute, Content: 1 << 20}})
	route := r.server.Mount().Routes[0]
	upload := route.Body(httptest.NewRequest(http.MethodPost, "/hpd/sessions/s/branches/main/content", nil))
	c.Equal(upload.Time, 3*time.Minute)
	c.True(upload.Bytes > 1<<20 && upload.Bytes < 2<<20, "%d bytes", upload.Bytes)
	c.Equal(route.Body(httptest.NewRequest(http.MethodPost, "/hpd/sessions", nil)).Time, time.Duration(0))
}
