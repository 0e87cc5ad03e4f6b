package identity

import "unicode/utf8"

// MatchAny reports whether a name matches one of the globs; no glob matches
// nothing.
func MatchAny(globs []string, name string) bool {
	for _, glob := range globs {
		if Match(glob, name) {
			return true
		}
	}
	return false
}

// Match reports whether a glob matches the whole of a name: * is any run of
// characters, ? is one, [abc], [a-z] and [!a] are sets. Nothing is escaped, an
// unclosed [ stands for itself, and case counts.
func Match(glob, name string) bool {
	if glob == "*" {
		return true
	}
	// Only the last star ever needs to give back characters, so one place to
	// return to is enough.
	retryGlob, retryName, starred := "", "", false
	for {
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
			if rest, ok := matchOne(glob, char); ok {
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

// matchOne matches one character with the first part of a glob, and returns
// what is behind that part.
func matchOne(glob string, char rune) (rest string, ok bool) {
	switch glob[0] {
	case '?':
		return glob[1:], true
	case '[':
		if set, rest, closed := cutSet(glob); closed {
			return rest, inSet(set, char)
		}
	}
	want, size := utf8.DecodeRuneInString(glob)
	return glob[size:], want == char
}

// cutSet splits the set at the start of a glob from what follows it. A ] that
// comes first, or first behind !, is a member.
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
