package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// blocks finds the fenced blocks of a page: language, then text.
var blocks = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")

// mark stands in front of what a block prints.
const mark = "\x1e"

// TestBook types what the pages of the book show, from top to bottom. In a page
//   - a block sh is typed, with free ports in place of those that it names;
//   - a block mermaid, or one without a language, behind it is what that prints:
//     <name> stands for something without spaces, … for anything, a line … for any
//     lines, and several spaces are one;
//   - a block yaml or json whose first line is a comment "# NAME" is the file NAME.
//
// Every page has a folder and a hub of its own.
func TestBook(t *testing.T) {
	t.Parallel()
	for name, says := range map[string][]string{
		"concepts.md": nil, "channels.md": nil, "graphs.md": nil, "http.md": nil, "ag2.md": nil, "operate.md": nil,
		"agh.md": {
			"tug.s02", "sent ask-1", "When is high water?", "done ask-1", "completed: At six.", "state   completed", "1 hosted, 1 remote",
			`"text":"The tide turns."`, `"direct_id":"direct_84746c510d5845aa9078a8ca2f0f04a2"`,
		},
		"hpd.md": {
			"parrot takes part as a producer", `"id":"s-1"`, `"runtimeRunId":"`, ": hello \n", ": world\n", `data: {"version":"1.0",`,
			"other-tone  is a fork of main with 2 messages", "FORKED FROM",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := typePage(t, name)
			for _, want := range says {
				if !strings.Contains(out, want) {
					t.Errorf("%s: the commands never print %q: %s", name, want, out)
				}
			}
		})
	}
}

// freeAddress is one that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// typed runs lines as a person would type them, in a new folder and with free ports,
// until one fails. What they leave running is stopped.
func typed(t *testing.T, script string) (string, error) {
	t.Helper()
	script = "set -e\ntrap 'kill $(jobs -p) 2> kills; wait' EXIT\n" + script
	s := newScene(t, false)
	here, there := []string{}, []string{}
	for _, port := range []string{"7440", "7441", "4222"} {
		address := freeAddress(t)
		here, there = append(here, "127.0.0.1:"+port, address), append(there, address, "127.0.0.1:"+port)
	}
	s.env = append(s.env, "PARLEY_HTTP_LISTEN="+here[1])
	ctx, cancel := context.WithTimeout(t.Context(), 3*startTimeout)
	defer cancel()
	cmd, out := s.command(ctx, "bash", "-c", strings.NewReplacer(here...).Replace(script))
	err := cmd.Run()
	return strings.NewReplacer(there...).Replace(out.String()), err
}

// typePage types a page and returns everything that was printed.
func typePage(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile("../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	script := ""
	type promise struct{ typed, shown string }
	var promises []promise
	wasTyped := false // the block before was sh
	for _, b := range blocks.FindAllStringSubmatch(string(raw), -1) {
		language, text := b[1], b[2]
		if wasTyped && (language == "" || language == "mermaid") {
			promises[len(promises)-1].shown = text
		}
		wasTyped = language == "sh"
		switch file, ok := strings.CutPrefix(text, "# "); {
		case wasTyped:
			promises = append(promises, promise{typed: text})
			script += fmt.Sprintf("echo '%s'\n%s", mark, text)
		case ok && (language == "yaml" || language == "json"):
			file, _, _ = strings.Cut(file, "\n")
			script += fmt.Sprintf("cat > %s <<'END OF FILE'\n%sEND OF FILE\n", file, text)
		}
	}
	if len(promises) == 0 {
		t.Fatalf("%s has no block of commands", name)
	}
	all, err := typed(t, script)
	printed := strings.Split(all, mark+"\n")[1:]
	for i, p := range promises {
		if i >= len(printed) {
			break
		}
		if p.shown != "" && !asShown(p.shown).MatchString(tidy(printed[i])) {
			t.Errorf("%s: this\n%s\nprints\n%s\nand not\n%s", name, p.typed, printed[i], p.shown)
		}
	}
	if err != nil {
		t.Errorf("%s: %v: at the end of\n%s", name, err, all)
	}
	return all
}

var (
	curl    = regexp.MustCompile(`curl [^|>]*?(\$H/[^\s"?)|]+)`)
	methods = regexp.MustCompile(`-X ([A-Z]+)`)
)

// TestHTTPPageShowsEveryRoute holds the page to the document of the interface.
func TestHTTPPageShowsEveryRoute(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	shows := map[string]bool{}
	for line := range strings.Lines(string(raw)) {
		found := curl.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		method := http.MethodGet
		if strings.Contains(line, "--json") || strings.Contains(line, "--data") {
			method = http.MethodPost
		}
		if other := methods.FindStringSubmatch(line); other != nil {
			method = other[1]
		}
		shows[method+" "+strings.Replace(found[1], "$H", "/v1", 1)] = true
	}
	_, answer := ask(t, http.MethodGet, runningHub(t, nil).URL+"/v1/openapi.json", "")
	var doc struct {
		Paths map[string]map[string]any `json:"paths"`
	}
	if err := json.Unmarshal([]byte(answer), &doc); err != nil || len(doc.Paths) < 30 {
		t.Fatalf("%d routes, %v", len(doc.Paths), err)
	}
	for path, item := range doc.Paths {
		pattern := regexp.MustCompile(`\{\w+\}`).ReplaceAllString(path, `[^/]+`)
		for method := range item {
			want := regexp.MustCompile("^" + strings.ToUpper(method) + " " + pattern + "$")
			if !slices.ContainsFunc(slices.Collect(maps.Keys(shows)), want.MatchString) {
				t.Errorf("docs/http.md shows no %s %s", strings.ToUpper(method), path)
			}
		}
	}
}

// TestPagesShowGoThatRuns: a block of Go stands, line for line, in an example of a
// package, which go test runs.
func TestPagesShowGoThatRuns(t *testing.T) {
	t.Parallel()
	var examples strings.Builder
	for _, pattern := range []string{"../../*/example_test.go", "../../*/*/example_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			examples.Write(raw)
		}
	}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range append(pages, "../../README.md") {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range blocks.FindAllStringSubmatch(string(raw), -1) {
			if b[1] != "go" {
				continue
			}
			found++
			if !strings.Contains(examples.String(), b[2]) {
				t.Errorf("%s shows what no example_test.go has:\n%s", filepath.Base(file), b[2])
			}
		}
	}
	if found < 4 {
		t.Errorf("found only %d blocks of Go", found)
	}
}

var (
	links    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	headings = regexp.MustCompile("(?m)^#+ (.+)$")
)

// TestPagesLinkToWhatExists: files and headings are there, and every page is linked
// from the table of contents.
func TestPagesLinkToWhatExists(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(pages, "../../README.md", "../../CONTRIBUTING.md") {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range links.FindAllStringSubmatch(blocks.ReplaceAllString(string(raw), ""), -1) {
			target, anchor, _ := strings.Cut(found[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			there := file
			if target != "" {
				there = filepath.Join(filepath.Dir(file), target)
			}
			if _, err := os.Stat(there); err != nil {
				t.Errorf("%s links to %s, which is not there", filepath.Base(file), found[1])
				continue
			}
			if anchor != "" && !slices.Contains(anchorsOf(t, there), anchor) {
				t.Errorf("%s links to %s; there is no such heading", filepath.Base(file), found[1])
			}
		}
	}
	contents, err := os.ReadFile("../../docs/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range pages {
		if name := filepath.Base(file); name != "README.md" && !strings.Contains(string(contents), "]("+name+")") {
			t.Errorf("docs/README.md does not link %s", name)
		}
	}
}

// anchorsOf are the headings of a page as links name them.
func anchorsOf(t *testing.T, file string) []string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, h := range headings.FindAllStringSubmatch(string(raw), -1) {
		text := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, h[1])
		list = append(list, text)
	}
	return list
}

// tidy makes several spaces one.
func tidy(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.Join(strings.Fields(line), " ") + "\n")
	}
	return b.String()
}

var stands = regexp.MustCompile(`<[a-z]+>|…`)

// asShown is what a page shows, as a pattern.
func asShown(text string) *regexp.Regexp {
	pattern := "(?m)^"
	for line := range strings.Lines(tidy(text)) {
		if strings.TrimSpace(line) == "…" {
			pattern += `(?:.*\n)*?`
			continue
		}
		at := 0
		for _, found := range stands.FindAllStringIndex(line, -1) {
			pattern += regexp.QuoteMeta(line[at:found[0]])
			if at = found[1]; line[found[0]] == '<' {
				pattern += `\S+?`
			} else {
				pattern += `.*`
			}
		}
		pattern += regexp.QuoteMeta(line[at:])
	}
	return regexp.MustCompile(pattern)
}
