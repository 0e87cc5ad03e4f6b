package arch

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	dialectPackage = regexp.MustCompile(`^github\.com/parley-hub/parley/dialect/[a-z0-9]+$`)
	mayName        = regexp.MustCompile(`^dialects?(_.*)?\.go$`)
)

// A new dialect is added to the command in dialects.go and a file of its own; the rest
// of the command serves whatever list of dialects it is given. Commands for a dialect's
// own clients may use its wire.
func TestOnlyTheFilesOfDialectsNameThem(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(root, "cmd", "parley", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	naming := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range parsed.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil || !dialectPackage.MatchString(path) {
				continue
			}
			naming++
			if !mayName.MatchString(filepath.Base(file)) {
				t.Errorf("%s imports %s; dialects.go and dialect_NAME.go alone name dialects", filepath.Base(file), path)
			}
		}
	}
	if naming < 3 {
		t.Errorf("found %d imports of dialects; there are at least 3", naming)
	}
}
