package identity_test

import (
	"testing"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/identity"
)

func TestParseSkill(t *testing.T) {
	t.Parallel()
	none := map[string]string{}
	tests := []struct {
		clause, in string
		want       identity.Skill
	}{
		{"basic", "---\nname: quill\ndescription: reads: all\n---\nBody\n", identity.Skill{Frontmatter: map[string]string{"name": "quill", "description": "reads: all"}, Body: "Body\n"}},
		{"one newline is dropped", "---\na:1\n---\n\nBody", identity.Skill{Frontmatter: map[string]string{"a": "1"}, Body: "\nBody"}},
		{"quotes and lists stay text", "---\na: \"q\"\nb: [1, 2]\n---", identity.Skill{Frontmatter: map[string]string{"a": `"q"`, "b": "[1, 2]"}, Body: ""}},
		{"no newline behind the fence", "---a: 1\n---x", identity.Skill{Frontmatter: map[string]string{"a": "1"}, Body: "x"}},
		{"absent", "Body\n---\n", identity.Skill{Frontmatter: none, Body: "Body\n---\n"}},
		{"absent behind a space", " ---\na: 1\n---\n", identity.Skill{Frontmatter: none, Body: " ---\na: 1\n---\n"}},
		{"unterminated", "---\na: 1\nBody", identity.Skill{Frontmatter: none, Body: "---\na: 1\nBody"}},
		{"an empty header is none", "---\n---\nBody", identity.Skill{Frontmatter: none, Body: "---\n---\nBody"}},
		{"comments and blanks skipped", "---\n# a: 1\n\n  \n  # b: 2\nplain\n c : 3 \n---\n", identity.Skill{Frontmatter: map[string]string{"c": "3"}, Body: ""}},
	}
	for _, tt := range tests {
		spec.Check(t, "ag2-channels#110: frontmatter, "+tt.clause, func(t *spec.T) {
			t.Equal(identity.ParseSkill(tt.in), tt.want)
		})
	}
}

func TestFallbackSkill(t *testing.T) {
	t.Parallel()
	p := &identity.Passport{Name: "quill"}
	spec.Check(t, "ag2-channels#111: default description", func(t *spec.T) {
		t.Equal(identity.FallbackSkill(p, &identity.Resume{}), "---\nname: quill\ndescription: Network-registered agent.\n---\n")
	})
	spec.Check(t, "ag2-channels#111: summary, capabilities, domains, track record with n", func(t *spec.T) {
		r := &identity.Resume{
			Summary:             "Reads scans.",
			ClaimedCapabilities: []string{"ocr", "classify"},
			Domains:             []string{"finance"},
			Observed:            map[string]identity.ObservedStat{"sum": {N: 1, Completed: 1}, "ocr": {N: 7, Completed: 3, Failed: 2, Expired: 1}},
			Examples:            []identity.Example{{Title: "batch", Outcome: "done"}, {Title: "other"}},
		}
		t.Equal(identity.FallbackSkill(p, r), `---
name: quill
description: Reads scans.
---

## Capabilities
- ocr
- classify

## Domains
- finance

## Track record
- ocr: 3 completed / 2 failed / 1 expired (n=7)
- sum: 1 completed / 0 failed / 0 expired (n=1)

## Examples
- batch — done
- other — no outcome
`)
	})
}

func TestAddress(t *testing.T) {
	t.Parallel()
	spec.Check(t, "ag2-hub#131: an address splits into hub and agent", func(t *spec.T) {
		t.Equal(identity.ParseAddress("hub://h/a"), identity.Address{Hub: "h", Agent: "a"})
		t.Equal(identity.ParseAddress("hub://h/a/b"), identity.Address{Hub: "h", Agent: "a/b"})
		t.Equal(identity.ParseAddress("hub://h/a").String(), "hub://h/a")
	})
	for _, text := range []string{"", "a", "hub://", "hub://h", "hub://h/", "hub:///a", "hub:/h/a", "http://h/a"} {
		spec.Check(t, "ag2-hub#131: passes through "+text, func(t *spec.T) {
			t.Equal(identity.ParseAddress(text), identity.Address{Agent: text})
			t.Equal(identity.ParseAddress(text).String(), text)
		})
	}
}
