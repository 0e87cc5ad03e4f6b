package main

import (
	"context"

	"github.com/spf13/cobra"

	v1 "github.com/parley-hub/parley/client/v1"
)

func (a *app) agentsAdd() *cobra.Command {
	var registration v1.Registration
	var human bool
	c := a.withHub(&cobra.Command{
		Use:   "add NAME",
		Short: "Register an identity, so that it can be invited and acted for",
		Long: `Register an identity under a name that nobody has. An operator registers anyone,
an agent's key only its own name. A program takes part under the name with a key
that was made for it: parley keys add --agent NAME.`,
		Example: "  parley agents add pia --human --summary \"reviews invoices\"",
		Args:    cobra.ExactArgs(1),
	}, func(ctx context.Context, hub *v1.Client, args []string) error {
		registration.Name = args[0]
		if human {
			registration.Kind = "human"
		}
		ag, err := hub.AddAgent(ctx, registration)
		if err != nil {
			return err
		}
		return a.print(ag.Raw, linef("%s  %s is registered as %s", ag.Passport.ID, cell(ag.Passport.Name), kindOf(ag)))
	})
	c.Flags().BoolVar(&human, "human", false, "a person, not a program")
	c.Flags().StringVar(&registration.Summary, "summary", "", "what it does, for those who look for somebody")
	c.Flags().StringArrayVar(&registration.Capabilities, "capability", nil, "what it can do, in a word; may be repeated")
	return c
}
