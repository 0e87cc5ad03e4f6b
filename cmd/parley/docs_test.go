package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/parley-hub/parley/fault"
)

// page holds a generated page of the docs to what generates it. With
// PARLEY_UPDATE set it is written instead.
func page(t *testing.T, name, want string) {
	t.Helper()
	file := filepath.Join("..", "..", "docs", name)
	if os.Getenv("PARLEY_UPDATE") != "" {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("docs/%s is out of date; write it with PARLEY_UPDATE=1 go test ./cmd/parley", name)
	}
}

func TestErrorsPage(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("# Errors\n\nEvery refusal carries one of these codes, whatever dialect it is answered in. This\npage is generated from the catalogue in package `fault`.\n\n")
	b.WriteString("| Code | Meaning | What to do | The same request may succeed later |\n|---|---|---|---|\n")
	for _, e := range fault.Catalogue() {
		later := "no"
		if e.Retryable {
			later = "yes"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", e.Code, e.Meaning, e.Remedy, later)
	}
	b.WriteString("\nSome refusals say more exactly why. Decide by the code and the reason, never by the\nmessage, which is for people and may change.\n\n| Reason | With the code | Meaning |\n|---|---|---|\n")
	for _, e := range fault.Reasons() {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", e.Reason, e.Code, e.Meaning)
	}
	page(t, "errors.md", b.String())
}

func TestCommandReference(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("# Commands\n\nThis page is generated from the commands' own help. Every command takes\n`-o json`, and exits with 0 if all went well, 1 if it failed, 2 if it was called\nwrongly. A `CHANNEL` is named by its id, by 6 or more characters that its id\nbegins with, by its label `title`, or as `@latest`.\n")
	walk((&app{}).root(), func(c *cobra.Command) {
		if !c.Runnable() || c.HasSubCommands() || c.Name() == "help" {
			return
		}
		fmt.Fprintf(&b, "\n## %s\n\n", c.CommandPath())
		about := c.Long
		if about == "" {
			about = c.Short + "."
		}
		fmt.Fprintf(&b, "%s\n\n```\n%s\n```\n", about, c.UseLine())
		if c.Example != "" {
			fmt.Fprintf(&b, "\nExample:\n\n```\n%s\n```\n", c.Example)
		}
		if flags := c.LocalFlags().FlagUsages(); flags != "" {
			fmt.Fprintf(&b, "\n```\n%s```\n", flags)
		}
	})
	page(t, "commands.md", b.String())
}
