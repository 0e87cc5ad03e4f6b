package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	module = "github.com/parley-hub/parley/"
	root   = "../.."
)

// pkg is a folder's Go files, tests left out.
type pkg struct {
	path    string
	name    string
	files   []*ast.File
	imports map[string]bool
}

// packages reads the module's own folders, so that the test cache notices a
// new one.
func packages(t *testing.T) []*pkg {
	t.Helper()
	found := map[string]*pkg{}
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			return skip(file, name)
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(relative)
		if found[dir] == nil {
			found[dir] = &pkg{path: dir, name: parsed.Name.Name, imports: map[string]bool{}}
		}
		p := found[dir]
		p.files = append(p.files, parsed)
		for _, spec := range parsed.Imports {
			if imported, err := strconv.Unquote(spec.Path.Value); err == nil {
				p.imports[imported] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 5 {
		t.Fatalf("found only %d packages under %s", len(found), root)
	}
	return slices.SortedFunc(maps.Values(found), func(a, b *pkg) int { return strings.Compare(a.path, b.path) })
}

// skip leaves out folders that are no part of the module.
func skip(dir, name string) error {
	if dir == root {
		return nil
	}
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	if err == nil || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || ignored[name] {
		return fs.SkipDir
	}
	return nil
}

var ignored = map[string]bool{"testdata": true, "vendor": true, "node_modules": true, "bin": true, "build": true}

func TestImportsFollowTheTable(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		if _, ok := rowOf(p.path); !ok {
			t.Errorf("%s has no row in the import table; add one here and its reason to docs/architecture.md", p.path)
			continue
		}
		for imported := range p.imports {
			ours, ok := strings.CutPrefix(imported, module)
			if ok && !mayImport(p.path, ours) {
				t.Errorf("%s imports %s; it may import %v", p.path, ours, allowed(p.path))
			}
		}
	}
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		want := "Package " + p.name + " "
		if p.name == "main" {
			want = "Command " + filepath.Base(p.path) + " "
		}
		comments := 0
		for _, file := range p.files {
			if file.Doc == nil {
				continue
			}
			comments++
			if first, _, _ := strings.Cut(file.Doc.Text(), "\n"); !strings.HasPrefix(first, want) {
				t.Errorf("%s: the package comment begins %q, not %q", p.path, first, want)
			}
		}
		if comments != 1 {
			t.Errorf("%s has %d package comments, not one", p.path, comments)
		}
	}
}

func TestTheTableItself(t *testing.T) {
	t.Parallel()
	tests := []struct {
		pkg, imported string
		want          bool
	}{
		{"envelope", "fault", false},
		{"journal/disk", "journal", true},
		{"journal/disk", "envelope", false},
		{"message/provider/openai", "message", true},
		{"message", "envelope", false},
		{"identity", "fault", true},
		{"view", "graph", false},
		{"adapter/workflow", "graph", true},
		{"adapter/workflow", "message", true},
		{"adapter/workflow", "hub", false},
		{"hub", "envelope", true},
		{"hub", "adapter/workflow", false},
		{"hub", "graph", false},
		{"dialect/ag2/wire", "hub", false},
		{"dialect/hpd/wire", "view/branch", true},
		{"dialect/hpd/wire", "adapter/branch", false},
		{"dialect/hpd", "adapter/branch", true},
		{"view/branch", "dialect/hpd/wire", false},
		{"dialect/ag2", "dialect/ag2/wire", true},
		{"dialect/ag2", "dialect/hpd/wire", false},
		{"dialect/ag2", "dialect/hpd", false},
		{"dialect/ag2", "hub", true},
		{"client", "dialect/ag2/wire", true},
		{"client", "identity", true},
		{"client", "hub", false},
		{"client/v1", "fault", true},
		{"client/v1", "hub", false},
		{"client/v1", "journal", false},
		{"client/v1", "server", false},
		{"client/hpd", "dialect/hpd/wire", true},
		{"client/hpd", "dialect/hpd", false},
		{"client/v1", "server/problem", false},
		{"client", "dialect/ag2", false},
		{"agent", "client", false},
		{"agent", "hub", false},
		{"agent", "journal", false},
		{"agent", "adapter/workflow", true},
		{"cmd/parley", "hub", true},
		{"server/access", "hub", true},
	}
	for _, tc := range tests {
		if got := mayImport(tc.pkg, tc.imported); got != tc.want {
			t.Errorf("%s may import %s: %v, want %v", tc.pkg, tc.imported, got, tc.want)
		}
	}
}
