package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// clean shows control characters instead of sending them: what an agent calls
// itself or says must not move a terminal's cursor or set its title. Line
// breaks and tabs of the text itself stay.
func clean(s string) string {
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

// cell is a text in one cell of a table or on one line, where its line breaks and
// tabs would begin others.
func cell(s string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(clean(s))
}

// controls are the characters that change how others are shown: those that move
// the cursor, turn the direction of a line, break it, or hide in it.
func controls(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
		return true
	}
	return r == '\u2028' || r == '\u2029' || r == '\ufeff' || r >= 0xe0000 && r <= 0xe007f
}

// plain cleans what is written through it. Writes end at whole characters, as
// those of fmt and tabwriter do.
type plain struct{ w io.Writer }

func (p plain) Write(b []byte) (int, error) {
	if !bytes.ContainsFunc(b, controls) && utf8.Valid(b) {
		return p.w.Write(b)
	}
	if _, err := io.WriteString(p.w, clean(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}
