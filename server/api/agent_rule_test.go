package api_test

import (
	"net/http"
	"testing"
)

// maxPending finds the bound of the inbox that holds for an agent.
func maxPending(answer map[string]any) any {
	limits, _ := answer["effective_limits"].(map[string]any)
	inbox, _ := limits["inbox"].(map[string]any)
	return inbox["max_pending"]
}

func TestOperatorsSetAgentsRules(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent("bob")
	const path = "/v1/agents/bob/rule"
	status, answer := s.ask(operator, http.MethodPut, path, `{"limits":{"inbox":{"max_pending":7}}}`)
	if status != http.StatusOK || answer["operator_rule"] == nil || maxPending(answer) != 7.0 {
		t.Errorf("set: %d %v", status, answer)
	}
	for _, c := range []struct {
		as, method, body string
		want             int
	}{
		{"agent:bob", http.MethodPut, `{}`, http.StatusForbidden},
		{"agent:bob", http.MethodDelete, "", http.StatusForbidden},
		{"reader", http.MethodPut, `{}`, http.StatusForbidden},
		{operator, http.MethodPut, `{"limits":{"inbox":{"max_pending":-7}}}`, http.StatusBadRequest},
		{operator, http.MethodPut, `{"limits":{"inbx":{}}}`, http.StatusBadRequest},
		{operator, http.MethodPut, ``, http.StatusBadRequest},
	} {
		if status, answer := s.ask(c.as, c.method, path, c.body); status != c.want {
			t.Errorf("%s %s %s: %d %v, want %d", c.as, c.method, c.body, status, answer, c.want)
		}
	}
	if _, answer := s.ask(operator, http.MethodGet, "/v1/agents/bob", ""); maxPending(answer) != 7.0 {
		t.Errorf("what was refused changed the rule: %v", answer)
	}
	status, answer = s.ask(operator, http.MethodDelete, path, "")
	if status != http.StatusOK || answer["operator_rule"] != nil || maxPending(answer) != 1000.0 {
		t.Errorf("removed: %d %v", status, answer)
	}
	if status, _ := s.ask(operator, http.MethodPut, "/v1/agents/nobody/rule", `{}`); status != http.StatusNotFound {
		t.Errorf("nobody: %d", status)
	}
}
