package api_test

import (
	"net/http"
	"testing"
)

func TestBudgets(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent("bob")
	s.agent("eve")
	const path, grants = "/v1/agents/bob/budget", "/v1/agents/bob/grants"
	for _, c := range []struct {
		as, method, path, body string
		want                   int
	}{
		{operator, http.MethodGet, path, "", http.StatusNotFound},
		{"agent:bob", http.MethodPut, path, `{"limits":{"tokens":100}}`, http.StatusOK},
		{"agent:bob", http.MethodPut, path, `{"limits":{"tokens":200}}`, http.StatusForbidden},
		{"agent:bob", http.MethodPut, path, `{"limits":{}}`, http.StatusBadRequest},
		{"agent:bob", http.MethodPut, path, `{"limits":{"tokens":-1}}`, http.StatusBadRequest},
		{"agent:bob", http.MethodPut, path, `{"limits":{"tokns":1}}`, http.StatusBadRequest},
		{"agent:eve", http.MethodPut, path, `{"limits":{"tokens":1}}`, http.StatusForbidden},
		{"agent:eve", http.MethodGet, path, "", http.StatusForbidden},
		{"agent:eve", http.MethodPost, grants, `{"input":1}`, http.StatusForbidden},
		{"agent:bob", http.MethodDelete, path, "", http.StatusForbidden},
		{"agent:bob", http.MethodPost, grants, `{"input":1,"output":-1}`, http.StatusBadRequest},
		{"agent:bob", http.MethodPost, grants, `{"input":200}`, http.StatusTooManyRequests},
	} {
		if status, answer := s.ask(c.as, c.method, c.path, c.body); status != c.want {
			t.Errorf("%s %s %s: %d %v, want %d", c.as, c.method, c.body, status, answer, c.want)
		}
	}
	spent := func() any {
		_, answer := s.ask(operator, http.MethodGet, path, "")
		amount, _ := answer["spent"].(map[string]any)
		return amount["tokens"]
	}
	if got := spent(); got != 0.0 {
		t.Errorf("what was refused is counted: %v", got)
	}
	status, grant := s.ask("agent:bob", http.MethodPost, grants, `{"turn":true,"input":10}`)
	id, _ := grant["grant_id"].(string)
	if status != http.StatusOK || grant["output"] != 90.0 || id == "" || spent() != 100.0 {
		t.Fatalf("%d %v, spent %v", status, grant, spent())
	}
	if status, answer := s.ask("agent:bob", http.MethodPost, grants+"/"+id+"/settle", `{"input":10,"output":5}`); status != http.StatusNoContent || spent() != 15.0 {
		t.Errorf("%d %v, spent %v", status, answer, spent())
	}
	if status, answer := s.ask(operator, http.MethodDelete, path, ""); status != http.StatusNoContent {
		t.Errorf("%d %v", status, answer)
	}
	if status, grant := s.ask("agent:bob", http.MethodPost, grants, `{"input":1000}`); status != http.StatusOK || grant["grant_id"] != nil {
		t.Errorf("without a budget: %d %v", status, grant)
	}
}
