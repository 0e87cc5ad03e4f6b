package main

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// greet is the smallest command: docs/extending.md.
func (a *app) greet() *cobra.Command {
	return &cobra.Command{
		Use:     "greet NAME",
		Short:   "Greet somebody",
		Example: "  parley greet alice",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			data := struct {
				Greeting string `json:"greeting"`
			}{"hello " + args[0]}
			return a.print(data, func(w io.Writer) error {
				_, err := fmt.Fprintln(w, data.Greeting)
				return err
			})
		},
	}
}

func TestSmallestCommand(t *testing.T) {
	t.Parallel()
	for output, want := range map[string]string{"text": "hello alice\n", "json": `{"greeting":"hello alice"}` + "\n"} {
		var out strings.Builder
		a := &app{streams: streams{strings.NewReader(""), &out, io.Discard}}
		root := a.root()
		root.AddCommand(a.greet())
		root.SetArgs([]string{"greet", "alice", "--output", output})
		if err := root.Execute(); err != nil || out.String() != want {
			t.Errorf("%s: %q, %v; want %q", output, out.String(), err, want)
		}
	}
}
