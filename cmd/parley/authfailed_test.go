package main

import (
	"net/http"
	"testing"

	"github.com/parley-hub/parley/dialect/dialecttest"
)

// Failed authentications of every door are in the audit, the first ten of a
// minute one by one.
func TestFailedAuthenticationIsAudited(t *testing.T) {
	t.Parallel()
	s := &site{t: t}
	opened := startSite(s, dialecttest.Options{})
	opened.Key("quill")
	if _, err := s.join("quill", "wrong"); err == nil {
		t.Fatal("a wrong token is accepted")
	}
	good := s.token
	s.token = "wrong"
	for range 15 {
		if s.ask(http.MethodGet, "/v1/agents", "", nil) == nil {
			t.Fatal("a wrong token is accepted")
		}
	}
	s.token = good
	var page struct {
		Records []struct{ Door, Name, Address string }
	}
	if err := s.ask(http.MethodGet, "/v1/audit?kind=auth_failed", "", &page); err != nil {
		t.Fatal(err)
	}
	doors := map[string]int{}
	for _, r := range page.Records {
		doors[r.Door+" "+r.Name]++
		if r.Address != "127.0.0.1" {
			t.Errorf("%+v", r)
		}
	}
	if len(page.Records) != 10 || doors["ag2 quill"] != 1 || doors["http "] != 9 {
		t.Errorf("recorded %v", doors)
	}
}
