package main

import (
	"bytes"
	"context"
	"iter"
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"parley": main, "parley-as-nobody": mainAsNobody})
}

func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("PARLEY_UPDATE") != "",
		Cmds:                scriptCommands,
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("GORACE", "atexit_sleep_ms=0") // or every command takes a second under -race
			env.Defer(stopAll(env.WorkDir))
			return nil
		},
	})
}

// call runs the program in this process.
func call(t *testing.T, environ []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(context.Background(), args, streams{strings.NewReader(""), &out, &errs}, environ)
	return code, out.String(), errs.String()
}

// walk visits every command below root.
func walk(c *cobra.Command, visit func(*cobra.Command)) {
	visit(c)
	for _, below := range c.Commands() {
		walk(below, visit)
	}
}

func TestEveryCommandExplainsItself(t *testing.T) {
	t.Parallel()
	walk((&app{}).root(), func(c *cobra.Command) {
		if c.Short == "" || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: Short is %q", c.CommandPath(), c.Short)
		}
		if !c.HasSubCommands() && !strings.Contains(c.Example, "parley ") {
			t.Errorf("%s has no example", c.CommandPath())
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if value, usage := pflag.UnquoteUsage(f); strings.Contains(value, " ") || strings.Contains(usage, "`") || usage == "" {
				t.Errorf("%s --%s is shown as --%s %s: %s", c.CommandPath(), f.Name, f.Name, value, usage)
			}
		})
		if c.Name() == "help" {
			return
		}
		args := append(strings.Fields(c.CommandPath())[1:], "--help")
		if code, out, errs := call(t, nil, args...); code != exitFine || !strings.Contains(out, c.CommandPath()) || errs != "" {
			t.Errorf("%v: exit %d, stdout %q, stderr %q", args, code, out, errs)
		}
	})
}

func TestGroupsNeedACommand(t *testing.T) {
	t.Parallel()
	walk((&app{}).root(), func(c *cobra.Command) {
		if !c.HasSubCommands() || !c.HasParent() {
			return
		}
		path := strings.Fields(c.CommandPath())[1:]
		says := "needs a subcommand"
		if c.CommandPath() == "parley agh channels" {
			says = "workspace" // it lists channels, as AGH's own command does
		}
		if code, _, errs := call(t, nil, path...); code != exitUsage || !strings.Contains(errs, says) {
			t.Errorf("%v: exit %d, %q", path, code, errs)
		}
		if code, _, errs := call(t, nil, append(path, "nonsense")...); code != exitUsage || !strings.Contains(errs, "nonsense") {
			t.Errorf("%v nonsense: exit %d, %q", path, code, errs)
		}
	})
}

// linesOf are the lines of a text.
func linesOf(text string) iter.Seq[string] {
	return strings.SplitSeq(strings.TrimRight(text, "\n"), "\n")
}
