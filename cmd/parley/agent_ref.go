package main

import (
	"context"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
)

// agentFlags are the flags that name an agent.
var agentFlags = []string{"as", "agent", "to", "for", "asked-by", "waiting-for"}

// findAgents replaces prefixes of agents' ids in a command's arguments and flags by
// the ids. Names take precedence; unknown ones are left for the hub to refuse.
func findAgents(ctx context.Context, hub *v1.Client, c *cobra.Command, args []string) ([]string, error) {
	if path := c.CommandPath(); path == "parley agents add" || strings.HasPrefix(path, "parley agent ") {
		return args, nil // the name may be new
	}
	wanted, found := arguments(c.Use), make([]string, len(args))
	for i, ref := range args {
		found[i] = ref
		if name := argumentAt(wanted, i); name != "NAME" && name != "AGENT" {
			continue
		}
		var err error
		if found[i], err = findAgent(ctx, hub, ref); err != nil {
			return nil, err
		}
	}
	for _, name := range agentFlags {
		flag := c.Flags().Lookup(name)
		if flag == nil || !flag.Changed || flag.Value.Type() != "string" {
			continue
		}
		id, err := findAgent(ctx, hub, flag.Value.String())
		if err == nil {
			err = flag.Value.Set(id)
		}
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// findAgent returns the id of the agent whose id begins with ref, or ref itself if
// there is none.
func findAgent(ctx context.Context, hub *v1.Client, ref string) (string, error) {
	if len(ref) < minIDPrefix || len(ref) >= envelope.IDLength || strings.Trim(ref, hexDigits) != "" {
		return ref, nil
	}
	exists := func(ctx context.Context, name string) error {
		_, err := hub.Agent(ctx, name)
		return err
	}
	id, err := findItem(ctx, "agent", ref, exists, func(ctx context.Context, q url.Values) ([]item, string, error) {
		q.Del("newest") // the list has one order
		page, err := hub.Agents(ctx, q)
		if err != nil {
			return nil, "", err
		}
		items := make([]item, len(page.Items))
		for i := range page.Items {
			items[i] = item{page.Items[i].Passport.ID, presenceOf(&page.Items[i]), page.Items[i].Passport.Name}
		}
		return items, page.Next, nil
	})
	if fault.CodeOf(err) == fault.NotFound {
		return ref, nil
	}
	return id, err
}
