package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	walked = regexp.MustCompile("`([A-Za-z][A-Za-z0-9.]*)`")
	// placed are names with the file that they are in.
	placed = regexp.MustCompile("((?:`[A-Za-z][A-Za-z0-9.]*`(?:, )?)+) \\(([a-z0-9_/]+\\.go)\\)")
)

// The walks of docs/architecture.md name functions and methods that exist, in the
// files that they are said to be in.
func TestTheWalksNameWhatExists(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(page), "## Three walks through the code")
	text, _, ended := strings.Cut(text, "AG2's names in the core")
	if !found || !ended {
		t.Fatal("docs/architecture.md has no walks")
	}
	files := functions(t)
	known := map[string]bool{}
	for _, names := range files {
		for name := range names {
			known[name] = true
		}
	}
	count := 0
	for _, match := range walked.FindAllStringSubmatch(text, -1) {
		count++
		if name := lastPart(match[1]); !known[name] {
			t.Errorf("the walk names %s, which is no function here", match[1])
		}
	}
	if count < 40 {
		t.Errorf("the walks name %d functions only", count)
	}
	for _, match := range placed.FindAllStringSubmatch(text, -1) {
		names := namesIn(files, match[2])
		if names == nil {
			t.Errorf("the walk names %s, which is no file here", match[2])
			continue
		}
		for _, name := range walked.FindAllStringSubmatch(match[1], -1) {
			if !names[lastPart(name[1])] {
				t.Errorf("the walk says that %s is in %s; it is not", name[1], match[2])
			}
		}
	}
}

func lastPart(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// namesIn returns the functions of a file, which may be named by its last part.
func namesIn(files map[string]map[string]bool, file string) map[string]bool {
	if names, ok := files[file]; ok {
		return names
	}
	all := map[string]bool{}
	for name, names := range files {
		if strings.HasSuffix(name, "/"+file) {
			for n := range names {
				all[n] = true
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// functions returns the names of the functions and methods of each file, tests
// left out, and those of interfaces.
func functions(t *testing.T) map[string]map[string]bool {
	t.Helper()
	files := map[string]map[string]bool{}
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
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		names := map[string]bool{}
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				names[n.Name.Name] = true
			case *ast.InterfaceType:
				for _, method := range n.Methods.List {
					for _, name := range method.Names {
						names[name.Name] = true
					}
				}
			}
			return true
		})
		files[filepath.ToSlash(relative)] = names
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
