package identity_test

import (
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/identity"
)

func TestMatch(t *testing.T) {
	t.Parallel()
	tests := []struct {
		glob, name string
		want       bool
	}{
		{"*", "", true},
		{"*", "a/b.c", true},
		{"", "", true},
		{"", "a", false},
		{"quill", "quill", true},
		{"quill", "Quill", false},
		{"quill", "quill2", false},
		{"team/*", "team/a/b", true},
		{"*.ops", "a.b.ops", true},
		{"?", "é", true},
		{"?", "", false},
		{"??", "é", false},
		{"[abc]x", "bx", true},
		{"[abc]x", "dx", false},
		{"[a-c]", "b", true},
		{"[a-c]", "-", false},
		{"[a-]", "-", true},
		{"[-a]", "-", true},
		{"[!a]", "b", true},
		{"[!a]", "a", false},
		{"[!a-c]", "b", false},
		{"[^a]", "^", true},
		{"[^a]", "b", false},
		{"[z-a]", "m", false},
		{"[!z-a]", "m", true},
		{"[a-c-e]", "-", true},
		{"[a-c-e]", "d", false},
		{"[]a]", "]", true},
		{"[!]a]", "]", false},
		{"[!]a]", "b", true},
		{"[]", "[]", true},
		{"[abc", "[abc", true},
		{"[abc", "a", false},
		{"[!", "[!", true},
		{"a\\*", "a\\bc", true},
		{"a\\*", "a*", false},
		{"*a*b", "xxaxxbxxb", true},
		{"*a*b", "xxaxxbxxc", false},
		{"*[*]", "ab*", true},
		{"[α-ω]*", "λx", true},
		{"[[]", "[", true},
	}
	for _, tt := range tests {
		if got := identity.Match(tt.glob, tt.name); got != tt.want {
			t.Errorf("Match(%q, %q) = %v, want %v", tt.glob, tt.name, got, tt.want)
		}
	}
}

func TestMatchAny(t *testing.T) {
	t.Parallel()
	if identity.MatchAny(nil, "a") || identity.MatchAny([]string{}, "") {
		t.Error("an empty list matches something")
	}
	if !identity.MatchAny([]string{"x", "a*"}, "ab") {
		t.Error("the second glob is not tried")
	}
}

func TestRuleAccess(t *testing.T) {
	t.Parallel()
	rule := identity.DefaultRule()
	rule.Access.OutboundTo = []string{"team-*", "lead"}
	spec.Check(t, "ag2-hub#60: a matching name is allowed", func(t *spec.T) {
		t.Equal([]bool{rule.SendsTo("team-a"), rule.SendsTo("lead")}, []bool{true, true})
	})
	spec.Check(t, "ag2-hub#60: another name is denied", func(t *spec.T) {
		t.Equal([]bool{rule.SendsTo("tea"), rule.SendsTo("leader"), rule.SendsTo("Team-a")}, []bool{false, false, false})
	})
}

// Match agrees with the plain recursive meaning of stars and characters.
func TestMatchLaw(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		glob := rapid.StringMatching(`[ab*?é]{0,8}`).Draw(t, "glob")
		name := rapid.StringMatching(`[abé]{0,8}`).Draw(t, "name")
		if got, want := identity.Match(glob, name), plainMatch(glob, name); got != want {
			t.Fatalf("Match(%q, %q) = %v, want %v", glob, name, got, want)
		}
	})
}

func plainMatch(glob, name string) bool {
	if glob == "" {
		return name == ""
	}
	g, gSize := utf8.DecodeRuneInString(glob)
	if g == '*' {
		if plainMatch(glob[1:], name) {
			return true
		}
		_, size := utf8.DecodeRuneInString(name)
		return name != "" && plainMatch(glob, name[size:])
	}
	n, nSize := utf8.DecodeRuneInString(name)
	return name != "" && (g == '?' || g == n) && plainMatch(glob[gSize:], name[nSize:])
}

func FuzzMatch(f *testing.F) {
	f.Add("[!a-*]?", "x")
	f.Add("[[[*", "[[[")
	f.Add("\xff[\xff-", "\xff")
	f.Fuzz(func(t *testing.T, glob, name string) {
		identity.Match(glob, name)
		if !identity.Match("*", name) {
			t.Fatal("* does not match")
		}
	})
}
