package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/internal/screen"
)

func (a *app) turns() *cobra.Command {
	var as string
	query := pflag.NewFlagSet("turns", pflag.ContinueOnError)
	query.String("after", "", "go on after this one")
	query.Int("limit", 50, "at most so many")
	var c *cobra.Command
	c = a.withHub(&cobra.Command{
		Use:     "turns --as NAME",
		Short:   "List the turns that are somebody's to take",
		Long:    "List the turns that are somebody's to take, the first due first. Looking does not count as handing over.",
		Example: "  parley turns --as alice",
		Args:    cobra.NoArgs,
	}, func(ctx context.Context, hub *v1.Client, _ []string) error {
		page, err := firstPage(ctx, parameters(query), func(ctx context.Context, q url.Values) (*v1.Page[v1.Turn], error) { return hub.Turns(ctx, as, q) })
		if err != nil {
			return err
		}
		return a.print(page.Raw, func(w io.Writer) error {
			if len(page.Items) == 0 && page.Next == "" {
				_, err := fmt.Fprintf(w, "No turn waits for %s.\n", cell(as))
				return err
			}
			rows := make([][]string, len(page.Items))
			for i, turn := range page.Items {
				rows[i] = []string{turn.Channel, cell(turn.Type), ago(turn.Since), due(turn.DueAt, turn.Overdue), cell(cmp.Or(turn.Title, "-"))}
			}
			err := a.writeColumns(w, []column{{"CHANNEL", ids}, {"TYPE", flexible}, {"SINCE", fixed}, {"DUE", fixed}, {"TITLE", flexible}}, rows)
			if err == nil && page.Next != "" {
				_, err = fmt.Fprintf(w, "\nMore: parley turns%s --after %s\n", given(c), page.Next)
			}
			return err
		})
	})
	c.Flags().StringVar(&as, "as", "", "whose, by `NAME` or id")
	c.Flags().AddFlagSet(query)
	require(c, "as")
	return c
}

// due returns when something is due, relative to now.
func due(at *time.Time, over bool) string {
	switch {
	case at == nil:
		return "-"
	case over:
		return "overdue " + screen.Span(time.Since(*at))
	}
	return "in " + screen.Span(time.Until(*at))
}
