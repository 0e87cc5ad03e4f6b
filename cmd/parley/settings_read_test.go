package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/parley-hub/parley/dialect/ag2"
	"github.com/parley-hub/parley/dialect/hpd"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/internal/wsconn"
	"github.com/parley-hub/parley/server/api"
	"github.com/parley-hub/parley/server/config"
)

// TestEverySettingIsRead fails for a setting that changes nothing: a field of
// the configuration, or of the limits that it is copied into, whose value no
// code reads. Filling in a default is not reading.
func TestEverySettingIsRead(t *testing.T) {
	t.Parallel()
	read := fieldsRead(t)
	var unread func(reflect.Type)
	unread = func(s reflect.Type) {
		for i := range s.NumField() {
			f := s.Field(i)
			if f.Type.Kind() == reflect.Struct && f.Type.PkgPath() == s.PkgPath() {
				unread(f.Type)
				continue
			}
			if f.Anonymous {
				continue
			}
			if name := fieldName(s.PkgPath(), s.Name(), f.Name); !read[name] {
				t.Errorf("nothing reads %s: the setting changes nothing", name)
			}
		}
	}
	for _, s := range []any{config.Config{}, hub.Limits{}, api.Limits{}, ag2.Limits{}, hpd.Limits{}, wsconn.Limits{}} {
		unread(reflect.TypeOf(s))
	}
}

func fieldName(pkg, typeName, field string) string {
	return strings.TrimPrefix(pkg, "github.com/parley-hub/parley/") + "." + typeName + "." + field
}

// fieldsRead finds the fields of our structs that code of the command reads.
func fieldsRead(t *testing.T) map[string]bool {
	t.Helper()
	type listed struct {
		ImportPath, Dir, Export string
		GoFiles                 []string
	}
	cmd := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles", ".")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	exports := map[string]string{}
	var ours []listed
	for in := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := in.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
		if strings.HasPrefix(p.ImportPath, "github.com/parley-hub/parley/") {
			ours = append(ours, p)
		}
	}
	files := token.NewFileSet()
	compiled := importer.ForCompiler(files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	read := map[string]bool{}
	for _, p := range ours {
		var parsed []*ast.File
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			parsed = append(parsed, f)
		}
		info := &types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}}
		if _, err := (&types.Config{Importer: compiled}).Check(p.ImportPath, files, parsed, info); err != nil {
			t.Fatal(err)
		}
		written := writtenIn(parsed)
		for at, s := range info.Selections {
			if s.Kind() == types.FieldVal && !written[at] {
				read[ownerOf(s)] = true
			}
		}
	}
	return read
}

// writtenIn are the selectors that code only writes to, or takes the address
// of to do so.
func writtenIn(files []*ast.File) map[ast.Expr]bool {
	written := map[ast.Expr]bool{}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.UnaryExpr:
				if n.Op == token.AND {
					written[n.X] = true
				}
			case *ast.AssignStmt:
				for _, to := range n.Lhs {
					written[to] = true
				}
			}
			return true
		})
	}
	return written
}

// ownerOf names the field that a selection ends at, with the struct that
// declares it, through embedded ones.
func ownerOf(s *types.Selection) string {
	at := s.Recv()
	var owner *types.Named
	for _, i := range s.Index() {
		if p, ok := at.Underlying().(*types.Pointer); ok {
			at = p.Elem()
		}
		owner, _ = types.Unalias(at).(*types.Named)
		fields, ok := at.Underlying().(*types.Struct)
		if !ok {
			return ""
		}
		at = fields.Field(i).Type()
	}
	if owner == nil || owner.Obj().Pkg() == nil {
		return ""
	}
	return fieldName(owner.Obj().Pkg().Path(), owner.Obj().Name(), s.Obj().Name())
}
