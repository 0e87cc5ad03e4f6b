package arch

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	maxFiles = 50  // of a package, tests left out
	maxLines = 450 // of a file, tests left out
	midLines = 120 // that half of all files must not exceed, tests left out
)

// moreFiles are the packages that may have more files, with how many and why.
// The numbers only go down.
var moreFiles = map[string]struct {
	files int
	why   string
}{
	"cmd/parley": {1_000, "one file for each command"},
}

// longFiles are the files that may be longer, with why.
var longFiles = map[string]string{}

func TestPackagesAndFilesStaySmall(t *testing.T) {
	t.Parallel()
	files := map[string]int{}
	var lengths []int
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return skip(file, entry.Name())
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		relative, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(relative)
		files[filepath.ToSlash(filepath.Dir(relative))]++
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		lines := bytes.Count(text, []byte("\n"))
		lengths = append(lengths, lines)
		if _, listed := longFiles[name]; !listed && lines > maxLines {
			t.Errorf("%s has %d lines; at most %d without a reason in longFiles", name, lines, maxLines)
		} else if listed && lines <= maxLines {
			t.Errorf("%s has %d lines: take it out of longFiles", name, lines)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(lengths)
	if median := lengths[(len(lengths)-1)/2]; median > midLines {
		t.Errorf("half of the files have %d lines or more; at most %d: split some that hold more than one subject", median, midLines)
	}
	for dir, n := range files {
		limit := maxFiles
		if more, listed := moreFiles[dir]; listed {
			limit = more.files
		}
		if n > limit {
			t.Errorf("%s has %d files without tests; at most %d: move a subject to a package of its own", dir, n, limit)
		}
	}
}
