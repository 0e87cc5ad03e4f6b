package api_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parley-hub/parley/server/access"
	"github.com/parley-hub/parley/server/api"
)

func TestRevokedKeyEndsItsStreams(t *testing.T) {
	t.Parallel()
	var revoked atomic.Bool
	s := newSite(t, func(c *api.Config) { c.Stands = func(access.Principal) bool { return !revoked.Load() } })
	s.agent("alice")
	s.agent("bob")
	ch := s.open("conversation", "alice", "bob")
	f := s.follow(operator, "/v1/channels/"+ch+"/events")
	defer f.body.Close()
	for range 3 {
		f.next()
	}
	revoked.Store(true)
	s.say(operator, ch, "alice", "secret")
	for f.scan.Scan() {
		if strings.Contains(f.scan.Text(), "secret") {
			t.Fatal("the stream of a revoked key goes on")
		}
	}
}
