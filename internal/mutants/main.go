// Command mutants runs mutation testing over folders of pure packages and
// explains the survivors. The mutating is done by gremlins; this command
// copies only what it needs, sums up, and gives the reason for each mutant that no
// test kills. It never changes the tree.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	flags.SetOutput(stderr)
	tool := flags.String("gremlins", "gremlins", "the gremlins binary")
	reasonFile := flags.String("reasons", "", "file with a word why for each survivor")
	least := flags.Float64("min", 0.85, "least share of killed among killed and lived, for each folder")
	root := flags.String("root", ".", "the module's folder")
	if flags.Parse(args) != nil || flags.NArg() == 0 {
		fmt.Fprintln(stderr, "usage: mutants [flags] FOLDER...")
		return 2
	}
	reasons, err := readReasons(*reasonFile)
	if err != nil {
		fmt.Fprintln(stderr, "mutants:", err)
		return 1
	}
	scratch, err := os.MkdirTemp("", "parley-mutants-")
	if err != nil {
		fmt.Fprintln(stderr, "mutants:", err)
		return 1
	}
	defer os.RemoveAll(scratch)
	if err := copyTree(*root, scratch); err != nil {
		fmt.Fprintln(stderr, "mutants:", err)
		return 1
	}

	code := 0
	for _, folder := range flags.Args() {
		found, err := mutate(ctx, *tool, scratch, folder, stderr)
		if err != nil {
			fmt.Fprintln(stderr, "mutants:", err)
			return 1
		}
		if err := report(stdout, scratch, folder, found, reasons, *least); err != nil {
			fmt.Fprintln(stderr, "mutants:", err)
			code = 1
		}
	}
	return code
}

// report lists what was not killed, and judges the folder.
func report(w io.Writer, root, folder string, found []mutant, reasons reasons, least float64) error {
	counts := map[string]int{}
	for _, m := range found {
		counts[m.status]++
		if m.status == killed || m.status == notViable {
			continue
		}
		code, err := m.source(root)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%-11s %s:%d:%d %s\n            %s\n            %s\n", m.status, m.file, m.line, m.column, m.kind, code, reasons.why(m, code))
	}
	judged := counts[killed] + counts[lived]
	if judged == 0 {
		return errors.New(folder + ": no mutant could be judged")
	}
	share := float64(counts[killed]) / float64(judged)
	fmt.Fprintf(w, "%s: %.3f killed (%d killed, %d lived, %d not covered, %d timed out, %d not viable)\n",
		folder, share, counts[killed], counts[lived], counts[notCovered], counts[timedOut], counts[notViable])
	if share < least {
		return fmt.Errorf("%s: %.3f killed is less than %.3f", folder, share, least)
	}
	return nil
}
