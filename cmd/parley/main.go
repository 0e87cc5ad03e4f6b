// Command parley is the hub and its command line. Each command has its own file,
// which only combines packages and has no logic of its own.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/server/config"
)

// Exit codes. A command may return others by an exitError.
const (
	exitFine   = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	runtime.MemProfileRate = 0 // the profile needs memory and is not read
	os.Exit(run(context.Background(), os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}, os.Environ()))
}

// streams are a command's standard input and outputs.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// app is shared by all commands.
type app struct {
	streams
	environ []string
	output  string // value of -o
	begun   bool   // the arguments were valid and the command runs

	quiet       bool // a full screen is shown, so nothing may be written to standard error
	outputGiven bool // whether -o was given
	allColumns  bool // value of --all-columns

	openJournal func(config.Data, *slog.Logger) (journal.Engine, error)
}

// exitError ends the program with a code that the command chooses.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// usageError is an error in a command line that is found while the command runs.
func usageError(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// run is the program without its process.
func run(ctx context.Context, args []string, std streams, environ []string) int {
	a := &app{streams: std, environ: environ, openJournal: openDisk}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(std.in)
	root.SetOut(std.out)
	root.SetErr(std.err)
	called, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitFine
	}
	err = missingFlags(called, err)
	code := exitFailed
	if !a.begun {
		code = exitUsage
	}
	if chosen, ok := errors.AsType[*exitError](err); ok {
		code = chosen.code
	}
	fmt.Fprintln(cleanWriter{std.err}, "parley:", strings.TrimSpace(advise(err).Error()))
	if code == exitUsage {
		fmt.Fprintf(std.err, "see %s --help\n", called.CommandPath())
	}
	return code
}

// group makes a command that only has others below it.
func group(use, short string, below ...*cobra.Command) *cobra.Command {
	names := make([]string, 0, len(below))
	for _, c := range below {
		names = append(names, c.Name())
	}
	c := &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return usageError("%s needs a subcommand: %s", c.CommandPath(), strings.Join(names, ", "))
		},
	}
	c.AddCommand(below...)
	return c
}
