package identity_test

import (
	"strings"
	"testing"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/identity"
)

func TestALongGlobMatchesNothing(t *testing.T) {
	t.Parallel()
	name := strings.Repeat("[", identity.MaxName)
	for what, glob := range map[string]string{
		"unclosed sets":        strings.Repeat("[", 900_000),
		"stars":                strings.Repeat("*", 900_000),
		"stars and characters": strings.Repeat("*[", 450_000) + "x",
	} {
		if identity.Match(glob, name) {
			t.Errorf("%s: a glob of %d bytes matches", what, len(glob))
		}
	}
}

func TestMatchingIsBounded(t *testing.T) {
	t.Parallel()
	// Each of them costs a million steps on this name without matching it.
	hard := "*" + strings.Repeat("a", identity.MaxGlob/2) + "b"
	name := strings.Repeat("a", identity.MaxName)
	globs := append(make([]string, 0, identity.MaxGlobs), strings.Repeat("?", identity.MaxName))
	if !identity.MatchAny(globs, name) {
		t.Fatal("a cheap glob must match")
	}
	globs = globs[:0]
	for range identity.MaxGlobs - 1 {
		globs = append(globs, hard)
	}
	globs = append(globs, strings.Repeat("?", identity.MaxName))
	if identity.MatchAny(globs, name) {
		t.Fatal("a glob matches after the steps are spent: the cost has no bound")
	}
	if !identity.MatchAny(append(globs, "*"), name) {
		t.Fatal("a lone star costs nothing")
	}
}

func TestRuleBounds(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", identity.MaxGlob+1)
	for field, set := range map[string]func(*identity.Rule, []string){
		"inbound_from":           func(r *identity.Rule, l []string) { r.Access.InboundFrom = l },
		"outbound_to":            func(r *identity.Rule, l []string) { r.Access.OutboundTo = l },
		"channel_types.initiate": func(r *identity.Rule, l []string) { r.Access.ChannelTypes.Initiate = l },
		"channel_types.accept":   func(r *identity.Rule, l []string) { r.Access.ChannelTypes.Accept = l },
	} {
		for fragment, globs := range map[string][]string{
			field + "[1] has 1025 bytes; at most 1024":                    {"*", long},
			field + " lists 4097 globs; at most 4096 (limits.rule_globs)": make([]string, identity.MaxGlobs+1),
			"": {long[1:]},
		} {
			rule := identity.DefaultRule()
			set(&rule, globs)
			err := rule.CheckBounds(identity.MaxGlobs)
			if fragment == "" {
				if err != nil {
					t.Errorf("%s at the bound: %v", field, err)
				}
				continue
			}
			if err == nil || !strings.Contains(err.Error(), fragment) || fault.CodeOf(err) != fault.TooLarge {
				t.Errorf("%s: got %v, want %q", field, err, fragment)
			}
		}
	}
}
