package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parley-hub/parley/dialect/ag2"
	"github.com/parley-hub/parley/dialect/dialecttest"
	"github.com/parley-hub/parley/server/config"
)

// Who reads logs without end is told to wait, whatever it speaks; an operator is
// not.
func TestReadsAreBoundedInASecond(t *testing.T) {
	t.Parallel()
	s := &site{t: t}
	s.at = runningHub(t, func(c *config.Config) {
		s.token = firstKey(t, c.Data.Dir)
		c.Limits.Reads = 16 << 10
		c.Limits.FollowerWrite, ag2.Section.Of(c).Limits.Write = 500*time.Millisecond, 500*time.Millisecond
	})
	token := func(name string) string {
		var key struct{ Token string }
		if err := s.ask(http.MethodPost, "/v1/keys", fmt.Sprintf(`{"agent":%q}`, name), &key); err != nil {
			t.Fatal(err)
		}
		return key.Token
	}
	a, err := s.join("over-ag2", token("over-ag2"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.joinV1("over-v1", token("over-v1"))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var ch struct {
		ID string `json:"channel_id"`
	}
	opening := fmt.Sprintf(`{"creator":"over-v1","type":"conversation","participants":[%q]}`, a.ID())
	if err := s.ask(http.MethodPost, "/v1/channels", opening, &ch); err != nil {
		t.Fatal(err)
	}
	for _, c := range []dialecttest.Client{a, b} {
		var refused error
		for n := 0; refused == nil && n < 1000; n++ {
			refused = c.Read(ch.ID)
		}
		if refused == nil || !strings.Contains(refused.Error(), "limits.reads") {
			t.Errorf("%T reads for ever: %v", c, refused)
		}
	}
	for range 100 {
		if err := s.ask(http.MethodGet, "/v1/channels/"+ch.ID+"/events", "", nil); err != nil {
			t.Fatalf("an operator: %v", err)
		}
	}
}
