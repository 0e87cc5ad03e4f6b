package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// shown finds commands in code: at the beginning of a line or of a quotation, behind
// a prompt and variables if there are any, with what follows on the line; flagsShown the
// flags in that.
var (
	shown      = regexp.MustCompile("(?m)(?:^|`)(?:#   )?(?:sudo -u parley )?(?:[a-z]*\\$ )?(?:[A-Z_]+=\\S+ )*(?:go run \\./cmd/)?parley ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?([^`\n]*)")
	flagsShown = regexp.MustCompile(`(?:^|[\s\[|])--?([a-z][a-z-]*)`)
	// elsewhere begins what is not of the command: another one, a comment, a program to run.
	elsewhere = regexp.MustCompile(`[|;&>#]| -- |  `)
)

func TestPagesShowCommandsThatExist(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	found, flags, root := 0, 0, (&app{}).root()
	for _, file := range append(files, "../../README.md", "../../CONTRIBUTING.md", "../../CHANGELOG.md", "../../packaging/parley.yaml", "../../Dockerfile") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range shown.FindAllStringSubmatch(string(text), -1) {
			found++
			command, _, err := root.Find(match[1:2])
			if err != nil {
				t.Errorf("%s shows %q: %v", filepath.Base(file), match[0], err)
				continue
			}
			if command.HasSubCommands() && match[2] != "" {
				below, _, err := command.Find(match[2:3])
				if err != nil || below == command {
					t.Errorf("%s shows %q; %s has no %s", filepath.Base(file), match[0], command.CommandPath(), match[2])
					continue
				}
				command = below
			}
			if command.HasSubCommands() {
				continue // all of them are meant, or what follows names one of a further level
			}
			rest := match[3]
			if at := elsewhere.FindStringIndex(rest); at != nil {
				rest = rest[:at[0]]
			}
			for _, flag := range flagsShown.FindAllStringSubmatch(rest, -1) {
				flags++
				if !hasFlag(command, flag[1]) {
					t.Errorf("%s shows %q; %s has no flag %s", filepath.Base(file), match[0], command.CommandPath(), flag[1])
				}
			}
		}
	}
	if flags < 50 {
		t.Errorf("found only %d flags on the pages", flags)
	}
	if found < 200 {
		t.Errorf("found only %d commands on the pages", found)
	}
}

// hasFlag reports whether a command has a flag, by its name or its letter.
func hasFlag(c *cobra.Command, name string) bool {
	known := name == "help" || name == "h"
	for _, flags := range []*pflag.FlagSet{c.Flags(), c.InheritedFlags()} {
		known = known || flags.Lookup(name) != nil || len(name) == 1 && flags.ShorthandLookup(name) != nil
	}
	return known
}

// TestReadmeTalks types the blocks of the README that need a hub and somebody in
// another terminal. The rest of it is typed in interop/newcomer and interop/ag2.
func TestReadmeTalks(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	script := `export ANTHROPIC_API_KEY=sk-none
echo 'Be brief.' > triage.md
parley serve > hub.log 2>&1 &
until parley agents list > wait.log 2>&1; do sleep 0.1; done
`
	started := 0
	start := func(line, says string) {
		started++
		script += fmt.Sprintf("%s > %d.log 2>&1 &\nuntil grep -q '%s' %d.log; do sleep 0.1; done\n", line, started, says, started)
	}
	start("parley agent echo parrot", "takes part")
	for _, b := range blocks.FindAllStringSubmatch(string(raw), -1) {
		if b[1] != "console" {
			continue
		}
		for line := range linesOf(b[2]) {
			line = strings.NewReplacer("--session SESSION", "--session $SESSION", "--wait 30s", "--wait 100ms", "KEY=…", "KEY=sk-none").Replace(line)
			switch {
			case strings.HasPrefix(line, "parley agent echo parrot"):
				script += "kill %2 && wait %2 || true\n" // its name is wanted
				start(line, "takes part")
			case strings.HasPrefix(line, "parley agent "):
				start(line, "takes part")
			case strings.HasPrefix(line, "parley events "):
				start(line, "world")
			case line == "parley chat triage": // asks the provider; interop/providers
			case strings.HasPrefix(line, "parley chat "):
				script += "echo 'is anyone there' | " + line + "\n"
			case strings.HasPrefix(line, "parley agh join "):
				script += "SESSION=$(" + line + " -o json | grep -o 'sess-[0-9a-f]*' | head -n 1)\n"
			case strings.HasPrefix(line, "curl "):
				script += strings.Replace(line, "curl ", "curl -sf ", 1) + "\n"
			default:
				script += line + "\n"
			}
		}
	}
	out, err := typed(t, script)
	for _, want := range []string{"is anyone there", `"reply":"hello"`, "event: ended", `"id":"s-1"`, "crane", "sent "} {
		if err != nil || !strings.Contains(out, want) {
			t.Fatalf("%v; %q is wanted in %s", err, want, out)
		}
	}
}
