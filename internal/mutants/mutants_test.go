package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain replaces gremlins when the environment has an answer for it.
func TestMain(m *testing.M) {
	answer := os.Getenv("FAKE_GREMLINS")
	if answer == "" {
		os.Exit(m.Run())
	}
	for i, arg := range os.Args {
		if arg == "--output" {
			if err := os.WriteFile(os.Args[i+1], []byte(answer), 0o600); err != nil {
				os.Exit(3)
			}
		}
	}
	_, err := os.Stat(filepath.Join("pure", "code.go")) // it runs in the copy
	if err != nil {
		os.Exit(4)
	}
}

func TestReport(t *testing.T) {
	root := t.TempDir()
	for name, content := range map[string]string{
		"pure/code.go":  "package pure\n\nfunc f(a int) bool {\n\treturn a < 1 || a > 2\n}\n",
		"bin/big":       "left out",
		".git/HEAD":     "left out",
		"survivors.txt": "# why\n\npure/code.go | CONDITIONALS_BOUNDARY | return a < 1 || a > 2 | nobody minds\n",
		"wrong.txt":     "pure/code.go | X\n",
		"pattern.txt":   "# a\n[ | * | * | why\n",
	} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	answer := func(statuses ...string) string {
		var rows []string
		for i, status := range statuses {
			kind := "CONDITIONALS_BOUNDARY"
			if i > 0 {
				kind = "CONDITIONALS_NEGATION"
			}
			rows = append(rows, `{"type":"`+kind+`","status":"`+status+`","line":4,"column":11}`)
		}
		return `{"files":[{"file_name":"code.go","mutations":[` + strings.Join(rows, ",") + `]}]}`
	}
	tests := []struct {
		name, answer, reasons string
		exit                  int
		out, errs             []string
	}{
		{
			"good enough", answer(lived, killed, killed, killed, killed, killed, killed, notViable), "survivors.txt", 0,
			[]string{
				"LIVED       pure/code.go:4:11 CONDITIONALS_BOUNDARY\n            return a < 1 || a > 2\n            why: nobody minds\n",
				"./pure: 0.857 killed (6 killed, 1 lived, 0 not covered, 0 timed out, 1 not viable)\n",
			},
			nil,
		},
		{
			"not good enough", answer(killed, killed, killed, lived, notCovered), "survivors.txt", 1,
			[]string{"LIVED       pure/code.go:4:11 CONDITIONALS_NEGATION", "NOT COVERED pure/code.go:4:11", "why: not explained yet"},
			[]string{"./pure: 0.750 killed is less than 0.850"},
		},
		{"nothing to judge", answer(notCovered), "", 1, nil, []string{"no mutant could be judged"}},
		{"no result", "nonsense", "", 1, nil, []string{"gremlins on ./pure: invalid character"}},
		{"a line that is not there", strings.Replace(answer(lived), `"line":4`, `"line":40`, 1), "", 1, nil, []string{"has no line 40"}},
		{"bad reasons", answer(killed), "wrong.txt", 1, nil, []string{"wrong.txt:1: a reason looks like"}},
		{"bad pattern", answer(killed), "pattern.txt", 1, nil, []string{`pattern.txt:2: "[" is not a file pattern`}},
		{"no reasons", answer(killed), "missing.txt", 1, nil, []string{"no such file"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Setenv("FAKE_GREMLINS", tc.answer)
			args := []string{"-gremlins", os.Args[0], "-root", root}
			if tc.reasons != "" {
				args = append(args, "-reasons", filepath.Join(root, tc.reasons))
			}
			var out, errs bytes.Buffer
			if exit := run(t.Context(), append(args, "./pure"), &out, &errs); exit != tc.exit {
				t.Errorf("exit %d, want %d: %s", exit, tc.exit, errs.String())
			}
			for _, want := range tc.out {
				if !strings.Contains(out.String(), want) {
					t.Errorf("output lacks %q:\n%s", want, out.String())
				}
			}
			for _, want := range tc.errs {
				if !strings.Contains(errs.String(), want) {
					t.Errorf("stderr lacks %q:\n%s", want, errs.String())
				}
			}
		})
	}
	var out, errs bytes.Buffer
	if exit := run(t.Context(), nil, &out, &errs); exit != 2 || !strings.Contains(errs.String(), "usage") {
		t.Errorf("without a folder: exit %d, %s", exit, errs.String())
	}
}

func TestReasons(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "survivors.txt")
	if err := os.WriteFile(file, []byte(`
one/a.go | KIND | x := y | z | a pipe in the code
one/a.go | KIND | return -1 | this very line
one/a.go | * | return -1 | every kind
one/b.go | KIND | * | every line
one/*.go | * | case x: | in every file
two/*/*.go | * | * | everything below
two/*/a.go | * | * | too late
`), 0o600); err != nil {
		t.Fatal(err)
	}
	known, err := readReasons(file)
	if err != nil {
		t.Fatal(err)
	}
	const none = "not explained yet"
	for _, tc := range []struct{ file, kind, code, want string }{
		{"one/a.go", "KIND", "x := y | z", "a pipe in the code"},
		{"one/a.go", "OTHER", "x := y | z", none},
		{"one/a.go", "KIND", "return -1", "this very line"},
		{"one/a.go", "OTHER", "return -1", "every kind"},
		{"one/a.go", "OTHER", "return -2", none},
		{"one/b.go", "KIND", "anything", "every line"},
		{"one/b.go", "OTHER", "anything", none},
		{"one/c.go", "OTHER", "case x:", "in every file"},
		{"one/d/c.go", "OTHER", "case x:", none},
		{"two/d/a.go", "OTHER", "anything", "everything below"},
		{"two/a.go", "OTHER", "anything", none},
		{"two/d/e/a.go", "OTHER", "anything", none},
	} {
		if got := known.why(mutant{file: tc.file, kind: tc.kind}, tc.code); got != "why: "+tc.want {
			t.Errorf("%s %s %q: got %q, want %q", tc.file, tc.kind, tc.code, got, tc.want)
		}
	}
}

// The project's own reasons can be read.
func TestSurvivors(t *testing.T) {
	t.Parallel()
	known, err := readReasons("survivors.txt")
	if err != nil || len(known) == 0 {
		t.Fatalf("%d reasons, %v", len(known), err)
	}
	for _, r := range known {
		files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(r.file)))
		if err != nil || len(files) == 0 {
			t.Errorf("%s: no such file (%v)", r.file, err)
		}
		held := r.code == anything
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(text)) {
				held = held || strings.TrimSpace(line) == r.code
			}
		}
		if !held {
			t.Errorf("%s has no line %q any more", r.file, r.code)
		}
	}
}
