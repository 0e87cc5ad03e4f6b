// Package toon writes JSON in the Token-Oriented Object Notation, which AGH's
// commands print with -o toon: indentation in place of brackets, and lists of
// like objects as tables.
package toon

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-hub/parley/internal/jsonscan"
)

// Append writes one checked JSON value, with a line break after each line.
func Append(buf, value []byte) []byte {
	w := writer{out: buf}
	value = jsonscan.Trim(value)
	switch value[0] {
	case '{':
		w.members(value, 0)
	case '[':
		w.list("", value, 0)
	default:
		w.line(0, scalar(value))
	}
	return w.out
}

type writer struct{ out []byte }

const indent = "  "

func (w *writer) line(depth int, text string) {
	w.out = append(append(append(w.out, strings.Repeat(indent, depth)...), text...), '\n')
}

// members writes an object, a line or more for each member.
func (w *writer) members(object []byte, depth int) {
	for name, value := range jsonscan.Members(object) {
		w.member(key(string(name)), value, depth)
	}
}

func (w *writer) member(name string, value []byte, depth int) {
	switch value[0] {
	case '{':
		w.line(depth, name+":")
		w.members(value, depth+1)
	case '[':
		w.list(name, value, depth)
	default:
		w.line(depth, name+": "+scalar(value))
	}
}

// list writes a list after the text that precedes its length: scalars on one
// line, like objects as a table, and anything else as items.
func (w *writer) list(before string, array []byte, depth int) {
	all := slices.Collect(jsonscan.Elements(array))
	head := before + "[" + strconv.Itoa(len(all)) + "]"
	if len(all) == 0 {
		w.line(depth, head+":")
		return
	}
	if !slices.ContainsFunc(all, nested) {
		w.line(depth, head+": "+row(all))
		return
	}
	if names, rows := tabular(all); names != nil {
		w.line(depth, head+"{"+strings.Join(names, ",")+"}:")
		for _, cells := range rows {
			w.line(depth+1, row(cells))
		}
		return
	}
	w.line(depth, head+":")
	for _, value := range all {
		w.item(value, depth+1)
	}
}

// item writes an element of a list: its first line follows a hyphen.
func (w *writer) item(value []byte, depth int) {
	begin := len(w.out)
	switch value[0] {
	case '{':
		w.members(value, depth+1)
	case '[':
		w.list("", value, depth+1)
	default:
		w.line(depth+1, scalar(value))
	}
	if len(w.out) == begin {
		w.line(depth, "-")
		return
	}
	copy(w.out[begin+depth*len(indent):], "- ")
}

func nested(value []byte) bool { return value[0] == '{' || value[0] == '[' }

// tabular returns the columns and rows of objects that have the same members,
// all of them scalars; nil: they are not a table.
func tabular(all [][]byte) (names []string, rows [][][]byte) {
	var columns []string
	for i, value := range all {
		if value[0] != '{' {
			return nil, nil
		}
		cells := map[string][]byte{}
		for name, v := range jsonscan.Members(value) {
			if nested(v) {
				return nil, nil
			}
			if i == 0 {
				columns = append(columns, string(name))
			}
			cells[string(name)] = v
		}
		if len(cells) == 0 || len(cells) != len(columns) {
			return nil, nil
		}
		cut := make([][]byte, len(columns))
		for j, name := range columns {
			if cut[j] = cells[name]; cut[j] == nil {
				return nil, nil
			}
		}
		rows = append(rows, cut)
	}
	for _, name := range columns {
		names = append(names, key(name))
	}
	return names, rows
}

func row(cells [][]byte) string {
	var texts []string
	for _, c := range cells {
		texts = append(texts, scalar(c))
	}
	return strings.Join(texts, ",")
}

var plainKey = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*$`)

func key(name string) string {
	if plainKey.MatchString(name) {
		return name
	}
	return quote(name)
}

// scalar returns a text, number, truth value or null.
func scalar(value []byte) string {
	text, ok := jsonscan.Text(value)
	switch {
	case !ok && bytes.ContainsAny(value, "eE"):
		if f, err := strconv.ParseFloat(string(value), 64); err == nil {
			return strconv.FormatFloat(f, 'f', -1, 64) // the notation has no exponents
		}
		return string(value)
	case !ok:
		return string(value)
	case mustQuote(text):
		return quote(text)
	}
	return text
}

var likeNumber = regexp.MustCompile(`^-?\d+(\.\d+)?([eE][+-]?\d+)?$`)

func mustQuote(s string) bool {
	return s == "" || s == "true" || s == "false" || s == "null" || s[0] == '-' || strings.TrimSpace(s) != s ||
		likeNumber.MatchString(s) || strings.ContainsAny(s, `:"\[]{},`) || strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r == 0x7f })
}

var escapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`)

// quote writes a text in quotes. Control characters that the notation cannot
// escape are left out, so that a text cannot control a terminal.
func quote(s string) string {
	s = escapes.Replace(s)
	return `"` + strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f {
			return -1
		}
		return r
	}, s) + `"`
}
