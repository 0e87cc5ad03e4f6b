package wire

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The grammars are matched by hand: they are asked several times for each
// envelope, and a table is ten times as fast as a regular expression.

const (
	lower = "abcdefghijklmnopqrstuvwxyz"
	digit = "0123456789"
	hexes = digit + "abcdef"
)

type class [256]bool

func classOf(chars string) (c class) {
	for i := range len(chars) {
		c[chars[i]] = true
	}
	return c
}

func (c *class) holds(s string) bool {
	for i := range len(s) {
		if !c[s[i]] {
			return false
		}
	}
	return true
}

var (
	alnumClass   = classOf(lower + digit)
	channelClass = classOf(lower + digit + "_-")
	peerClass    = classOf(lower + digit + "._-")
	hexClass     = classOf(hexes)
	workClass    = classOf(lower + strings.ToUpper(lower) + digit + "_-")
)

// ValidChannel matches ^[a-z0-9][a-z0-9_-]{0,63}$.
func ValidChannel(s string) bool {
	return len(s) >= 1 && len(s) <= 64 && alnumClass[s[0]] && channelClass.holds(s)
}

// ValidPeer matches ^[a-z0-9][a-z0-9._-]{0,127}$.
func ValidPeer(s string) bool {
	return len(s) >= 1 && len(s) <= 128 && alnumClass[s[0]] && peerClass.holds(s)
}

// ValidDirect matches ^direct_[a-f0-9]{32}$.
func ValidDirect(s string) bool {
	rest, ok := strings.CutPrefix(s, "direct_")
	return ok && len(rest) == 32 && hexClass.holds(rest)
}

// ValidWork matches ^work_[a-zA-Z0-9_-]{1,64}$.
func ValidWork(s string) bool {
	rest, ok := strings.CutPrefix(s, "work_")
	return ok && len(rest) >= 1 && len(rest) <= 64 && workClass.holds(rest)
}

// LenientWork is what AGH's runtime takes as a work id: up to 128 bytes
// without slashes, backslashes and control characters.
func LenientWork(s string) bool { return safe(s) }

// StorableThread is what a thread id must be to name a channel of ours: up to
// 128 bytes without slashes, backslashes and control characters.
func StorableThread(s string) bool { return safe(s) }

// ThreadToEmit matches ^thread_[a-z0-9][a-z0-9_-]{2,95}$, which AGH's runtime
// demands of the ids it receives.
func ThreadToEmit(s string) bool {
	rest, ok := strings.CutPrefix(s, "thread_")
	return ok && len(rest) >= 3 && len(rest) <= 96 && alnumClass[rest[0]] && channelClass.holds(rest)
}

// ValidWorkspace reports whether a workspace id can be one token of a subject:
// not empty, none of ". *>", no white space around it, no control character.
func ValidWorkspace(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c <= ' ', c == 0x7f, c == '.', c == '*', c == '>':
			return false
		case c == 0xc2 && i+1 < len(s) && s[i+1] < 0xa0: // U+0080 to U+009F
			return false
		}
	}
	return trimmed(s)
}

// ValidHandle matches ^[a-z0-9_-]{1,32}@[0-9a-f]{32}$.
func ValidHandle(s string) bool {
	nickname, fingerprint, ok := strings.Cut(s, "@")
	return ok && ValidNickname(nickname) && len(fingerprint) == 32 && hexClass.holds(fingerprint)
}

// ValidNickname matches ^[a-z0-9_-]{1,32}$.
func ValidNickname(s string) bool {
	return len(s) >= 1 && len(s) <= 32 && channelClass.holds(s)
}

// ValidKeyID matches ^sha256:[0-9a-f]{64}$.
func ValidKeyID(s string) bool {
	sum, ok := strings.CutPrefix(s, "sha256:")
	return ok && len(sum) == 64 && hexClass.holds(sum)
}

// ValidPeerOrHandle is the grammar of peers where trust is enabled.
func ValidPeerOrHandle(s string) bool { return ValidPeer(s) || ValidHandle(s) }

// handleShaped reports whether a name claims to be a handle.
func handleShaped(s string) bool { return strings.IndexByte(s, '@') >= 0 }

func safe(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ', c == 0x7f, c == '/', c == '\\':
			return false
		}
	}
	return len(s) <= 128 && trimmed(s)
}

// trimmed reports whether an identifier is neither empty nor padded.
func trimmed(s string) bool {
	if s == "" || !utf8.ValidString(s) {
		return false
	}
	if first, last := s[0], s[len(s)-1]; first < utf8.RuneSelf && last < utf8.RuneSelf {
		return !space(first) && !space(last)
	}
	first, _ := utf8.DecodeRuneInString(s)
	last, _ := utf8.DecodeLastRuneInString(s)
	return !unicode.IsSpace(first) && !unicode.IsSpace(last)
}

func space(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// blank reports whether a text has nothing but white space.
func blank(s string) bool { return strings.TrimSpace(s) == "" }
