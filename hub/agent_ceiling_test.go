package hub_test

import (
	"testing"
	"testing/synctest"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
)

// pendingRule returns a rule with n places in the inbox.
func pendingRule(n int64) *identity.Rule {
	rule := identity.DefaultRule()
	rule.Limits.Inbox.MaxPending = n
	return &rule
}

// fill posts until the inbox is full, and returns how many posts were accepted.
func fill(t *testing.T, r *rig, from *agent, ch string, most int) int {
	t.Helper()
	for n := range most {
		if _, err := r.trySay(from, ch, "more"); err != nil {
			if fault.CodeOf(err) != fault.InboxFull {
				t.Fatal(err)
			}
			return n
		}
	}
	return most
}

func TestLimitsInboxIsACeilingForRules(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		own  int64
		want int
	}{
		"a rule may say less":        {2, 2},
		"a rule cannot say more":     {50, 4},
		"a rule without a bound too": {0, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, hub.Options{Limits: hub.Limits{Inbox: 4}})
				a := r.agent("alice")
				b := r.agent("bob", func(reg *hub.Registration) { reg.Rule = pendingRule(c.own) })
				ch := r.open("conversation", a, b)
				if got := fill(t, r, a, ch, 10); got != c.want {
					t.Errorf("%d were let in, want %d", got, c.want)
				}
			})
		})
	}
}

func TestAnAgentCannotRaiseTheOperatorsRule(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, hub.Options{})
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		ceiling := &identity.Ceiling{}
		ceiling.Limits.Inbox.MaxPending = 3
		ceiling.Access.OutboundTo = []string{"nobody"}
		if _, err := r.SetCeiling(t.Context(), b.id, ceiling); err != nil {
			t.Fatal(err)
		}
		if err := r.SetRule(t.Context(), b.id, pendingRule(500)); err != nil {
			t.Fatal(err)
		}
		r.restart() // the operator's rule is stored with the identity
		if got := fill(t, r, a, ch, 10); got != 3 {
			t.Errorf("%d were let in, want 3", got)
		}
		_, err := r.tryPost(b, ch, "note", `{}`, audience(a))
		if fault.CodeOf(err) != fault.AccessDenied {
			t.Errorf("a post to whom the operator's rule does not name: %v", err)
		}
		p, err := r.Agent("bob")
		if err != nil || p.Rule.Limits.Inbox.MaxPending != 500 || p.Ceiling == nil {
			t.Errorf("the own rule is shown as it was set: %+v, %v", p.Rule, err)
		}
		if _, err := r.SetCeiling(t.Context(), b.id, nil); err != nil {
			t.Fatal(err)
		}
		r.restart()
		if got := fill(t, r, a, ch, 10); got != 10 {
			t.Errorf("after its removal %d were let in, want 10", got)
		}
	})
}

func TestABadOperatorsRuleChangesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, hub.Options{})
		b := r.agent("bob")
		bad := &identity.Ceiling{}
		bad.Limits.Inbox.MaxPending = -1
		if _, err := r.SetCeiling(t.Context(), b.id, bad); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("a negative number: %v", err)
		}
		if _, err := r.SetCeiling(t.Context(), "missing", &identity.Ceiling{}); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("a missing identity: %v", err)
		}
		if p, _ := r.Agent("bob"); p.Ceiling != nil {
			t.Errorf("the ceiling is %+v", p.Ceiling)
		}
	})
}
