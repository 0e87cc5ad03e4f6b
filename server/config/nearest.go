package config

import (
	"slices"
	"strings"
)

// meant suggests the nearest known name, if one is near.
func meant(name string, known []string) string {
	if near := Nearest(name, known); near != "" {
		return "; did you mean " + near + "?"
	}
	return "; parley config reference lists them"
}

// Nearest returns the known name with the fewest edits from name; empty: even that
// one takes more than a third of it.
func Nearest(name string, known []string) string {
	if best, least := nearest(name, known); least <= max(2, len(name)/3) {
		return best
	}
	return ""
}

// nearest returns the known name with the fewest edits from name, and their number. A
// bare last part, such as listen for http.listen, counts as close, and so does the
// section of a key.
func nearest(name string, known []string) (best string, least int) {
	least = -1
	for _, candidate := range known {
		d := edits(name, candidate)
		if i := strings.LastIndexAny(candidate, "._"); i >= 0 && !strings.ContainsAny(name, ".") {
			d = min(d, edits(name, candidate[i+1:])+1)
		}
		if strings.HasPrefix(candidate, name+".") || strings.HasPrefix(name, candidate+".") {
			d = min(d, 1)
		}
		if least < 0 || d < least {
			best, least = candidate, d
		}
	}
	return best, least
}

// isSlip reports whether a variable's name is a known one with one or two typing
// errors, or without its section.
func isSlip(name string, known []string) bool {
	rest := strings.TrimPrefix(name, EnvPrefix)
	return slices.ContainsFunc(known, func(candidate string) bool {
		_, last, _ := strings.Cut(strings.TrimPrefix(candidate, EnvPrefix), "_")
		return rest == last || edits(name, candidate) <= 2
	})
}

// edits counts insertions, deletions, replacements and swaps of neighbours.
func edits(a, b string) int {
	before := make([]int, len(b)+1)
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replaced := last[j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			row[j] = min(last[j]+1, row[j-1]+1, replaced)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
