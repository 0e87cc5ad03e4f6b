package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
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
	known := formNames()
	c := &cobra.Command{
		Use:   "project [FILE] --to " + strings.Join(known, "|"),
		Short: "Show messages in the form that a model provider takes",
		Long: `Show messages in the form that a model provider takes. canonical is the neutral
role, content and metadata, message by message. The others are the provider's
own request, made of the whole conversation: tool calls without result are left
out, results stand behind their calls, and what cannot be said is noted on
standard error with its line.`,
		Example: `  parley message project --to canonical old.jsonl
  parley message project --to anthropic old.jsonl`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if write, ok := forms[to]; ok {
				return a.projectTo(c.Context(), args, check, write)
			}
			if to != canonicalForm {
				return usageError("--to %s: the form is %s", to, strings.Join(known, ", "))
			}
			return a.throughMessages(c.Context(), args, check, func(ctx context.Context, r io.Reader, w io.Writer) (stream.Stats, error) {
				return stream.Project(ctx, r, w, stream.Options{}, stream.Provider)
			})
		},
	}
	c.Flags().StringVar(&to, "to", "canonical", "form to write: "+strings.Join(known, ", "))
	c.Flags().BoolVar(&check, "check", false, "only report what is wrong, with line numbers")
	return c
}

// throughMessages applies one step to a file of messages, or only checks it.
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

// checkMessages reports each refused message as it is found.
func (a *app) checkMessages(ctx context.Context, in io.Reader) error {
	stats, err := stream.Check(ctx, in, stream.Options{}, func(p *stream.Problem) error {
		return a.refusedAt(p.Place, p.Err)
	})
	if err != nil {
		return err
	}
	return a.checked(stats)
}

// refusedAt reports one refused message.
func (a *app) refusedAt(place stream.Place, refusal error) error {
	row := struct {
		stream.Place
		Error string `json:"error"`
	}{place, refusal.Error()}
	return a.print(row, linef("%v: %s", row.Place, row.Error))
}

// checked prints how many messages are valid.
func (a *app) checked(stats stream.Stats) error {
	row := struct {
		Messages int `json:"messages"`
		Refused  int `json:"refused"`
	}{stats.Messages, stats.Refused}
	err := a.print(row, linef("%d messages are fine, %d are refused", row.Messages, row.Refused))
	if err == nil && stats.Refused > 0 {
		err = fmt.Errorf("%d of %d messages are refused", stats.Refused, stats.Messages+stats.Refused)
	}
	return err
}
