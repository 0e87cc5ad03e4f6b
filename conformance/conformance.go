// Package conformance holds the numbered statements that Parley keeps, as
// data: the dialects' checklists, the seeds' statements, and the amendments
// that say in which other form a statement is held. It never runs anything;
// package spec ties tests to statements and package report counts them.
package conformance

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed checklists.json
var checklistsJSON []byte

//go:embed seeds.json
var seedsJSON []byte

//go:embed amendments.json
var amendmentsJSON []byte

// ID names one statement: the file that holds it and its number there.
type ID struct {
	File string
	N    int
}

func (id ID) String() string { return id.File + "#" + strconv.Itoa(id.N) }

// ParseID reads the form "ag2-hub#17".
func ParseID(s string) (ID, error) {
	file, number, ok := strings.Cut(s, "#")
	n, err := strconv.Atoi(number)
	if !ok || err != nil {
		return ID{}, fmt.Errorf("conformance: %q is not the name of a statement; it looks like ag2-hub#17", s)
	}
	return ID{File: file, N: n}, nil
}

// Statements maps each statement to its text.
type Statements map[ID]string

// All returns every numbered statement.
var All = sync.OnceValue(func() Statements {
	all := Statements{}
	for _, raw := range [][]byte{checklistsJSON, seedsJSON} {
		var files map[string][]struct {
			N    int    `json:"n"`
			Text string `json:"text"`
		}
		mustDecode(raw, &files)
		for file, list := range files {
			for _, s := range list {
				all[ID{File: file, N: s.N}] = s.Text
			}
		}
	}
	return all
})

// Amendments maps a statement to the form in which it is held instead.
var Amendments = sync.OnceValue(func() map[string]string {
	var amended map[string]string
	mustDecode(amendmentsJSON, &amended)
	return amended
})

// Files lists the files that have statements, sorted.
func (s Statements) Files() []string {
	seen := map[string]bool{}
	for id := range s {
		seen[id.File] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// In lists a file's statements in ascending order.
func (s Statements) In(file string) []ID {
	var ids []ID
	for id := range s {
		if id.File == file {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b ID) int { return a.N - b.N })
	return ids
}

// mustDecode panics on an error: the data is compiled in, so a decoding failure
// is a build defect.
func mustDecode(raw []byte, into any) {
	if err := json.Unmarshal(raw, into); err != nil {
		panic("conformance: embedded statements: " + err.Error())
	}
}
