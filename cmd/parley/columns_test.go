package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

// A list fits a screen, whatever it holds; with -o wide nothing is left out.
func TestListsFitAScreen(t *testing.T) {
	t.Parallel()
	columns := []column{{"CHANNEL", ids}, {"TURN", flexible}, {"TITLE", flexible}, {"ALL", wide}}
	long := strings.Repeat("名前", 60)
	rows := [][]string{
		{"0190aaaaaaaaaaaa00000000000000aa", "alice", long, "x"},
		{"home.0190aaaaaaaaaaab00000000000000ab", long, "short", "y"},
	}
	var out bytes.Buffer
	a := &app{streams: streams{out: &out}, output: "text"}
	if err := a.writeColumns(&out, columns, rows); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for _, line := range lines {
		if width := ansi.StringWidth(line); width > screenWidth {
			t.Errorf("%d columns: %s", width, line)
		}
	}
	if len(lines) != 3 || !strings.HasPrefix(lines[1], "0190aaaaaaaaaaaa  alice ") || !strings.HasPrefix(lines[2], "0190aaaaaaaaaaab  ") || strings.Contains(lines[0], "ALL") {
		t.Errorf("%q", lines)
	}
	out.Reset()
	a.output = "wide"
	if err := a.writeColumns(&out, columns, rows); err != nil || !strings.Contains(out.String(), long) || !strings.Contains(out.String(), "home.0190aaaaaaaaaaab00000000000000ab") {
		t.Errorf("%v %s", err, out.String())
	}
}
