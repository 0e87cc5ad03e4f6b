package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/conformance"
)

const passed = `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA/x"}
{"Action":"attr","Package":"p","Test":"TestA/x","Key":"spec","Value":"seed-004#1"}
{"Action":"attr","Package":"p","Test":"TestA/x","Key":"other","Value":"seed-004#9"}
{"Action":"output","Package":"p","Test":"TestA/x","Output":"quiet\n"}
{"Action":"pass","Package":"p","Test":"TestA/x"}
{"Action":"pass","Package":"p"}
`

func TestExitAndOutput(t *testing.T) {
	t.Parallel()
	attr := func(test, statement string) string {
		return `{"Action":"attr","Package":"q","Test":"` + test + `","Key":"spec","Value":"` + statement + `"}` + "\n"
	}
	end := func(action, test string) string {
		return `{"Action":"` + action + `","Package":"q","Test":"` + test + `"}` + "\n"
	}
	start := `{"Action":"start","Package":"q"}` + "\n"
	tests := []struct {
		name   string
		stream string
		want   counts
		exit   int
		stderr string
	}{
		{"a statement whose test passes", passed, count(1, 1, nil), 0, ""},
		{
			"one of two tests fails", passed + start + attr("TestB", "seed-004#1") + attr("TestC", "seed-004#2") +
				`{"Action":"output","Package":"q","Test":"TestB","Output":"because\n"}` + "\n" +
				end("fail", "TestB") + end("pass", "TestC") + end("fail", ""),
			count(2, 1, []int{1}), 1, "because\nreport: package q failed\nreport: seed-004#1 does not hold: q TestB\n",
		},
		{
			"the failing test comes first", start + attr("TestB", "seed-004#1") + end("fail", "TestB") + end("fail", "") + passed,
			count(1, 0, []int{1}), 1, "report: package q failed\nreport: seed-004#1 does not hold: q TestB\n",
		},
		{
			"a skipped test holds nothing", start + attr("TestB", "seed-004#3") + end("skip", "TestB") + end("pass", ""),
			count(1, 0, []int{3}), 1, "report: seed-004#3 does not hold: q TestB\n",
		},
		{
			"a test that never ended", start + attr("TestB", "seed-004#3"),
			count(1, 0, []int{3}), 1, "report: package q never ended\nreport: seed-004#3 does not hold: q TestB\n",
		},
		{
			"a package that does not build", passed +
				`{"ImportPath":"q [q.test]","Action":"build-output","Output":"q.go:1: no\n"}` + "\n" + start +
				`{"Action":"fail","Package":"q","FailedBuild":"q [q.test]"}` + "\n",
			count(1, 1, nil), 1, "q.go:1: no\nreport: package q did not build\n",
		},
		{
			"a package fails though no statement does", passed + start + end("fail", ""),
			count(1, 1, nil), 1, "report: package q failed\n",
		},
		{"words of the go command", "go: downloading x\n" + passed, count(1, 1, nil), 0, "go: downloading x\n"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var out, errs bytes.Buffer
			exit := run([]string{"-json"}, strings.NewReader(tc.stream), &out, &errs)
			var got struct{ Files map[string]counts }
			if err := json.Unmarshal(out.Bytes(), &got); err != nil {
				t.Fatalf("%v in %q", err, out.String())
			}
			row := got.Files["seed-004"]
			if len(row.Missing) != row.Statements-row.Named {
				t.Errorf("%d missing of %d with %d named", len(row.Missing), row.Statements, row.Named)
			}
			row.Missing = nil
			if diff := cmp.Diff(tc.want, row); diff != "" {
				t.Errorf("row (-want +got):\n%s", diff)
			}
			if exit != tc.exit || errs.String() != tc.stderr {
				t.Errorf("exit %d, stderr %q; want %d, %q", exit, errs.String(), tc.exit, tc.stderr)
			}
		})
	}
}

func count(named, passing int, failing []int) counts {
	if failing == nil {
		failing = []int{}
	}
	return counts{Statements: 53, Named: named, Passing: passing, Failing: failing}
}

func TestJSONHasEveryFile(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	run([]string{"-json"}, strings.NewReader(passed), &out, &errs)
	var got struct {
		Files map[string]map[string]any `json:"files"`
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	for _, file := range conformance.All().Files() {
		for _, key := range []string{"statements", "named", "passing", "missing", "failing"} {
			if got.Files[file][key] == nil {
				t.Errorf("%s lacks %s", file, key)
			}
		}
	}
	if len(got.Files) != len(conformance.All().Files()) {
		t.Errorf("%d files, want %d", len(got.Files), len(conformance.All().Files()))
	}
}

func TestInteropIsMerged(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		lines  string
		exit   int
		want   string // in standard output
		stderr string
	}{
		{"passed", `{"statement":"seed-004#2","test":"test_x","passed":true}` + "\n\n", 0, "seed-004               53          2          2\n", ""},
		{"failed", `{"statement":"seed-004#1","test":"test_x","passed":false}`, 1, "seed-004               53          1          0\n", "report: seed-004#1 does not hold: py.jsonl test_x\n"},
		{"unknown statement", `{"statement":"seed-004#999","test":"test_x","passed":true}`, 1, "", "report: py.jsonl test_x: there is no statement seed-004#999\n"},
		{"half a result", `{"statement":"seed-004#1","test":"test_x"}`, 1, "", "FILE:1: a result has statement, test and passed\n"},
		{"no JSON", `nonsense`, 1, "", "FILE:1: invalid character"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "py.jsonl")
			if err := os.WriteFile(file, []byte(tc.lines), 0o600); err != nil {
				t.Fatal(err)
			}
			var out, errs bytes.Buffer
			exit := run([]string{"-interop", filepath.Join(filepath.Dir(file), "*.jsonl")}, strings.NewReader(passed), &out, &errs)
			stderr := strings.ReplaceAll(errs.String(), file, "FILE")
			if exit != tc.exit || !strings.Contains(out.String(), tc.want) || !strings.Contains(stderr, tc.stderr) {
				t.Errorf("exit %d\nstdout %s\nstderr %s", exit, out.String(), stderr)
			}
			if tc.stderr == "" && stderr != "" {
				t.Errorf("stderr %q, want none", stderr)
			}
		})
	}
}

func TestListNamesTestsAndAmendments(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	if exit := run([]string{"-v"}, strings.NewReader(passed), &out, &errs); exit != 0 {
		t.Fatalf("exit %d: %s", exit, errs.String())
	}
	for _, want := range []string{
		"passing  seed-004#1  " + conformance.All()[conformance.ID{File: "seed-004", N: 1}] + "\n         by p TestA/x\n",
		"missing  seed-004#2  ",
		"         held as: a hub opened with AG2's adapters\n",
		"all                  1168          1          1\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the list lacks %q", want)
		}
	}
}

func TestRefusedCalls(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, stream, stderr string
		args                 []string
		exit                 int
	}{
		{"nothing ran", "", "report: no test ran: standard input held no results of `go test -json`\n", nil, 1},
		{"unknown flag", passed, "flag provided but not defined: -x", []string{"-x"}, 2},
		{"argument", passed, `report: unexpected argument "file"`, []string{"file"}, 2},
		{"bad glob", passed, "report: interop results: syntax error in pattern", []string{"-interop", "["}, 1},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var out, errs bytes.Buffer
			exit := run(tc.args, strings.NewReader(tc.stream), &out, &errs)
			if exit != tc.exit || !strings.Contains(errs.String(), tc.stderr) || out.Len() > 0 {
				t.Errorf("exit %d, stdout %q, stderr %q", exit, out.String(), errs.String())
			}
		})
	}
}
