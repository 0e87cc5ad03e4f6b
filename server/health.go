package server

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/parley-hub/parley/server/access"
)

// readyTimeout bounds how long all checks take together.
const readyTimeout = 2 * time.Second

// Check is one condition of readiness.
type Check struct {
	Name string
	// Run returns nil if the condition holds, and otherwise what is wrong. It
	// returns soon after ctx ends.
	Run func(ctx context.Context) error
	// Note is what an operator should know although the condition holds.
	Note string
}

type checkResult struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitempty"`
	Note   string `json:"note,omitempty"`
}

// healthz says only that the process answers.
func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]string{"status": "ok", "version": s.deps.Version})
}

// readyz reports whether the hub should get work. Reasons may name files, so only
// this machine and readers see them.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	who := access.From(r.Context())
	open := who.Loopback || who.Has(access.Reader)

	results := make([]checkResult, 0, len(s.deps.Ready)+len(s.deps.Dialects)+1)
	ready := true
	add := func(name string, err error) {
		result := checkResult{Name: name, OK: err == nil}
		if err != nil {
			ready = false
			if open {
				result.Reason = err.Error()
			}
		}
		results = append(results, result)
	}
	add("serving", s.serving())
	for _, check := range s.deps.Ready {
		add(check.Name, check.Run(ctx))
		if open {
			results[len(results)-1].Note = check.Note
		}
	}
	for _, d := range s.deps.Dialects {
		add(d.Name(), d.Ready(ctx))
	}
	status, word := http.StatusOK, "ready"
	if !ready {
		status, word = http.StatusServiceUnavailable, "not ready"
	}
	writeJSON(w, status, map[string]any{"status": word, "checks": results})
}

type drainingError struct{}

func (drainingError) Error() string { return "the hub is shutting down" }

func (s *Server) serving() error {
	if s.draining.Load() {
		return drainingError{}
	}
	return nil
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may have disconnected; there is nobody else to tell
}
