package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/parley-hub/parley/conformance"
)

func (s *summary) writeJSON(w io.Writer) error {
	files := map[string]counts{}
	for _, file := range s.statements.Files() {
		files[file] = s.count(file)
	}
	return json.NewEncoder(w).Encode(map[string]any{"files": files})
}

func (s *summary) writeTable(w io.Writer) error {
	fmt.Fprintf(w, "%-14s %10s %10s %10s\n", "file", "statements", "named", "passing")
	row := func(file string, c counts) error {
		_, err := fmt.Fprintf(w, "%-14s %10d %10d %10d\n", file, c.Statements, c.Named, c.Passing)
		return err
	}
	var all counts
	for _, file := range s.statements.Files() {
		c := s.count(file)
		if err := row(file, c); err != nil {
			return err
		}
		all.Statements += c.Statements
		all.Named += c.Named
		all.Passing += c.Passing
	}
	return row("all", all)
}

func (s *summary) writeList(w io.Writer) error {
	amended := conformance.Amendments()
	for _, file := range s.statements.Files() {
		for _, id := range s.statements.In(file) {
			fmt.Fprintf(w, "%s  %s  %s\n", s.states[id], id, s.statements[id])
			if form, ok := amended[id.String()]; ok {
				fmt.Fprintf(w, "         held as: %s\n", form)
			}
			for _, test := range s.tests[id] {
				fmt.Fprintf(w, "         by %s\n", test)
			}
		}
	}
	fmt.Fprintln(w)
	return s.writeTable(w)
}
