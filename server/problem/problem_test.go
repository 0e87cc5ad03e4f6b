package problem_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/server/problem"
)

func TestWrite(t *testing.T) {
	t.Parallel()
	slow := fault.New(fault.RateLimited, "wait")
	slow.RetryAfter = 1500 * time.Millisecond
	tests := []struct {
		name   string
		err    error
		want   problem.Problem
		header map[string]string
	}{
		{
			"a refusal", fault.New(fault.NotFound, "no channel %q", "x"),
			problem.Problem{Type: "about:blank", Title: "Not Found", Status: 404, Code: fault.NotFound, Detail: `no channel "x"`},
			map[string]string{"Content-Type": "application/problem+json", "X-Content-Type-Options": "nosniff"},
		},
		{
			"a wrapped refusal", fmt.Errorf("open: %w", fault.New(fault.Protocol, "not your turn")),
			problem.Problem{Type: "about:blank", Title: "Conflict", Status: 409, Code: fault.Protocol, Detail: "open: not your turn"},
			nil,
		},
		{
			"a wait", slow,
			problem.Problem{Type: "about:blank", Title: "Too Many Requests", Status: 429, Code: fault.RateLimited, Detail: "wait"},
			map[string]string{"Retry-After": "2"},
		},
		{
			"no credentials", fault.New(fault.AuthFailed, "who?"),
			problem.Problem{Type: "about:blank", Title: "Unauthorized", Status: 401, Code: fault.AuthFailed, Detail: "who?"},
			map[string]string{"WWW-Authenticate": `Bearer realm="parley"`},
		},
		{
			"an error without a code tells nothing", errors.New("secret path"),
			problem.Problem{Type: "about:blank", Title: "Internal Server Error", Status: 500, Code: fault.Internal, Detail: "the hub could not do this; its log says why"},
			map[string]string{"Retry-After": "", "WWW-Authenticate": ""},
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			answer := httptest.NewRecorder()
			problem.Write(answer, tc.err)
			var got problem.Problem
			if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || answer.Code != tc.want.Status {
				t.Errorf("status %d, body (-want +got):\n%s", answer.Code, diff)
			}
			for name, want := range tc.header {
				if got := answer.Header().Get(name); got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
		})
	}
}

func TestEveryCodeHasAStatus(t *testing.T) {
	t.Parallel()
	for _, entry := range fault.Catalogue() {
		status := problem.Status(entry.Code)
		if status < 400 || status == http.StatusInternalServerError && entry.Code != fault.Internal {
			t.Errorf("%s has status %d", entry.Code, status)
		}
	}
	if problem.Status("new_code") != http.StatusInternalServerError {
		t.Error("an unknown code is no internal error")
	}
}
