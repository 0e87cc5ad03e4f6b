package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	v1 "github.com/parley-hub/parley/client/v1"
)

// listing has what differs between the commands that print a page of a list.
type listing struct {
	what           string // the name of the command's group
	short, example string
	none           string // printed for an empty page
	columns        []column
	filters        func(*pflag.FlagSet) // flags that are parameters of the same name
	// json returns what -o json prints, if it differs from the rows.
	json func(*v1.Client, context.Context, url.Values) (json.RawMessage, error)
}

// listCommand makes such a command: list requests a page, and row returns the cells of
// an item.
func listCommand[T any](a *app, list func(*v1.Client, context.Context, url.Values) (*v1.Page[T], error), l listing, row func(item *T, names map[string]string) []string) *cobra.Command {
	filters := pflag.NewFlagSet(l.what, pflag.ContinueOnError)
	l.filters(filters)
	filters.String("after", "", "go on after this one")
	filters.Int("limit", 50, "at most so many")
	var c *cobra.Command
	c = a.withHub(&cobra.Command{Use: "list", Short: l.short, Example: l.example, Args: cobra.NoArgs},
		func(ctx context.Context, hub *v1.Client, _ []string) error {
			q := parameters(filters)
			if err := nameChannel(ctx, hub, q); err != nil {
				return err
			}
			if a.output == "json" && l.json != nil {
				raw, err := l.json(hub, ctx, q)
				if err != nil {
					return err
				}
				return a.printJSON(raw)
			}
			page, err := firstPage(ctx, q, func(ctx context.Context, q url.Values) (*v1.Page[T], error) { return list(hub, ctx, q) })
			if err != nil {
				return err
			}
			return a.print(page.Raw, func(w io.Writer) error {
				if len(page.Items) == 0 && page.Next == "" {
					_, err := fmt.Fprintln(w, l.none)
					return err
				}
				rows := make([][]string, len(page.Items))
				for i := range page.Items {
					rows[i] = row(&page.Items[i], page.Names)
				}
				err := a.writeColumns(w, l.columns, rows)
				if err == nil && page.Next != "" {
					_, err = fmt.Fprintf(w, "\nMore: parley %s list%s --after %s\n", l.what, given(c), page.Next)
				}
				return err
			})
		})
	c.Flags().AddFlagSet(filters)
	return c
}

// nameChannel replaces the parameter channel, if it is given, by the channel's id.
func nameChannel(ctx context.Context, hub *v1.Client, q url.Values) error {
	if !q.Has("channel") {
		return nil
	}
	id, err := findChannel(ctx, hub, q.Get("channel"))
	if err == nil {
		q.Set("channel", id)
	}
	return err
}

// parameters returns the given flags and the limit.
func parameters(filters *pflag.FlagSet) url.Values {
	q := url.Values{}
	filters.VisitAll(func(f *pflag.Flag) {
		name := strings.ReplaceAll(f.Name, "-", "_")
		switch list, ok := f.Value.(pflag.SliceValue); {
		case ok:
			q[name] = list.GetSlice()
		case f.Changed || f.Name == "limit" || f.DefValue == "true":
			q.Set(name, f.Value.String())
		}
	})
	return q
}

// given returns the flags of a command line, to be repeated for the next page.
func given(c *cobra.Command) string {
	var b strings.Builder
	c.Flags().Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			if f.Name != "after" {
				fmt.Fprintf(&b, " --%s=%s", f.Name, shellWord(value))
			}
		}
	})
	return b.String()
}

// shellWord quotes a text for a shell.
func shellWord(text string) string {
	if !strings.ContainsAny(text, " \t\n\"'`$&|;<>()*?[]#~!\\") {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
