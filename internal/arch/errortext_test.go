package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mayReadText are the files that decide by the text of an error, because there
// is nothing else to decide by.
var mayReadText = []string{
	"dialect/ag2/wire/code.go", // AG2's refusals carry a code and words, and no reason
	"journal/disk/",            // Pebble names a damaged block only in its text
}

// matchers are the functions that code decides by.
var matchers = []string{"Contains", "ContainsAny", "HasPrefix", "HasSuffix", "EqualFold", "Index", "LastIndex", "MatchString", "FindString", "FindStringSubmatch"}

// Texts are for people. Code that decides by a text breaks when the text is
// improved; errors.Is, errors.As, fault.CodeOf and fault.ReasonOf do not
// break.
func TestNoCodeDecidesByTheTextOfAnError(t *testing.T) {
	t.Parallel()
	seen := 0
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return skip(file, entry.Name())
		}
		relative, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		path := filepath.ToSlash(relative)
		// Packages that only tests import are tests.
		support := strings.HasSuffix(filepath.Base(filepath.Dir(file)), "test") || strings.HasPrefix(path, "conformance/")
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || support ||
			slices.ContainsFunc(mayReadText, func(prefix string) bool { return strings.HasPrefix(path, prefix) }) {
			return nil
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, nil, 0)
		if err != nil {
			return err
		}
		seen++
		for _, at := range decidesByText(parsed) {
			t.Errorf("%s:%d decides by the text of an error; give the error a fault.Reason and ask for that", path, set.Position(at).Line)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 100 {
		t.Fatalf("only %d files were read", seen)
	}
}

// decidesByText finds where the text of an error is matched or compared.
func decidesByText(file *ast.File) []token.Pos {
	var found []token.Pos
	texts := map[string]bool{} // variables that hold one
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			texts = map[string]bool{}
		case *ast.AssignStmt:
			if len(n.Lhs) == 1 && len(n.Rhs) == 1 && isText(n.Rhs[0], texts) {
				if name, ok := n.Lhs[0].(*ast.Ident); ok {
					texts[name.Name] = true
				}
			}
		case *ast.CallExpr:
			called, ok := n.Fun.(*ast.SelectorExpr)
			if ok && slices.Contains(matchers, called.Sel.Name) && slices.ContainsFunc(n.Args, func(a ast.Expr) bool { return isText(a, texts) }) {
				found = append(found, n.Pos())
			}
		case *ast.BinaryExpr:
			if (n.Op == token.EQL || n.Op == token.NEQ) && (isText(n.X, texts) && !empty(n.Y) || isText(n.Y, texts) && !empty(n.X)) {
				found = append(found, n.Pos())
			}
		case *ast.SwitchStmt:
			if n.Tag != nil && isText(n.Tag, texts) {
				found = append(found, n.Pos())
			}
		}
		return true
	})
	return found
}

// isText reports whether an expression is err.Error(), or a variable that is.
func isText(e ast.Expr, texts map[string]bool) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return texts[e.Name]
	case *ast.CallExpr:
		called, ok := e.Fun.(*ast.SelectorExpr)
		return ok && called.Sel.Name == "Error" && len(e.Args) == 0 && !iterator(called.X)
	}
	return false
}

// iterator reports whether Error() is that of an iterator called it, which
// returns an error.
func iterator(e ast.Expr) bool {
	name, ok := e.(*ast.Ident)
	return ok && name.Name == "it"
}

func empty(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e.Value == `""`
	case *ast.Ident:
		return e.Name == "nil"
	}
	return false
}

func TestDecidesByText(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]int{
		`strings.Contains(err.Error(), "x")`:                1,
		`says := err.Error(); strings.HasPrefix(says, "x")`: 1,
		`_ = err.Error() == "x"`:                            1,
		`switch err.Error() { case "x": }`:                  1,
		`turn.FindStringSubmatch(err.Error())`:              1,
		`_ = it.Error() == nil`:                             0,
		`log.Warn(err.Error())`:                             0,
		`strings.Contains(name, "x")`:                       0,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nfunc f() { "+code+" }", 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(decidesByText(file)); got != want {
			t.Errorf("%s: %d places found, want %d", code, got, want)
		}
	}
}
