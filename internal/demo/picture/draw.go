package main

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Sizes of the drawing, in pixels.
const (
	columns   = 112
	halfWidth = 17 // of two characters
	lineStep  = 20
	margin    = 20
	header    = 40
)

// colours by what a line begins with; the first that fits counts.
var colours = []struct{ begins, fill string }{
	{"$ ", "#7ee787"}, {"   ***", "#ff7b72"}, {"   …", "#d2a8ff"}, {"14:05", "#e6edf3"}, {"Checked", "#7ee787"}, {"The path", "#79c0ff"},
}

// escape also replaces spaces: several in a row would be drawn as one.
var escape = strings.NewReplacer(" ", "\u00a0", "&", "&amp;", "<", "&lt;", ">", "&gt;")

// Draw makes a picture of a terminal with a text.
func Draw(text string) string {
	var rows, fills []string
	for line := range strings.Lines(text) {
		for _, row := range wrapped(strings.TrimRight(line, "\n")) {
			rows, fills = append(rows, row), append(fills, colour(line))
		}
	}
	width := 2*margin + columns*halfWidth/2
	height := header + margin + len(rows)*lineStep
	var b strings.Builder
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %[1]d %[2]d\" role=\"img\">\n", width, height)
	b.WriteString("<title>parley demo: four participants in four protocols, an approval, and a hub that is killed in the middle</title>\n")
	fmt.Fprintf(&b, "<rect width=\"%d\" height=\"%d\" rx=\"8\" fill=\"#0d1117\"/>\n", width, height)
	for i, fill := range []string{"#ff5f57", "#febc2e", "#28c840"} {
		fmt.Fprintf(&b, "<circle cx=\"%d\" cy=\"20\" r=\"6\" fill=\"%s\"/>\n", margin+i*20, fill)
	}
	b.WriteString("<g font-family=\"ui-monospace,SFMono-Regular,Menlo,Consolas,monospace\" font-size=\"14\">\n")
	for i, row := range rows {
		if strings.TrimSpace(row) == "" {
			continue
		}
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\" fill=\"%s\">%s</text>\n", margin, header+margin/2+i*lineStep, fills[i], escape.Replace(row))
	}
	b.WriteString("</g>\n</svg>\n")
	return b.String()
}

func colour(line string) string {
	for _, c := range colours {
		if strings.HasPrefix(line, c.begins) {
			return c.fill
		}
	}
	return "#9da7b3"
}

// indent begins the continuation of a wrapped line.
const indent = "          "

// wrapped breaks a line at a word.
func wrapped(line string) (rows []string) {
	for utf8.RuneCountInString(line) > columns {
		head := string([]rune(line)[:columns])
		at := strings.LastIndex(head, " ")
		if at <= len(indent) {
			at = len(head)
		}
		rows = append(rows, line[:at])
		line = indent + strings.TrimLeft(line[at:], " ")
	}
	return append(rows, line)
}
