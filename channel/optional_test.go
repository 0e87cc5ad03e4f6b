package channel_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The table at the top of optional.go is where the author of an adapter looks for what
// an adapter may offer, so it must name every optional interface.
func TestTheTableNamesEveryOptionalInterface(t *testing.T) {
	t.Parallel()
	table, declared := tableOf(t), interfacesIn(t, "optional.go")
	for _, name := range declared {
		if !slices.Contains(table, name) {
			t.Errorf("the table of optional.go lacks %s", name)
		}
	}
	all := slices.Concat(declared, interfacesIn(t, "items.go"), interfacesIn(t, "say.go"))
	for _, name := range table {
		if !slices.Contains(all, name) {
			t.Errorf("the table of optional.go names %s, which is no interface of optional.go, items.go or say.go", name)
		}
	}
}

// tableOf lists the first column of the table.
func tableOf(t *testing.T) (names []string) {
	text, err := os.ReadFile("optional.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rows, found := strings.Cut(string(text), "//\tInterface ")
	rows, _, ended := strings.Cut(rows, "\n//\n")
	if !found || !ended {
		t.Fatal("optional.go has no table")
	}
	for _, row := range regexp.MustCompile(`(?m)^//\t(\w+) `).FindAllStringSubmatch(rows, -1) {
		names = append(names, row[1])
	}
	return names
}

func interfacesIn(t *testing.T, file string) (names []string) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if spec, ok := n.(*ast.TypeSpec); ok {
			if _, ok := spec.Type.(*ast.InterfaceType); ok {
				names = append(names, spec.Name.Name)
			}
		}
		return true
	})
	return names
}
