package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/parley-hub/parley/client/v1"
)

// defaultHub is the address of a hub that was started without flags.
const defaultHub = "http://127.0.0.1:7440"

// withHub gives a command the flags that find a hub, and runs it with a client for
// that hub. If no flag or variable names one and none runs on the data folder, it uses
// the default address.
func (a *app) withHub(c *cobra.Command, fn func(ctx context.Context, hub *v1.Client, args []string) error) *cobra.Command {
	flags := addHub(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if as := c.Flags().Lookup("as"); as != nil && as.Changed && as.Value.String() == "" {
			return usageError("--as is empty; leave it out, or name somebody with it")
		}
		opts := v1.Options{
			Relocate: func() (string, *http.Client) {
				found, err := a.findHub(flags, v1.Options{})
				if err != nil || strings.Contains(found.Addresses(), ",") {
					return "", nil // the client finds the serving node itself
				}
				return found.URL(), found.HTTP() // a restarted hub may listen elsewhere
			},
			Notify: func(text string) {
				if !a.quiet {
					fmt.Fprintln(cleanWriter{a.err}, "parley:", text)
				}
			},
		}
		hub, err := a.findHub(flags, opts)
		var none *noHubError
		switch {
		case !errors.As(err, &none):
		case none.named:
			// If a folder is named, no other hub is used.
			return cmp.Or(mustExist(none.data.Dir), err)
		default:
			opts.Token = lookup(a.environ, "PARLEY_TOKEN")
			hub, err = hubAt(defaultHub, opts)
		}
		if err != nil {
			return err
		}
		if c.Annotations[ends] != "" {
			a.nameContext(flags)
		}
		if args, err = findAgents(c.Context(), hub, c, args); err != nil {
			return err
		}
		return fn(c.Context(), hub, args)
	}
	return c
}

// ends marks commands that delete or close something.
const ends = "ends"

// nameContext prints which hub a destructive command is about to change, if a context
// chose it.
func (a *app) nameContext(flags *hubFlags) {
	if chosen, err := a.chooseHub(flags); err == nil && chosen.Context != "" && isTerminal(a.err) {
		fmt.Fprintf(cleanWriter{a.err}, "parley: asking %s\n", chosen)
	}
}
