package hpd_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/hpd"
	"github.com/parley-hub/parley/dialect/hpd/wire"
)

func TestLive(t *testing.T) {
	t.Parallel()
	echo := hpd.Config{Producers: map[string]hpd.Producer{"echo": hpd.Echo{}}}
	live := func(s string) string { return "/agents/echo/sessions/" + s + "/branches/main/events/live" }
	spec.Check(t, "hpd-events#107: an unknown scope is 404 before any byte of a stream", func(t *spec.T) {
		r := newRig(t, echo)
		for _, path := range []string{live("nobody"), "/agents/echo/sessions/" + r.session() + "/branches/none/events/live"} {
			a := r.do("GET", path, nil)
			t.Equal(a.status, 404)
			t.Equal(a.header.Get("Content-Type"), "application/problem+json")
		}
	})
	spec.Check(t, "hpd-events#108 hpd-events#111: headers come at once, and what is published then arrives", func(t *spec.T) {
		r := newRig(t, echo)
		s := r.session()
		w := r.watch(live(s), nil) // returns with the headers, before any event is published
		t.Equal(w.res.Header.Get("Content-Type"), "text/event-stream")
		t.Equal(w.res.Header.Get("Cache-Control"), "no-cache")
		t.Equal(w.res.Header.Get("Connection"), "keep-alive")
		r.input("echo", s, "main", "x")
		t.Equal(w.until("BRANCH_RUN_STARTED")[0]["type"], any("BRANCH_RUN_STARTED"))
	})
	spec.Check(t, "hpd-events#109: frames end in LF LF and have no CR", func(t *spec.T) {
		r := newRig(t, echo)
		s := r.session()
		w := r.watch(live(s), nil)
		r.input("echo", s, "main", "a\r\nb\n\nc")
		var text string
		for _, f := range w.frames("BRANCH_RUN_COMPLETED") {
			t.False(strings.Contains(f.raw, "\r"), "%q has no CR", f.raw)
			if f.event["type"] == "TEXT_DELTA" {
				text += f.event["text"].(string)
			}
		}
		t.Equal(text, "a\r\nb\n\nc")
	})
	spec.Check(t, "hpd-events#110: nothing old is replayed", func(t *spec.T) {
		r := newRig(t, echo)
		s := r.session()
		r.run("echo", s, "main", "old")
		w := r.watch(live(s), nil)
		r.input("echo", s, "main", "new")
		seen := w.until("BRANCH_RUN_COMPLETED")
		t.Equal(seen[0]["type"], any("BRANCH_RUN_STARTED"))
		t.Equal(only(seen, "TEXT_DELTA")[0]["text"], any("new"))
	})
	spec.Check(t, "hpd-events#112 hpd-events#114: two readers get everything, also of the next run", func(t *spec.T) {
		r := newRig(t, echo)
		s := r.session()
		a, b := r.watch(live(s), nil), r.watch(live(s), nil)
		for range 2 {
			r.input("echo", s, "main", "some words here")
			seen := a.until("BRANCH_RUN_COMPLETED")
			t.Equal(b.until("BRANCH_RUN_COMPLETED"), seen)
			t.Equal(len(only(seen, "TEXT_DELTA")), 3)
		}
	})
	spec.Check(t, "hpd-events#113: a reader that goes leaves the run alone", func(t *spec.T) {
		g := newGate()
		r := newRig(t, hpd.Config{Producers: map[string]hpd.Producer{"echo": g}})
		s := r.session()
		w := r.watch(live(s), nil)
		r.input("echo", s, "main", "x")
		<-g.started
		w.close()
		eventually(t, func() bool { return r.figures()["streams"] == 0 }) // the server has noticed
		other := r.watch(live(s), nil)
		t.Equal(r.do("GET", "/agents/echo/sessions/"+s+"/branches/main/runs/active", nil).object()["status"], any("active"))
		close(g.open)
		seen := other.until("BRANCH_RUN_COMPLETED")
		t.Equal(seen[len(seen)-1]["cancelled"], any(false))
	})
	spec.Check(t, "hpd-events#117: a child's events are shown on its parent's stream, another branch's are not", func(t *spec.T) {
		r := newRig(t, echo)
		s := r.session()
		r.do("POST", "/agents/x/sessions/"+s+"/branches", object{"branchId": "subagent/scout", "metadata": object{"kind": "subagent", "parentSessionId": s, "parentBranchId": "main"}})
		r.do("POST", "/agents/x/sessions/"+s+"/branches", object{"branchId": "other"})
		w := r.watch(live(s), nil)
		r.run("echo", s, "other", "unseen")
		r.run("echo", s, "subagent/scout", "bubbled")
		seen := w.frames("BRANCH_RUN_COMPLETED")
		for _, f := range seen {
			t.Equal(f.event["branchId"], any("subagent/scout"))
			t.Equal(f.id, "")
		}
		t.Equal(seen[0].event["type"], any("BRANCH_RUN_STARTED"))
		t.True(slices.ContainsFunc(seen, func(f frame) bool { return f.event["text"] == "bubbled" }), "the child's text is shown")
	})
	spec.Check(t, "hpd-events#1 hpd-events#2: version and type are first, in frames and history", func(t *spec.T) {
		r := newRig(t, echo)
		s := r.session()
		w := r.watch(live(s), nil)
		r.input("echo", s, "main", "x")
		for _, f := range w.frames("BRANCH_RUN_COMPLETED") {
			t.Contains(f.raw, `data: {"version":"1.0","type":"`)
		}
		raw := string(r.do("GET", "/sessions/"+s+"/branches/main/events", nil).raw)
		n := len(r.history(s, "main"))
		t.Equal(strings.Count(raw, `{"version":"1.0","type":"`), n)
	})
	t.Run("a position resumes without gap or repeat, also across a restart", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		r := newRig(t, echo)
		s := r.session()
		w := r.watch(live(s), nil)
		r.input("echo", s, "main", "one two three")
		frames := w.frames("BRANCH_RUN_COMPLETED")
		at := slices.IndexFunc(frames, func(f frame) bool { return f.event["text"] == "two " })
		history := r.history(s, "main")
		seq := int(frames[at].event["sequenceNumber"].(float64))
		r.restart()
		resumed := []*reader{
			r.watch(live(s), map[string]string{"Last-Event-ID": frames[at].id}),
			r.watch(live(s)+"?after="+frames[at].id, nil),
			r.watch(live(s)+"?after="+string(rune('0'+seq/10))+string(rune('0'+seq%10)), nil),
		}
		for _, resume := range resumed {
			c.Equal(types(resume.until("BRANCH_RUN_COMPLETED")), types(history[seq:]))
		}
		r.input("echo", s, "main", "again")
		for _, resume := range resumed {
			// A reader with a position also gets the user's message.
			c.Equal(types(resume.until("BRANCH_RUN_COMPLETED"))[2], "MESSAGE_STARTED")
		}
	})
	t.Run("a position that is gone is told first", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		r := newRig(t, echo)
		s := r.session()
		w := r.watch(live(s)+"?after=999", nil)
		c.Equal(w.until("STREAM_GAP")[0]["version"], any("1.0"))
		r.input("echo", s, "main", "x")
		c.Equal(types(w.until("BRANCH_RUN_STARTED")), []string{"BRANCH_RUN_STARTED"})
		c.Equal(r.do("GET", live(s)+"?after=nonsense", nil).status, 400)
	})
	spec.Check(t, "hpd-events#115: silence is filled with comments", func(t *spec.T) {
		t.True(hpd.KeepAlive < 15*time.Second, "%s is the longest silence, and a comment takes time to arrive", hpd.KeepAlive)
		r := newRig(t, hpd.Config{Limits: hpd.Limits{KeepAlive: time.Millisecond}})
		w := r.watch(live(r.session()), nil)
		select {
		case f := <-w.events:
			t.Equal(strings.TrimRight(f.raw, "\n"), ": keepalive")
		case <-time.After(wait):
			t.Fatal("no comment")
		}
	})
	spec.Check(t, "hpd-events#116: a reader that does not read is cut off and delays nobody", func(t *spec.T) {
		pace := make(chan struct{}, 500)
		for range 8 {
			pace <- struct{}{}
		}
		flood := hpd.ProducerFunc(func(ctx context.Context, run *hpd.Run, _ hpd.Work) error {
			text := strings.Repeat("x", 64<<10)
			for range 400 {
				select { // the other reader keeps up
				case <-pace:
				case <-ctx.Done():
				}
				if err := run.Publish(ctx, wire.TextDelta{MessageID: "m", Text: text}, wire.AgentTurnStarted{}); err != nil {
					return err
				}
			}
			return nil
		})
		r := newRig(t, hpd.Config{Producers: map[string]hpd.Producer{"echo": flood}, Limits: hpd.Limits{Write: 4 * time.Second}})
		s := r.session()
		stuck, err := http.Get(r.http.URL + "/hpd" + live(s))
		t.NoError(err)
		defer stuck.Body.Close()
		w := r.watch(live(s), nil)
		r.input("echo", s, "main", "x")
		for range 400 {
			w.until("AGENT_TURN_STARTED")
			pace <- struct{}{}
		}
		w.until("BRANCH_RUN_COMPLETED")
		// The stuck reader's stream is aborted: it never sees a clean end.
		var got int
		buf := make([]byte, 1<<20)
		for {
			n, err := stuck.Body.Read(buf)
			got += n
			if err != nil {
				t.ErrorContains(err, "unexpected EOF")
				break
			}
		}
		t.True(got < 400*(64<<10), "it got %d bytes", got)
	})
	t.Run("a server that closes aborts its streams", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		r := newRig(t, echo)
		w := r.watch(live(r.session()), nil)
		c.NoError(r.server.Drain(t.Context()))
		for range w.events {
		}
		c.ErrorContains(w.err, "unexpected EOF")
	})
}
