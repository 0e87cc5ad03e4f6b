package main

import (
	"fmt"

	"github.com/parley-hub/parley/conformance"
)

// state is what became of one statement.
type state int

const (
	missing state = iota // no test names it
	failing              // a test that names it did not pass
	passing              // named, and every test that names it passed
)

func (s state) String() string {
	return [...]string{"missing", "failing", "passing"}[s]
}

// counts is one file's row; missing and failing list statement numbers.
type counts struct {
	Statements int   `json:"statements"`
	Named      int   `json:"named"`
	Passing    int   `json:"passing"`
	Missing    []int `json:"missing"`
	Failing    []int `json:"failing"`
}

type summary struct {
	statements conformance.Statements
	states     map[conformance.ID]state
	tests      map[conformance.ID][]string
	failures   []holding
}

// tally joins statements with the tests that name them.
func tally(statements conformance.Statements, held []holding) (*summary, error) {
	sum := &summary{
		statements: statements,
		states:     map[conformance.ID]state{},
		tests:      map[conformance.ID][]string{},
	}
	for _, h := range held {
		id, err := conformance.ParseID(h.statement)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", h.test, err)
		}
		if _, known := statements[id]; !known {
			return nil, fmt.Errorf("%s: there is no statement %s", h.test, id)
		}
		sum.tests[id] = append(sum.tests[id], h.test)
		switch {
		case !h.passed:
			sum.states[id] = failing
			sum.failures = append(sum.failures, h)
		case sum.states[id] == missing:
			sum.states[id] = passing
		}
	}
	return sum, nil
}

// count sums up one file.
func (s *summary) count(file string) counts {
	c := counts{Missing: []int{}, Failing: []int{}}
	for _, id := range s.statements.In(file) {
		c.Statements++
		switch s.states[id] {
		case missing:
			c.Missing = append(c.Missing, id.N)
		case failing:
			c.Named++
			c.Failing = append(c.Failing, id.N)
		case passing:
			c.Named++
			c.Passing++
		}
	}
	return c
}
