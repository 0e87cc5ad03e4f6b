package api_test

import (
	"net/http"
	"testing"
)

func TestOperatorsRegisterAnyone(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const body = `{"name":"pia","kind":"human","summary":"reviews","capabilities":["review"]}`
	status, answer := s.ask(operator, http.MethodPost, "/v1/agents", body)
	passport, _ := answer["passport"].(map[string]any)
	auth, _ := passport["auth"].(map[string]any)
	resume, _ := answer["resume"].(map[string]any)
	if status != http.StatusCreated || passport["kind"] != "human" || auth["scheme"] != "api_key" || resume["summary"] != "reviews" {
		t.Fatalf("registered: %d %v", status, answer)
	}
	if capabilities, _ := resume["claimed_capabilities"].([]any); len(capabilities) != 1 || capabilities[0] != "review" {
		t.Errorf("capabilities: %v", resume)
	}
	if status, answer = s.ask(operator, http.MethodGet, "/v1/agents/pia", ""); status != http.StatusOK {
		t.Errorf("shown: %d %v", status, answer)
	}
	status, answer = s.ask(operator, http.MethodPost, "/v1/agents", body)
	if status != http.StatusConflict || answer["reason"] != "name_taken" {
		t.Errorf("a second time: %d %v", status, answer)
	}
	if status, answer = s.ask(operator, http.MethodPost, "/v1/agents", `{"name":"bob"}`); status != http.StatusCreated {
		t.Errorf("a name alone: %d %v", status, answer)
	}
}

func TestAgentsRegisterThemselvesOnly(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, c := range []struct {
		as, body string
		want     int
	}{
		{"agent:alice", `{"name":"bob"}`, http.StatusForbidden},
		{"reader", `{"name":"bob"}`, http.StatusForbidden},
		{"", `{"name":"bob"}`, http.StatusUnauthorized},
		{operator, `{}`, http.StatusBadRequest},
		{operator, `{"name":"bob","kind":"robot"}`, http.StatusBadRequest},
		{operator, `{"name":"bob","capabilties":[]}`, http.StatusBadRequest},
		{operator, `{"name":"0123456789abcdef0123456789abcdef"}`, http.StatusBadRequest},
	} {
		if status, answer := s.ask(c.as, http.MethodPost, "/v1/agents", c.body); status != c.want {
			t.Errorf("%s %s: %d %v, want %d", c.as, c.body, status, answer, c.want)
		}
	}
	if _, answer := s.ask(operator, http.MethodGet, "/v1/agents", ""); len(answer["agents"].([]any)) != 0 {
		t.Errorf("what was refused registered somebody: %v", answer)
	}
	if status, answer := s.ask("agent:alice", http.MethodPost, "/v1/agents", `{"summary":"asks"}`); status != http.StatusCreated {
		t.Errorf("itself: %d %v", status, answer)
	}
	if status, answer := s.ask("agent:alice", http.MethodPost, "/v1/agents", `{"name":"alice"}`); status != http.StatusConflict {
		t.Errorf("itself a second time: %d %v", status, answer)
	}
}
