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
		switch {
		case controls(r):
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// cell is a text in one cell of a table or on one line, where its line breaks and
// tabs would begin others.
func cell(s string) string {
	return strings.NewReplacer("\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(s)
}

func controls(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }

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
