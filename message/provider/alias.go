package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// MaxToolName is the longest tool name every provider takes.
const MaxToolName = 64

// Aliases give tools names that every provider accepts: letters, digits, _ and
// -, at most 64, no digit or - in front. An alias can be decoded by itself
// ("harbour/tides" is harbour_x2f_tides); one that would be too long is stored
// in the table. The zero value is ready and safe for concurrent use; a nil one
// knows no long names.
type Aliases struct {
	mu    sync.Mutex
	names map[string]string
}

// Alias returns the provider's name of a tool.
func (a *Aliases) Alias(name string) string {
	alias := escape(name)
	if len(alias) <= MaxToolName {
		return alias
	}
	sum := sha256.Sum256([]byte(name))
	tail := "_h" + hex.EncodeToString(sum[:8])
	alias = alias[:MaxToolName-len(tail)] + tail
	if a != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.names == nil {
			a.names = map[string]string{}
		}
		a.names[alias] = name
	}
	return alias
}

// Name returns the tool name of an alias.
func (a *Aliases) Name(alias string) string {
	if a != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		if name, ok := a.names[alias]; ok {
			return name
		}
	}
	return unescape(alias)
}

// escapeEmpty is the alias of a tool without a name.
const escapeEmpty = "_x_"

func escape(name string) string {
	if name == "" {
		return escapeEmpty
	}
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		if legalAt(c, i) && !beginsEscape(name[i:]) {
			b.WriteByte(c)
			continue
		}
		b.WriteString("_x")
		b.WriteString(hex.EncodeToString([]byte{c}))
		b.WriteByte('_')
	}
	return b.String()
}

// beginsEscape reports whether text could be read as an escape, also together
// with what is written after it, so that a name that contains one survives.
func beginsEscape(s string) bool { return strings.HasPrefix(s, "_x") }

// unescape returns the name that an alias was made of. A name that is not an
// alias is returned as it is.
func unescape(alias string) string {
	name := decode(alias)
	if !utf8.ValidString(name) || escape(name) != alias {
		return alias
	}
	return name
}

func decode(alias string) string {
	if alias == escapeEmpty {
		return ""
	}
	var b strings.Builder
	for alias != "" {
		if c, rest, ok := cutEscape(alias); ok {
			b.WriteByte(c)
			alias = rest
			continue
		}
		b.WriteByte(alias[0])
		alias = alias[1:]
	}
	return b.String()
}

func cutEscape(s string) (c byte, rest string, ok bool) {
	const size = len("_x00_")
	if len(s) < size || s[:2] != "_x" || s[size-1] != '_' || strings.ToLower(s[:size]) != s[:size] {
		return 0, s, false
	}
	code, err := strconv.ParseUint(s[2:4], 16, 8)
	return byte(code), s[size:], err == nil
}

func legalAt(c byte, at int) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_':
		return true
	case c >= '0' && c <= '9', c == '-':
		return at > 0
	}
	return false
}
