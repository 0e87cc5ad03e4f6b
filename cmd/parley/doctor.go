package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/internal/doctor"
)

func (a *app) doctor() *cobra.Command {
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what would go wrong: disk, clock, port, limits, hub",
		Long: `Look for what would go wrong, and say what to do about it: whether the disk
really keeps what it is given, the clock, the port, the limit of open files, and
the hub if one runs, and its streams through whatever stands between; of a node,
also the cluster's NATS servers and other nodes. Exits with 1 if a check failed.`,
		Example: "  parley doctor",
		Args:    cobra.NoArgs,
	}
	hub := addHub(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		settings, err := hub.settings.load(a.environ)
		if err != nil {
			return err
		}
		p := doctor.Patient{
			Dir: settings.Data.Dir, MinFree: int64(settings.Data.MinFree), Listen: settings.HTTP.Listen,
			Version: thisBuild().Version, Connections: settings.HTTP.MaxConnections, Hint: hintFor,
		}
		chosen, err := a.chooseHub(hub)
		var client *v1.Client
		if err == nil {
			client, err = a.findHub(hub, v1.Options{})
		}
		var none *noHubError
		switch {
		case err == nil:
			find(c.Context(), client)
			p.HubURL, p.Token, p.HTTP = client.URL(), chosen.token, client.HTTP()
		case !errors.As(err, &none) && (hub.settings.named("hub") || hub.settings.named("context")):
			return err // the checks report a folder that cannot be read
		}
		findings := doctor.Examine(c.Context(), p)
		if len(settings.Cluster.URL) > 0 {
			findings = append(findings, clusterFindings(c.Context(), settings.Cluster)...)
		}
		data := map[string]any{"findings": findings, "worst": doctor.Worst(findings)}
		if chosen.URL != "" {
			data["hub"] = chosen
		}
		err = a.print(data, func(w io.Writer) error {
			return table(w, func(w io.Writer) {
				if chosen.URL != "" {
					fmt.Fprintf(w, "asked\thub\t%s\n", chosen)
				}
				for _, f := range findings {
					fmt.Fprintf(w, "%s\t%s\t%s\n", f.Verdict, f.Check, f.Found)
					if f.Remedy != "" {
						fmt.Fprintf(w, "\t\t→ %s\n", f.Remedy)
					}
				}
			})
		})
		if err == nil && doctor.Worst(findings) == doctor.Failed {
			err = errors.New("a check failed")
		}
		return err
	}
	return c
}

// findTimeout bounds how long doctor searches for the serving node.
const findTimeout = 3 * time.Second

// find makes a client find the serving node, if its hub is in a cluster. The checks
// report all other errors.
func find(ctx context.Context, client *v1.Client) {
	ctx, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	_, _ = client.Session(ctx)
}
