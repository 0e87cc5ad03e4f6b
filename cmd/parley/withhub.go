package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

// defaultHub is where a hub that was started without flags listens.
const defaultHub = "http://127.0.0.1:7440"

// withHub gives a command the flags that find a hub, and runs it with a client
// for that hub. If none runs on the data folder, the one on the default port
// is asked.
func (a *app) withHub(c *cobra.Command, fn func(ctx context.Context, hub *hubClient, args []string) error) *cobra.Command {
	flags := addHub(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		hub, err := a.findHub(flags)
		var none *noHubError
		if errors.As(err, &none) {
			hub, err = newHubClient(defaultHub, lookup(a.environ, "PARLEY_TOKEN"), false)
		}
		if err != nil {
			return err
		}
		hub.again = func() {
			if found, err := a.findHub(flags); err == nil {
				hub.base, hub.http = found.base, found.http // started again, it may listen elsewhere
			}
		}
		hub.tell = func(text string) { fmt.Fprintln(plain{a.err}, "parley:", text) }
		return fn(c.Context(), hub, args)
	}
	return c
}

// errStopped ends a stream that its reader has had enough of.
var errStopped = errors.New("stopped")
