package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parley-hub/parley/internal/answers"
	"github.com/parley-hub/parley/server/api"
)

// A stream that cannot be written, because the caller has not taken its other
// answers, ends with the reason; what it missed is resumed.
func TestAWatchSaysThatItsReaderIsSlow(t *testing.T) {
	t.Parallel()
	// The caller's share of 4 MiB is taken by answers that it does not read.
	s := newSite(t, func(c *api.Config) { c.Answers, c.Limits.Write = answers.New(16<<20), 2*time.Second })
	alice := s.agent("alice")
	s.agent("bob")
	s.unbounded("bob")
	ch, quiet := s.open("conversation", "alice", "bob"), s.open("conversation", "alice", "bob")
	_, shown := s.ask(operator, "GET", "/v1/channels/"+ch, "")
	from := shown["position"].(string)
	for range 5 {
		s.post(ch, alice, 300<<10)
	}
	f := s.follow(operator, watchPath("channel:"+quiet), "Key", "greedy")
	defer f.body.Close()
	f.until("hello")
	for _, page := range []string{"?limit=50", "?limit=1"} { // large answers, then small ones until none fits
		for {
			if _, status := s.stuck("greedy", "/v1/channels/"+ch+"/events"+page+"&after="+from); status == http.StatusServiceUnavailable {
				break
			}
		}
	}
	s.post(quiet, alice, 1000<<10)
	_, bye := f.until("bye")
	if bye["reason"] != "slow" || bye["topic"] != "bye" {
		t.Errorf("bye: %v", bye)
	}
	if cut := s.v1.(*api.API).SlowReaders(); cut != 1 {
		t.Errorf("%d slow readers were counted", cut)
	}
}

// A stream beyond the limit is refused, and told when to try again.
func TestAStreamBeyondTheLimitIsToldWhenToTryAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *api.Config) { c.Limits.Followers = 1 })
	f := s.follow(operator, watchPath("summary"))
	defer f.body.Close()
	f.until("hello")
	for _, path := range []string{watchPath("summary"), "/v1/events?follow"} {
		answer := s.do(operator, "GET", path, "")
		body := string(readAll(t, answer))
		if answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") != "1" || !strings.Contains(body, "limits.followers") {
			t.Errorf("%s: %d, Retry-After %q, %s", path, answer.StatusCode, answer.Header.Get("Retry-After"), body)
		}
	}
}
