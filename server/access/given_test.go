package access_test

import (
	"strings"
	"testing"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/server/access"
)

func TestTokensThatAgentsHaveAlready(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	keys := access.NewKeys()
	const token = "an-existing-token-of-alice-1"
	key, err := keys.Give(ctx, "alice", token, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !keys.VerifyAgent("alice", token) || keys.VerifyAgent("bob", token) || keys.VerifyAgent("alice", token+"x") {
		t.Error("the token proves alice and nobody else")
	}
	if got, ok := keys.Resolve(token); !ok || got.ID != key.ID || got.Role != access.Agent {
		t.Errorf("%+v, %v", got, ok)
	}
	for what, bad := range map[string]string{
		"in use":     token,
		"24 to 512":  "short",
		"spaces":     "a token with spaces in it, long",
		"by a hub":   "parley_0123456789ab_" + strings.Repeat("x", 40),
		"characters": strings.Repeat("x", 513),
	} {
		if _, err := keys.Give(ctx, "bob", bad, nil); err == nil || !strings.Contains(err.Error(), what) || strings.Contains(err.Error(), bad) {
			t.Errorf("%q: %v", what, err)
		}
	}
	if _, err := keys.Give(ctx, "", "another-token-of-nobody-at-all", nil); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("without an agent: %v", err)
	}
	if _, err := keys.Give(ctx, "bob", "another-token-of-bob-himself", nil); err != nil || !keys.VerifyAgent("bob", "another-token-of-bob-himself") || !keys.VerifyAgent("alice", token) {
		t.Errorf("a second one: %v", err)
	}
	if _, err := keys.Revoke(ctx, key.ID, nil); err != nil || keys.VerifyAgent("alice", token) {
		t.Errorf("revoked, it still proves alice (%v)", err)
	}
}
