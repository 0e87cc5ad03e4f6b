// Command parley is the hub and everything one does with it from a terminal.
// Each command stands in a file of its own and only puts packages together;
// what it does is decided there, not here.
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
	runtime.MemProfileRate = 0 // the profile takes memory, and nothing reads it
	os.Exit(run(context.Background(), os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}, os.Environ()))
}

// streams are a command's standard input and outputs.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// app is what every command shares.
type app struct {
	streams
	environ []string
	output  string // of -o
	begun   bool   // the arguments were right, and the command runs

	quiet       bool // a screen is shown; lines on standard error would tear it
	outputGiven bool // -o was
	allColumns  bool // of --all-columns

	openJournal func(config.Data, *slog.Logger) (journal.Engine, error)
}

// exitError ends the program with a code of the command's choosing.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// usageError is a mistake in how a command was called, found while it ran.
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
	code := exitFailed
	if !a.begun {
		code = exitUsage
	}
	if chosen, ok := errors.AsType[*exitError](err); ok {
		code = chosen.code
	}
	fmt.Fprintln(plain{std.err}, "parley:", strings.TrimSpace(advise(err).Error()))
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
