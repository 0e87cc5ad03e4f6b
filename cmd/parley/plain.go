package main

import (
	"io"

	"github.com/parley-hub/parley/internal/screen"
)

// clean shows control characters of a text instead of sending them.
func clean(s string) string { return screen.Clean(s) }

// cell is a text in one cell of a table or on one line.
func cell(s string) string { return screen.Cell(s) }

// plain cleans what is written through it. Writes end at whole characters, as
// those of fmt and tabwriter do.
type plain struct{ w io.Writer }

func (p plain) Write(b []byte) (int, error) {
	if _, err := io.WriteString(p.w, clean(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}
