package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/server/api"
)

// Whoever reads logs faster than its share is told to wait; others are not, and
// nothing that changes the hub is.
func TestReadsAreBoundedInASecond(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/v1/channels/ID/events", "/v1/events", "/v1/channels/ID/views/full_transcript", "/v1/channels/ID/views/threaded", "/v1/channels/ID/messages"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			const share = 4 << 10
			s := newSiteOn(t, hub.Options{Limits: hub.Limits{Reads: 4 * share}}, func(c *api.Config) { c.Limits.Write = 10 * time.Millisecond })
			alice := s.agent("alice")
			s.agent("bob")
			s.unbounded("bob")
			ch := s.open("conversation", "alice", "bob")
			s.post(ch, alice, 128*share)
			at, path := "/v1/channels/"+ch, strings.ReplaceAll(path, "ID", ch)
			const greedy, modest = "agent:alice greedy", "agent:alice modest"
			for _, who := range []string{greedy, modest, operator + " key", operator + " key"} {
				if status, p := s.ask(who, "GET", path, ""); status != http.StatusOK {
					t.Fatalf("%s: %d %v", who, status, p)
				}
			}
			for _, again := range []string{at + "/events", "/v1/events", at + "/views/full_transcript", at + "/state?at=1"} {
				if status, p := s.ask(greedy, "GET", again, ""); status != http.StatusTooManyRequests || !strings.Contains(fmt.Sprint(p["detail"]), "limits.reads") {
					t.Errorf("%s: %d %v", again, status, p)
				}
			}
			if status, p := s.ask(greedy, "GET", "/v1/agents", ""); status != http.StatusOK {
				t.Errorf("a list: %d %v", status, p)
			}
			if status, p := s.say(greedy, ch, "alice", "x"); status != http.StatusCreated {
				t.Errorf("a post: %d %v", status, p)
			}
		})
	}
}

// A stream that is ahead of its share goes on when it may, and misses nothing.
func TestStreamsWaitForTheirShare(t *testing.T) {
	t.Parallel()
	const entry, entries = 128 << 10, 8
	s := newSiteOn(t, hub.Options{Limits: hub.Limits{Reads: 4 << 20}})
	alice := s.agent("alice")
	s.agent("bob")
	s.unbounded("bob")
	ch := s.open("conversation", "alice", "bob")
	for range entries {
		s.post(ch, alice, entry)
	}
	for _, path := range []string{"/v1/channels/" + ch + "/events", "/v1/events"} { // together two seconds of a share
		f := s.follow("agent:alice", path)
		for texts := 0; texts < entries; {
			if strings.Contains(f.next().data, "xxxx") {
				texts++
			}
		}
		s.post(ch, alice, 10)
		for !strings.Contains(f.next().data, `"xxxxxxxxxx"`) { //nolint:revive // until the last
		}
		_ = f.body.Close()
	}
}

// The threaded view is answered however long the chain of replies is.
func TestTheThreadedViewOfALongChain(t *testing.T) {
	t.Parallel()
	const chain = 6000
	s := newSite(t)
	alice := s.agent("alice")
	s.agent("bob")
	s.unbounded("bob")
	ch, last := s.open("conversation", "alice", "bob"), ""
	for n := range chain {
		var err error
		last, err = s.hub.Post(t.Context(), &envelope.Envelope{
			Channel: ch, Sender: alice, Type: envelope.TypeText, Data: fmt.Appendf(nil, `{"text":"reply %d."}`, n), Causation: last,
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
	}
	resp := s.do("agent:alice", "GET", "/v1/channels/"+ch+"/views/threaded", "")
	text := string(readAll(t, resp))
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %.300s", resp.Status, text)
	}
	if n := strings.Count(text, `"text":"reply `); n != chain || !strings.Contains(text, fmt.Sprintf("reply %d.", chain-1)) {
		t.Errorf("the view shows %d of %d replies", n, chain)
	}
}
