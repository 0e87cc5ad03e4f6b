package identity

import (
	"slices"
	"unicode/utf8"
)

// Bounds of the globs of a rule, and of the work of matching them.
const (
	MaxGlob  = MaxName // bytes of a glob
	MaxGlobs = 4096    // globs of one list
	// MaxMatchSteps bounds the work of matching one list. A step is one
	// character that is compared or skipped. A match that needs more fails.
	MaxMatchSteps = 4 << 20
)

// MatchAny reports whether a name matches one of the globs; no glob matches nothing.
func MatchAny(globs []string, name string) bool {
	m := matcher{steps: MaxMatchSteps}
	return slices.ContainsFunc(globs, func(glob string) bool { return m.match(glob, name) })
}

// Match reports whether a glob matches the whole of a name: * is any run of characters,
// ? is one, [abc], [a-z] and [!a] are sets. Nothing is escaped, an unclosed [ stands
// for itself, and case counts. A glob longer than MaxGlob matches nothing.
func Match(glob, name string) bool { return MatchAny([]string{glob}, name) }

// matcher counts down the steps that matching may still take.
type matcher struct{ steps int }

func (m *matcher) match(glob, name string) bool {
	if glob == "*" {
		return true
	}
	if len(glob) > MaxGlob {
		return false
	}
	// Only the last star ever needs to give back characters, so one position
	// to return to is enough.
	retryGlob, retryName, starred := "", "", false
	for {
		if m.steps--; m.steps < 0 {
			return false
		}
		if glob == "" && name == "" {
			return true
		}
		if glob != "" && glob[0] == '*' {
			glob = glob[1:]
			retryGlob, retryName, starred = glob, name, true
			continue
		}
		if glob != "" && name != "" {
			char, size := utf8.DecodeRuneInString(name)
			if rest, ok := m.matchOne(glob, char); ok {
				glob, name = rest, name[size:]
				continue
			}
		}
		if !starred || retryName == "" {
			return false
		}
		_, size := utf8.DecodeRuneInString(retryName)
		retryName = retryName[size:]
		glob, name = retryGlob, retryName
	}
}

// matchOne matches one character with the first part of a glob, and returns the
// rest of the glob.
func (m *matcher) matchOne(glob string, char rune) (rest string, ok bool) {
	switch glob[0] {
	case '?':
		return glob[1:], true
	case '[':
		set, rest, closed := cutSet(glob)
		if closed {
			m.steps -= len(set)
			return rest, inSet(set, char)
		}
		m.steps -= len(glob) // it was searched to its end
	}
	want, size := utf8.DecodeRuneInString(glob)
	return glob[size:], want == char
}

// cutSet splits the set at the start of a glob from what follows it. A ] that
// comes first, or first after !, is a member.
func cutSet(glob string) (set, rest string, closed bool) {
	i := 1
	if i < len(glob) && glob[i] == '!' {
		i++
	}
	if i < len(glob) && glob[i] == ']' {
		i++
	}
	for ; i < len(glob); i++ {
		if glob[i] == ']' {
			return glob[1:i], glob[i+1:], true
		}
	}
	return "", "", false
}

func inSet(set string, char rune) bool {
	negated := set != "" && set[0] == '!'
	if negated {
		set = set[1:]
	}
	found := false
	for set != "" {
		low, size := utf8.DecodeRuneInString(set)
		set = set[size:]
		high := low
		if len(set) > 1 && set[0] == '-' {
			high, size = utf8.DecodeRuneInString(set[1:])
			set = set[1+size:]
		}
		found = found || low <= char && char <= high
	}
	return found != negated
}
