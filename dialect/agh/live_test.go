package agh_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-hub/parley/dialect/agh"
	"github.com/parley-hub/parley/hub"
)

// reading is a live stream that is being read.
type reading struct {
	r      *rig
	lines  chan string
	cancel context.CancelFunc
	status chan int
}

// pipe is a response that is read while it is written.
type pipe struct {
	header http.Header
	status chan int
	lines  chan string
	rest   string
}

func (p *pipe) Header() http.Header              { return p.header }
func (p *pipe) WriteHeader(status int)           { p.status <- status }
func (p *pipe) Flush()                           {}
func (p *pipe) SetWriteDeadline(time.Time) error { return nil }

func (p *pipe) Write(b []byte) (int, error) {
	p.rest += string(b)
	for {
		event, rest, ok := strings.Cut(p.rest, "\n\n")
		if !ok {
			return len(b), nil
		}
		p.rest = rest
		if !strings.HasPrefix(event, ":") {
			p.lines <- event
		}
	}
}

// stream opens a live stream, after the event with lastID if one is given.
func (r *rig) stream(as, path, lastID string) *reading {
	ctx, cancel := context.WithCancel(context.Background())
	req := httptest.NewRequest(http.MethodGet, ws+path, nil).WithContext(ctx)
	req.Header.Set("X-As", as)
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	s := &reading{r, make(chan string, 1000), cancel, make(chan int, 10)}
	go func() {
		defer close(s.lines)
		r.server.Mount().Routes[0].Handler.ServeHTTP(&pipe{header: http.Header{}, status: s.status, lines: s.lines}, req)
	}()
	synctest.Wait()
	return s
}

// heard is an event of a stream.
type heard struct {
	id, name string
	data     obj
}

// next returns the available events.
func (s *reading) next() (all []heard) {
	s.r.Helper()
	synctest.Wait()
	for {
		select {
		case text, ok := <-s.lines:
			if !ok {
				return all
			}
			h := heard{}
			scan := bufio.NewScanner(strings.NewReader(text))
			for scan.Scan() {
				name, value, _ := strings.Cut(scan.Text(), ": ")
				switch name {
				case "id":
					h.id = value
				case "event":
					h.name = value
				case "data":
					s.r.NoError(json.Unmarshal([]byte(value), &h.data))
				}
			}
			all = append(all, h)
		default:
			return all
		}
	}
}

// said returns the names and texts of the available events.
func (s *reading) said() []string {
	s.r.Helper()
	texts := []string{}
	for _, h := range s.next() {
		text, _ := h.data["text"].(string)
		texts = append(texts, h.name+" "+text)
	}
	return texts
}

// ended reports whether the stream is over.
func (s *reading) ended() bool {
	synctest.Wait()
	for {
		select {
		case _, ok := <-s.lines:
			if !ok {
				return true
			}
		default:
			return false
		}
	}
}

func TestLive(t *testing.T) {
	t.Parallel()
	const thread = "/channels/dock/threads/thread_tide/messages/live"
	runTrust(t, "a thread's messages are streamed, and a stream goes on where it ended", func(r *rig, a *air, crane, tug *host, f *far) {
		r.ask(http.StatusNotFound, "GET", thread, nil)
		first := crane.say("one", nil)
		s := r.stream("operator", thread, "")
		defer s.cancel()
		got := s.next()
		r.Equal(len(got), 1)
		want := list(r.get("/channels/dock/threads/thread_tide/messages"), "messages")[0]
		r.Equal([]any{got[0].name, got[0].data}, []any{"message", want})
		f.send(obj{"to": nil, "body": obj{"text": "two"}})
		r.Equal(s.said(), []string{"message two"})
		for _, after := range []string{"?after=" + first, "?after=crane.s01/" + first, "?after=" + got[0].id} {
			again := r.stream("operator", thread+after, "")
			r.Equal(again.said(), []string{"message two"})
			again.cancel()
		}
		again := r.stream("operator", thread+"?after=now", "")
		crane.say("three", nil)
		r.Equal(again.said(), []string{"message three"})
		again.cancel()
		resumed := r.stream("operator", thread, got[0].id)
		r.Equal(resumed.said(), []string{"message two", "message three"})
		resumed.cancel()
		lost := r.stream("operator", thread, "9.9.9")
		r.Equal(lost.next()[0].name, "gap")
		crane.say("four", nil)
		r.Equal(lost.said(), []string{"message four"})
		lost.cancel()
		r.ask(http.StatusNotFound, "GET", thread+"?after=nothing", nil)
		last := s.next()
		r.restart()
		r.True(s.ended(), "a stream outlives its server")
		s = r.stream("operator", thread, last[len(last)-1].id)
		defer s.cancel()
		crane.say("five", nil)
		r.Equal(s.said(), []string{"message five"})
	})
	runTrust(t, "a stream ends for who may no longer see it, and with its conversation", func(r *rig, a *air, crane, tug *host, f *far) {
		crane.say("one", nil)
		direct := crane.send(http.StatusOK, obj{"surface": "direct", "thread_id": nil, "to": "tug.s02"})["message"].(obj)["direct_id"].(string)
		room := "/channels/dock/directs/" + direct + "/messages/live"
		for as, want := range map[string]int{"agent:other": 403, "nobody": 401, "reader": 403} {
			r.askAs(as, want, "GET", room, nil)
		}
		mine, both := r.stream("agent:tug", thread, ""), r.stream("agent:tug", room, "")
		reader, operator := r.stream("reader", thread, ""), r.stream("operator", room, "")
		r.Equal([]int{len(mine.next()), len(both.next()), len(reader.next()), len(operator.next())}, []int{1, 1, 1, 1})
		attends := func() (dialects []string) {
			id, _ := r.hub.FindAgent("tug")
			for _, c := range r.hub.Presence(id).Connections {
				dialects = append(dialects, c.Dialect)
			}
			return dialects
		}
		r.Equal(attends(), []string{"agh", "agh"})
		r.ask(http.StatusNoContent, "DELETE", "/channels/dock/peers/tug.s02", nil)
		crane.say("two", nil)
		r.Equal(mine.said(), []string{})
		r.True(mine.ended(), "it is still told")
		r.Equal(reader.said(), []string{"message two"})
		both.cancel()
		r.True(both.ended(), "it goes on without its reader")
		r.Equal(len(attends()), 0)
		id, err := r.hub.Named(context.Background(), mustHome(r), "direct", direct)
		r.NoError(err)
		r.NoError(r.hub.Delete(context.Background(), id, nil))
		r.Equal(operator.next()[0].name, "gap")
		r.True(operator.ended(), "it goes on without its conversation")
		reader.cancel()
	})
	runs(t, "streams are bounded, and a revoked key ends one", agh.Config{Limits: agh.Limits{Streams: 1}}, func(r *rig) {
		crane := r.join("dock", "crane", "crane.s01")
		crane.say("one", nil)
		s := r.stream("operator", thread, "")
		r.Contains(r.serve("operator", "GET", thread, nil).Body.String(), "agh.limits.streams")
		s.cancel()
		synctest.Wait()
		stands := true
		r.cfg.Stands = func(*http.Request) bool { return stands }
		r.restart()
		s = r.stream("reader", thread, "")
		defer s.cancel()
		r.Equal(len(s.next()), 1)
		stands = false
		crane.say("two", nil)
		r.True(s.ended() && len(s.next()) == 0, "it is still told")
	})
}

func mustHome(r *rig) string { return homeOf(r, "ws_harbor") }

func homeOf(r *rig, name string) string {
	homes, _, err := r.hub.Homes(context.Background(), "agh", hub.HomePage{Limit: 10})
	r.NoError(err)
	for _, home := range homes {
		if home.Name == name {
			return home.ID
		}
	}
	r.Fatalf("there is no workspace %s", name)
	return ""
}
