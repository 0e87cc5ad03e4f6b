package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// listing is what the commands that print a page of a list differ in, beside
// what they list.
type listing struct {
	what           string // in the path, in the answer and in the command
	short, example string
	none           string // what is said of an empty page
	columns        string
	filters        func(*pflag.FlagSet) // flags that are parameters of the same name
}

// listCommand is such a command; row writes an item's columns with tabs between.
func listCommand[T any](a *app, l listing, row func(w io.Writer, item *T, names map[string]string)) *cobra.Command {
	filters := pflag.NewFlagSet(l.what, pflag.ContinueOnError)
	l.filters(filters)
	filters.String("after", "", "go on after this one")
	filters.Int("limit", 50, "at most so many")
	var c *cobra.Command
	c = a.withHub(&cobra.Command{Use: "list", Short: l.short, Example: l.example, Args: cobra.NoArgs},
		func(ctx context.Context, hub *hubClient, _ []string) error {
			var raw json.RawMessage
			if err := hub.call(ctx, http.MethodGet, "/v1/"+l.what+"?"+parameters(filters).Encode(), nil, &raw); err != nil {
				return err
			}
			items, next, names, err := readPage[T](raw, l.what)
			if err != nil {
				return err
			}
			return a.print(raw, func(w io.Writer) error {
				if len(items) == 0 {
					_, err := fmt.Fprintln(w, l.none)
					return err
				}
				err := table(w, func(w io.Writer) {
					fmt.Fprintln(w, l.columns)
					for i := range items {
						row(w, &items[i], names)
					}
				})
				if err == nil && next != "" {
					_, err = fmt.Fprintf(w, "\nMore: parley %s list%s --after %s\n", l.what, given(c), next)
				}
				return err
			})
		})
	c.Flags().AddFlagSet(filters)
	return c
}

// readPage reads a page, whose items stand under their own name.
func readPage[T any](raw json.RawMessage, what string) (items []T, next string, names map[string]string, err error) {
	var page struct {
		Next  string            `json:"next"`
		Names map[string]string `json:"names"`
	}
	if err := json.Unmarshal(raw, &page); err != nil {
		return nil, "", nil, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, "", nil, err
	}
	err = json.Unmarshal(fields[what], &items)
	return items, page.Next, page.Names, err
}

// parameters are the flags that were given, and the limit.
func parameters(filters *pflag.FlagSet) url.Values {
	q := url.Values{}
	filters.VisitAll(func(f *pflag.Flag) {
		switch list, ok := f.Value.(pflag.SliceValue); {
		case ok:
			q[f.Name] = list.GetSlice()
		case f.Changed || f.Name == "limit":
			q.Set(f.Name, f.Value.String())
		}
	})
	return q
}

// given are a command's flags as they were given, for the one that goes on.
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

// shellWord makes a text one word of a shell's.
func shellWord(text string) string {
	if !strings.ContainsAny(text, " \t\n\"'`$&|;<>()*?[]#~!\\") {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
