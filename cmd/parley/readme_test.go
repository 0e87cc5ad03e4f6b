package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// shown finds commands in code: at the beginning of a line or of a quotation.
var shown = regexp.MustCompile("(?m)(?:^|`)(?:go run \\./cmd/)?parley ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?")

func TestPagesShowCommandsThatExist(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range append(files, "../../README.md", "../../CONTRIBUTING.md", "../../CHANGELOG.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range shown.FindAllStringSubmatch(string(text), -1) {
			found++
			command, _, err := (&app{}).root().Find(match[1:2])
			if err != nil {
				t.Errorf("%s shows %q: %v", filepath.Base(file), match[0], err)
				continue
			}
			if !command.HasSubCommands() || match[2] == "" {
				continue
			}
			if below, _, err := command.Find(match[2:3]); err != nil || below == command {
				t.Errorf("%s shows %q; %s has no %s", filepath.Base(file), match[0], command.CommandPath(), match[2])
			}
		}
	}
	if found < 10 {
		t.Errorf("found only %d commands on the pages", found)
	}
}
