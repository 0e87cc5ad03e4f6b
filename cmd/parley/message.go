package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-hub/parley/message/apply"
	"github.com/parley-hub/parley/message/stream"
)

func (a *app) message() *cobra.Command {
	return group("message", "Normalize and project agent messages",
		a.messageNormalize(), a.messageProject(), a.messageApply())
}

func (a *app) messageApply() *cobra.Command {
	return &cobra.Command{
		Use:   "apply",
		Short: "Run operations of the message contract, one JSON line each",
		Long: `Run operations of the message contract: reads lines {"name","op","input"} on
standard input and writes {"name","output"} or {"name","error"} for each, in
order, in constant memory.`,
		Example: `  echo '{"name":"one","op":"normalize","input":{"role":"user","content":"hi"}}' | parley message apply`,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return apply.Apply(c.Context(), a.in, a.out)
		},
	}
}

// projections are the forms of --to.
var projections = map[string]func(ctx context.Context, r io.Reader, w io.Writer) (stream.Stats, error){
	"canonical": func(ctx context.Context, r io.Reader, w io.Writer) (stream.Stats, error) {
		return stream.Project(ctx, r, w, stream.Options{}, stream.Provider)
	},
}

func (a *app) messageNormalize() *cobra.Command {
	var check bool
	c := &cobra.Command{
		Use:   "normalize [FILE]",
		Short: "Bring messages of any known shape to the canonical form",
		Long: `Bring messages of any known shape to the canonical form: an array in, an array
out; lines in, lines out. Without FILE, or with -, it reads standard input. A
file of any size is taken through in the memory of its largest message.`,
		Example: `  parley message normalize old.jsonl > new.jsonl
  parley message normalize --check old.jsonl`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.throughMessages(c.Context(), args, check, func(ctx context.Context, r io.Reader, w io.Writer) (stream.Stats, error) {
				return stream.Normalize(ctx, r, w, stream.Options{})
			})
		},
	}
	c.Flags().BoolVar(&check, "check", false, "only report what is wrong, with line numbers")
	return c
}

func (a *app) messageProject() *cobra.Command {
	var to string
	var check bool
	known := slices.Sorted(maps.Keys(projections))
	c := &cobra.Command{
		Use:     "project [FILE] --to " + strings.Join(known, "|"),
		Short:   "Show messages in the form that a model provider takes",
		Example: "  parley message project --to canonical old.jsonl",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			project, ok := projections[to]
			if !ok {
				return usageError("--to %s: the form is %s", to, strings.Join(known, ", "))
			}
			return a.throughMessages(c.Context(), args, check, project)
		},
	}
	c.Flags().StringVar(&to, "to", "canonical", "form to write: "+strings.Join(known, ", "))
	c.Flags().BoolVar(&check, "check", false, "only report what is wrong, with line numbers")
	return c
}

// throughMessages streams a file through one step, or only checks it.
func (a *app) throughMessages(ctx context.Context, args []string, check bool,
	step func(ctx context.Context, r io.Reader, w io.Writer) (stream.Stats, error),
) error {
	in, err := a.open(args)
	if err != nil {
		return err
	}
	defer in.Close()
	if check {
		return a.checkMessages(ctx, in)
	}
	out := bufio.NewWriterSize(a.out, 64<<10)
	_, err = step(ctx, in, out)
	return errors.Join(err, out.Flush())
}

// checkMessages reports each message that is refused, as it is found.
func (a *app) checkMessages(ctx context.Context, in io.Reader) error {
	stats, err := stream.Check(ctx, in, stream.Options{}, func(p *stream.Problem) error {
		row := struct {
			Line  int    `json:"line"`
			Error string `json:"error"`
		}{p.Line, p.Err.Error()}
		return a.print(row, func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "line %d: %s\n", row.Line, row.Error)
			return err
		})
	})
	if err != nil {
		return err
	}
	row := struct {
		Messages int `json:"messages"`
		Refused  int `json:"refused"`
	}{stats.Messages, stats.Refused}
	err = a.print(row, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%d messages are fine, %d are refused\n", row.Messages, row.Refused)
		return err
	})
	if err == nil && stats.Refused > 0 {
		err = fmt.Errorf("%d of %d messages are refused", stats.Refused, stats.Messages+stats.Refused)
	}
	return err
}
