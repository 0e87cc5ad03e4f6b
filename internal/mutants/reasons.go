package main

import (
	"bufio"
	"fmt"
	"os"
	"path"
	"strings"
)

// reasons say why mutants may live. The first that fits a mutant counts.
type reasons []reason

// reason names mutants by file, kind and the text of the line, which outlives
// line numbers. The file is a pattern of [path.Match].
type reason struct{ file, kind, code, why string }

// anything fits every kind and every line.
const anything = "*"

// readReasons reads lines of the form
//
//	file | KIND | the line's code | why
//
// Empty lines and those that begin with # are for people.
func readReasons(name string) (reasons, error) {
	if name == "" {
		return nil, nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var found reasons
	lines := bufio.NewScanner(file)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		r, ok := parseReason(line)
		if !ok {
			return nil, fmt.Errorf("%s:%d: a reason looks like: file | KIND | code | why", name, n)
		}
		if _, err := path.Match(r.file, ""); err != nil {
			return nil, fmt.Errorf("%s:%d: %q is not a file pattern: %w", name, n, r.file, err)
		}
		found = append(found, r)
	}
	return found, lines.Err()
}

// parseReason splits a line; only the code may hold the separator itself.
func parseReason(line string) (reason, bool) {
	fields := strings.Split(line, " | ")
	last := len(fields) - 1
	if last < 3 {
		return reason{}, false
	}
	return reason{fields[0], fields[1], strings.Join(fields[2:last], " | "), fields[last]}, true
}

func (r reason) matches(m mutant, code string) bool {
	inFile, _ := path.Match(r.file, m.file) // a bad pattern was refused
	return inFile && (r.kind == anything || r.kind == m.kind) && (r.code == anything || r.code == code)
}

func (r reasons) why(m mutant, code string) string {
	for _, known := range r {
		if known.matches(m, code) {
			return "why: " + known.why
		}
	}
	return "why: not explained yet"
}
