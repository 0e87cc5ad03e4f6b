package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/server/api"
)

// The time to take what is written is counted while something is written: a
// stream that is silent for longer stays, and ends in good order.
func TestSilenceIsNotSlowness(t *testing.T) {
	t.Parallel()
	for proto, major := range map[string]int{"HTTP/1.1": 1, "HTTP/2": 2} {
		t.Run(proto, func(t *testing.T) {
			t.Parallel()
			stopping := make(chan struct{})
			s := newSite(t, func(c *api.Config) {
				c.Limits.Write, c.Limits.KeepAlive = 50*time.Millisecond, 200*time.Millisecond
				c.Stopping = func(context.Context) <-chan struct{} { return stopping }
			})
			s.overTLS(major == 2)
			s.agent("alice")
			s.agent("bob")
			ch := s.open("conversation", "alice", "bob")
			for _, path := range []string{"/v1/events?after=", "/v1/channels/" + ch + "/events?after="} {
				f := s.follow(operator, path)
				defer f.body.Close()
				for comments := 0; comments < 2; {
					if !f.scan.Scan() {
						t.Fatalf("%s ended after %d comments: %v", path, comments, f.scan.Err())
					}
					if f.scan.Text() == ": keepalive" {
						comments++
					}
				}
				defer func() {
					if got := f.rest(); len(got) != 0 || f.scan.Err() != nil {
						t.Errorf("%s ended with %v, %v", path, got, f.scan.Err())
					}
				}()
			}
			defer close(stopping)
			if resp := s.do(operator, "GET", "/v1/health", ""); resp.ProtoMajor != major {
				t.Errorf("answered over %s", resp.Proto)
			} else {
				_ = resp.Body.Close()
			}
		})
	}
}

// overTLS serves the same interface over TLS, where a client may speak HTTP/2.
func (s *site) overTLS(h2 bool) {
	s.t.Helper()
	secure := httptest.NewUnstartedServer(s.http.Config.Handler)
	secure.EnableHTTP2 = h2
	secure.StartTLS()
	s.t.Cleanup(func() {
		secure.CloseClientConnections()
		secure.Close()
	})
	s.http = secure
}

// An agent that is removed is shown nothing more, on whatever stream.
func TestRemovedAgentEndsItsStreams(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent("alice")
	s.agent("bob")
	s.agent("carol")
	_, opened := s.ask(operator, "POST", "/v1/channels", `{"creator":"alice","type":"conversation","participants":["bob"]}`)
	ch := opened["channel_id"].(string)
	paths := []string{"/v1/channels/" + ch + "/events", "/v1/events"}
	var streams []*frames
	for _, as := range []string{"agent:bob", "agent:alice"} {
		for _, path := range paths {
			f := s.follow(as, path)
			defer f.body.Close()
			for range 3 {
				f.next()
			}
			streams = append(streams, f)
		}
	}
	if status, p := s.ask(operator, "DELETE", "/v1/agents/bob", ""); status != http.StatusNoContent {
		t.Fatalf("%d %v", status, p)
	}
	s.agent("bob") // somebody else, under the same name
	if status, p := s.say(operator, ch, "alice", "secret"); status != http.StatusCreated {
		t.Fatalf("%d %v", status, p)
	}
	for i, path := range paths {
		if got, ok := streams[i].try(); ok {
			t.Errorf("%s shows a removed agent %v", path, got)
		}
		if got := streams[len(paths)+i].next(); !strings.Contains(got.data, "secret") {
			t.Errorf("%s shows alice %v", path, got)
		}
	}
}

// Line breaks between the tokens of event data stay within the event, for those
// who follow and those who read pages line by line.
func TestLineBreaksStayInTheirEvent(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	alice := s.agent("alice")
	s.agent("bob")
	ch := s.open("conversation", "alice", "bob")
	for _, data := range []string{"{\n\"text\":\n\n\"one\"}", "{\r\"text\":\r\n\r\n\"id: 9\\ndata: x\"\r}"} {
		_, err := s.hub.Post(t.Context(), &envelope.Envelope{Channel: ch, Sender: alice, Type: envelope.TypeText, Data: []byte(data)}, nil)
		if err != nil {
			t.Fatal(err)
		}
	}
	s.say(operator, ch, "alice", "three")
	for _, path := range []string{"/v1/channels/" + ch + "/events", "/v1/events"} {
		f := s.follow(operator, path)
		defer f.body.Close()
		var texts []string
		for len(texts) < 3 {
			var ev struct {
				Type string            `json:"event_type"`
				Data map[string]string `json:"event_data"`
			}
			if data := f.next().data; json.Unmarshal([]byte(data), &ev) == nil && ev.Type == envelope.TypeText {
				texts = append(texts, ev.Data["text"])
			}
		}
		if want := []string{"one", "id: 9\ndata: x", "three"}; !slices.Equal(texts, want) {
			t.Errorf("%s: %q", path, texts)
		}
		resp := s.do(operator, "GET", path, "")
		if page := readAll(t, resp); bytes.Count(page, []byte("\n")) != 1 || bytes.ContainsRune(page, '\r') {
			t.Errorf("%s is more than a line: %s", path, page)
		}
	}
}
