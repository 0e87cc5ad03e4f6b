// Command report counts which numbered statements are held. It reads the
// output of `go test -json` on standard input, merges the results of interop
// suites, and prints one row for each file of statements. It never runs a
// test itself and never decides what a statement means.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/parley-hub/parley/conformance"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run exits 0 when every named statement passes and every package could run,
// 1 when not, 2 when it was called wrongly.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("report", flag.ContinueOnError)
	flags.SetOutput(stderr)
	asJSON := flags.Bool("json", false, "print the counts as JSON")
	list := flags.Bool("v", false, "list every statement with what became of it")
	interop := flags.String("interop", "", "glob of JSON-lines files with the results of interop suites")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(stderr, "report: unexpected argument %q; test results come on standard input\n", flags.Arg(0))
		return 2
	}

	tests, err := readGoTest(stdin, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "report:", err)
		return 1
	}
	foreign, err := readInterop(*interop)
	if err != nil {
		fmt.Fprintln(stderr, "report:", err)
		return 1
	}
	sum, err := tally(conformance.All(), append(tests.statements, foreign...))
	if err != nil {
		fmt.Fprintln(stderr, "report:", err)
		return 1
	}

	switch {
	case *asJSON:
		err = sum.writeJSON(stdout)
	case *list:
		err = sum.writeList(stdout)
	default:
		err = sum.writeTable(stdout)
	}
	if err != nil {
		fmt.Fprintln(stderr, "report:", err)
		return 1
	}

	for _, broken := range tests.broken {
		fmt.Fprintln(stderr, "report:", broken)
	}
	for _, held := range sum.failures {
		fmt.Fprintf(stderr, "report: %s does not hold: %s\n", held.statement, held.test)
	}
	if len(tests.broken)+len(sum.failures) > 0 {
		return 1
	}
	return 0
}
