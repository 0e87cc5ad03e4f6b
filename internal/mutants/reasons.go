package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
)

// reasons says why a mutant may live. A mutant is named by its file, its kind
// and the text of its line, which outlives line numbers.
type reasons map[string]string

// readReasons reads lines of the form
//
//	file | KIND | the line's code | why
//
// Empty lines and those that begin with # are for people.
func readReasons(name string) (reasons, error) {
	found := reasons{}
	if name == "" {
		return found, nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		head, why, ok := cutLast(line, " | ")
		if !ok || strings.Count(head, " | ") < 2 {
			return nil, fmt.Errorf("%s:%d: a reason looks like: file | KIND | code | why", name, n)
		}
		found[head] = why
	}
	return found, lines.Err()
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

func (r reasons) why(m mutant, code string) string {
	if why, ok := r[m.file+" | "+m.kind+" | "+code]; ok {
		return "why: " + why
	}
	return "why: not explained yet"
}
