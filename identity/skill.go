package identity

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Skill is a parsed skill document.
type Skill struct {
	Frontmatter map[string]string
	Body        string
}

const fence = "---"

// ParseSkill parses a document. One without a closed header at its start is
// all body.
func ParseSkill(text string) Skill {
	rest, ok := strings.CutPrefix(text, fence)
	if !ok {
		return Skill{Frontmatter: map[string]string{}, Body: text}
	}
	rest = strings.TrimPrefix(rest, "\n")
	header, body, ok := strings.Cut(rest, "\n"+fence)
	if !ok {
		return Skill{Frontmatter: map[string]string{}, Body: text}
	}
	s := Skill{Frontmatter: map[string]string{}, Body: strings.TrimPrefix(body, "\n")}
	for line := range strings.SplitSeq(header, "\n") {
		line = strings.TrimSpace(line)
		key, value, ok := strings.Cut(line, ":")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		s.Frontmatter[strings.TrimSpace(key)] = strings.TrimSpace(value)
	}
	return s
}

// FallbackSkill writes the document of an identity that stored none.
func FallbackSkill(p *Passport, r *Resume) string {
	description := cmp.Or(r.Summary, "Network-registered agent.")
	sections := []string{fmt.Sprintf("%s\nname: %s\ndescription: %s\n%s", fence, p.Name, description, fence)}
	add := func(title string, lines []string) {
		if len(lines) > 0 {
			sections = append(sections, "## "+title+"\n- "+strings.Join(lines, "\n- "))
		}
	}
	add("Capabilities", r.ClaimedCapabilities)
	add("Domains", r.Domains)
	add("Track record", trackRecord(r))
	add("Examples", exampleLines(r))
	return strings.Join(sections, "\n\n") + "\n"
}

func trackRecord(r *Resume) []string {
	var lines []string
	for _, capability := range slices.Sorted(maps.Keys(r.Observed)) {
		s := r.Observed[capability]
		lines = append(lines, fmt.Sprintf("%s: %d completed / %d failed / %d expired (n=%d)",
			capability, s.Completed, s.Failed, s.Expired, s.N))
	}
	return lines
}

func exampleLines(r *Resume) []string {
	var lines []string
	for _, e := range r.Examples {
		outcome := cmp.Or(e.Outcome, "no outcome")
		lines = append(lines, e.Title+" — "+outcome)
	}
	return lines
}
