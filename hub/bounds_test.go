package hub_test

import (
	"strings"
	"testing"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
)

func TestWhatListsShowIsBounded(t *testing.T) {
	t.Parallel()
	runs(t, "passports, labels and reasons", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		big := strings.Repeat("x", 17<<10)
		owned := passport("big")
		owned.Owner = big
		if _, err := r.tryRegister(owned); fault.CodeOf(err) != fault.TooLarge || !strings.Contains(err.Error(), "limits.record") {
			t.Errorf("passport: %v", err)
		}
		for name, edit := range map[string]func(*hub.Opening){
			"labels": func(o *hub.Opening) { o.Labels = map[string]string{"k": big} },
			"intent": func(o *hub.Opening) { o.Intent = big },
		} {
			if _, err := r.tryOpen("conversation", edit, a, b); fault.CodeOf(err) != fault.TooLarge {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n := len(r.listed()); n != 0 {
			t.Errorf("%d channels were left", n)
		}
		ch := r.open("conversation", a, b)
		if _, err := r.CloseChannel(ctx, ch, big); fault.CodeOf(err) != fault.TooLarge {
			t.Errorf("reason: %v", err)
		}
		r.say(a, ch, "still open")
	})
}

func TestARuleWithAHugeGlobIsRefused(t *testing.T) {
	t.Parallel()
	runs(t, "set and registered", hub.Options{}, func(t *testing.T, r *rig) {
		a := r.agent("alice")
		rule := identity.DefaultRule()
		rule.Access.InboundFrom = []string{strings.Repeat("[", 900_000)}
		refused := func(err error) {
			t.Helper()
			if fault.CodeOf(err) != fault.TooLarge || !strings.Contains(err.Error(), "rule.access.inbound_from[0] has 900000 bytes; at most 1024") {
				t.Errorf("got %.200v", err)
			}
		}
		refused(r.SetRule(ctx, a.id, &rule))
		_, err := r.Register(ctx, hub.Registration{Passport: passport("bob"), Rule: &rule})
		refused(err)
		if p, err := r.AgentByID(a.id); err != nil || p.Rule.Version != 1 {
			t.Errorf("the rule changed: %v %v", p.Rule, err)
		}
	})
}

// limits.rule_globs bounds the globs in a list of a rule.
func TestTheNumberOfGlobsIsConfigured(t *testing.T) {
	t.Parallel()
	runs(t, "set and registered", hub.Options{Limits: hub.Limits{RuleGlobs: 2}}, func(t *testing.T, r *rig) {
		a := r.agent("alice")
		rule := identity.DefaultRule()
		rule.Access.InboundFrom = []string{"a*", "b*"}
		if err := r.SetRule(ctx, a.id, &rule); err != nil {
			t.Errorf("two globs: %v", err)
		}
		rule.Access.InboundFrom = append(rule.Access.InboundFrom, "c*")
		if err := r.SetRule(ctx, a.id, &rule); fault.CodeOf(err) != fault.TooLarge || !strings.Contains(err.Error(), "at most 2 (limits.rule_globs)") {
			t.Errorf("three globs: %v", err)
		}
		if _, err := r.Register(ctx, hub.Registration{Passport: passport("bob"), Rule: &rule}); fault.CodeOf(err) != fault.TooLarge {
			t.Errorf("three globs at registration: %v", err)
		}
	})
}
