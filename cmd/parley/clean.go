package main

import (
	"io"

	"github.com/parley-hub/parley/internal/screen"
)

// clean replaces control characters of a text by visible ones.
func clean(s string) string { return screen.Clean(s) }

// cell returns a text for one cell of a table or one line.
func cell(s string) string { return screen.Cell(s) }

// cleanWriter cleans what is written through it. Writes end at whole characters, as
// those of fmt and tabwriter do.
type cleanWriter struct{ w io.Writer }

func (c cleanWriter) Write(b []byte) (int, error) {
	if _, err := io.WriteString(c.w, clean(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}
