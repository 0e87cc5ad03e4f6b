package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/parley-hub/parley/server/config"
)

// Until the first key exists, this machine's requests open HPD sessions, on a
// hub put together as serve does it.
func TestHPDSessionsWithoutKeys(t *testing.T) {
	t.Parallel()
	at := runningHub(t, func(*config.Config) {})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at.URL+"/hpd/sessions", strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusCreated {
		t.Errorf("a new session is answered with %s", answer.Status)
	}
}
