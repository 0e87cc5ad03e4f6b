package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-hub/parley/dialect/dialecttest"
	"github.com/parley-hub/parley/server/access"
)

// A session holds at every door, and one half of it at none.
func TestASessionHoldsAtEveryDoor(t *testing.T) {
	t.Parallel()
	s := &site{t: t}
	startSite(s, dialecttest.Options{})
	send := func(method, path, body string, header http.Header) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), method, s.at.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for name, values := range header {
			r.Header[name] = values
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = answer.Body.Close() })
		return answer
	}
	var made struct{ Code, Proof string }
	if err := s.ask(http.MethodPost, "/v1/session/codes", "", &made); err != nil {
		t.Fatal(err)
	}
	answer := send(http.MethodPost, "/v1/session", `{"code":"`+made.Code+`"}`, nil)
	if answer.StatusCode != http.StatusCreated {
		t.Fatal(answer.Status)
	}
	if err := json.NewDecoder(answer.Body).Decode(&made); err != nil {
		t.Fatal(err)
	}
	cookie := answer.Cookies()[0]
	for _, path := range []string{"/v1/channels", "/hpd/sessions", "/agh/network/status"} {
		both := http.Header{"Cookie": {cookie.Name + "=" + cookie.Value}, access.ProofHeader: {made.Proof}}
		if got := send(http.MethodGet, path, "", both).StatusCode; got == http.StatusUnauthorized || got == http.StatusForbidden {
			t.Errorf("%s with both halves: %d", path, got)
		}
		delete(both, access.ProofHeader)
		if got := send(http.MethodGet, path, "", both).StatusCode; got != http.StatusUnauthorized {
			t.Errorf("%s with the cookie alone: %d", path, got)
		}
	}
}
