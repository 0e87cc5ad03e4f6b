package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// inProcess are the methods of a dialect's Hub that take or return a function, with
// why. Everything else that a dialect asks could be sent to another machine. The
// list only gets shorter.
var inProcess = map[string]string{
	"Attend":  "ends presence, which is gone with the process",
	"Outside": "is set once, before anything is served",
	"Sight":   "judges a page of envelopes by one snapshot; the page could be sent instead",
	"Viewer":  "judges a page of envelopes by one snapshot; the page could be sent instead",
}

// A dialect calls the hub with data: no function and no channel is an argument
// or a result, except streams (iter) and what inProcess lists.
func TestDialectsAskWithData(t *testing.T) {
	t.Parallel()
	asked, used := 0, map[string]bool{}
	err := filepath.WalkDir(filepath.Join(root, "dialect"), func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for name, method := range hubMethods(parsed) {
			asked++
			if !holdsFunction(method) {
				continue
			}
			used[name] = true
			if inProcess[name] == "" {
				t.Errorf("%s: Hub.%s takes or returns a function or channel; ask with data", file, name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if asked < 60 {
		t.Errorf("found %d methods of dialects' hubs only", asked)
	}
	for name := range inProcess {
		if !used[name] {
			t.Errorf("no dialect asks for %s with a function any more: take it out of inProcess", name)
		}
	}
}

// hubMethods returns the methods of the interfaces named Hub in a file.
func hubMethods(file *ast.File) map[string]*ast.FuncType {
	methods := map[string]*ast.FuncType{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != "Hub" {
			return true
		}
		if iface, ok := spec.Type.(*ast.InterfaceType); ok {
			for _, field := range iface.Methods.List {
				if f, ok := field.Type.(*ast.FuncType); ok && len(field.Names) == 1 {
					methods[field.Names[0].Name] = f
				}
			}
		}
		return false
	})
	return methods
}

// holdsFunction reports whether a method has a function or a channel among its
// arguments and results.
func holdsFunction(method *ast.FuncType) (found bool) {
	for _, list := range []*ast.FieldList{method.Params, method.Results} {
		if list == nil {
			continue
		}
		for _, field := range list.List {
			ast.Inspect(field.Type, func(n ast.Node) bool {
				switch n.(type) {
				case *ast.FuncType, *ast.ChanType:
					found = true
				}
				return !found
			})
		}
	}
	return found
}
