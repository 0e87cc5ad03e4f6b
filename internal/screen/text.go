// Package screen has what the commands that draw on a terminal share: text that
// cannot move the cursor, columns, lines of envelopes. It asks no hub and keeps
// no state.
package screen

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean shows control characters instead of sending them: the names and texts of
// agents must not move a terminal's cursor or set its title. Line breaks and tabs of
// the text itself stay.
func Clean(s string) string {
	if !strings.ContainsFunc(s, controls) && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if controls(r) {
			escape(&b, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Cell returns a text in one cell of a table or on one line, where its line
// breaks and tabs would begin others.
func Cell(s string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(Clean(s))
}

// escape writes what a character is instead of the character.
func escape(b *strings.Builder, r rune) {
	switch {
	case r == '\n':
		b.WriteString(`\n`)
	case r == '\r':
		b.WriteString(`\r`)
	case r == '\t':
		b.WriteString(`\t`)
	case r <= 0xff:
		fmt.Fprintf(b, `\x%02x`, r)
	case r <= 0xffff:
		fmt.Fprintf(b, `\u%04x`, r)
	default:
		fmt.Fprintf(b, `\U%08x`, r)
	}
}

// controls reports whether a character changes how others are shown: it moves
// the cursor, turns the direction of a line, breaks it, or hides in it.
func controls(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
		return true
	}
	return r == '\u2028' || r == '\u2029' || r == '\ufeff' || r >= 0xe0000 && r <= 0xe007f
}
