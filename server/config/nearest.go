package config

import (
	"slices"
	"strings"
)

// nearest is the known name that takes the fewest edits to reach from name.
// A bare last part, such as listen for http.listen, counts as close.
func nearest(name string, known []string) string {
	best, least := "", -1
	for _, candidate := range known {
		d := edits(name, candidate)
		if i := strings.LastIndexAny(candidate, "._"); i >= 0 && !strings.ContainsAny(name, ".") {
			d = min(d, edits(name, candidate[i+1:])+1)
		}
		if least < 0 || d < least {
			best, least = candidate, d
		}
	}
	return best
}

// isSlip reports whether a variable's name is that of a known one with a slip
// or two, or without its section.
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
