package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parley-hub/parley/dialect/dialecttest"
	"github.com/parley-hub/parley/server/config"
)

// Who lists without end is told to wait, whatever it speaks; an operator is not.
func TestListsAreBoundedInASecond(t *testing.T) {
	t.Parallel()
	s := &site{t: t}
	s.at = runningHub(t, func(c *config.Config) {
		s.token = firstKey(t, c.Data.Dir)
		c.Limits.Lists = 64 << 10
	})
	token := func(name string) string {
		var key struct{ Token string }
		if err := s.ask("POST", "/v1/keys", fmt.Sprintf(`{"agent":%q}`, name), &key); err != nil {
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
	for _, c := range []dialecttest.Client{a, b} {
		var refused error
		for n := 0; refused == nil && n < 10_000; n++ {
			_, refused = c.Look(1000)
		}
		if refused == nil || !strings.Contains(refused.Error(), "limits.lists") {
			t.Errorf("%T lists for ever: %v", c, refused)
		}
	}
	for range 100 {
		if err := s.ask("GET", "/v1/agents", "", nil); err != nil {
			t.Fatalf("an operator: %v", err)
		}
	}
}
