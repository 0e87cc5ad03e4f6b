package arch

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var quoted = regexp.MustCompile("`([^`]+)`")

// foreign maps each module path that any Go file imports from elsewhere to
// one of those files.
func foreign(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return skip(file, entry.Name())
		}
		if !strings.HasSuffix(file, ".go") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			host, _, _ := strings.Cut(imported, "/")
			if err == nil && strings.Contains(host, ".") && !strings.HasPrefix(imported+"/", module) {
				found[imported] = file
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestEveryDependencyHasAReason(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(root, "docs", "dependencies.md"))
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, name := range quoted.FindAllStringSubmatch(string(page), -1) {
		listed[name[1]] = false
	}
	for imported, file := range foreign(t) {
		known := false
		for name := range listed {
			if strings.Contains(name, ".") && (imported == name || strings.HasPrefix(imported, name+"/")) {
				known, listed[name] = true, true
			}
		}
		if !known {
			t.Errorf("%s, imported by %s, has no line in docs/dependencies.md", imported, strings.TrimPrefix(file, root+"/"))
		}
	}
	for name, used := range listed {
		host, _, isPath := strings.Cut(name, "/")
		tool := strings.Contains(name, "golangci-lint") || strings.Contains(name, "gremlins") || strings.Contains(name, "nfpm")
		if isPath && strings.Contains(host, ".") && !used && !tool {
			t.Errorf("docs/dependencies.md lists %s, which nothing imports", name)
		}
	}
}

// sdks are the providers' own, which bring much along.
var sdks = []string{"github.com/openai/", "github.com/anthropics/", "google.golang.org/genai"}

// Only the packages that reach a provider import its SDK.
func TestSDKsStayWithTheirRunners(t *testing.T) {
	t.Parallel()
	found := 0
	for _, p := range packages(t) {
		for imported := range p.imports {
			for _, sdk := range sdks {
				if !strings.HasPrefix(imported, sdk) {
					continue
				}
				found++
				if !strings.HasPrefix(p.path, "agent/runner/") {
					t.Errorf("%s imports %s; only agent/runner/* may", p.path, imported)
				}
			}
		}
	}
	if found == 0 {
		t.Error("nobody imports an SDK")
	}
}

// testOnly is what no user's binary needs.
var testOnly = []string{"testing", "pgregory.net/rapid"}

// Nothing that the command imports, directly or not, is made for tests.
func TestTheCommandHoldsNoTestCode(t *testing.T) {
	t.Parallel()
	all := map[string]*pkg{}
	for _, p := range packages(t) {
		all[p.path] = p
	}
	seen := map[string]bool{}
	var visit func(path string)
	visit = func(path string) {
		if seen[path] {
			return
		}
		seen[path] = true
		for imported := range all[path].imports {
			if slices.Contains(testOnly, imported) {
				t.Errorf("cmd/parley reaches %s, which imports %s", path, imported)
			}
			if own, ok := strings.CutPrefix(imported, module); ok {
				visit(own)
			}
		}
	}
	visit("cmd/parley")
	if len(seen) < 20 {
		t.Errorf("it saw only %d packages", len(seen))
	}
}
