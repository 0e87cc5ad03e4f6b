package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	v1 "github.com/parley-hub/parley/client/v1"
)

func kindOf(ag *v1.Agent) string {
	if ag.Passport.Kind == nil {
		return "agent"
	}
	return *ag.Passport.Kind
}

func presenceOf(ag *v1.Agent) string {
	if ag.Online {
		return "online"
	}
	return "away"
}

func (a *app) agents() *cobra.Command {
	return group("agents", "Add, list, show, limit and remove identities", a.agentsAdd(), a.agentsList(), a.agentsShow(), a.agentsRule(), a.agentsBudget(), a.agentsRemove())
}

func (a *app) agentsList() *cobra.Command {
	return listCommand(a, (*v1.Client).Agents, listing{
		what:    "agents",
		short:   "List identities, with presence and inbox",
		example: "  parley agents list --capability ocr",
		none:    "There are no such agents. Start one with parley agent echo NAME, or register one with parley agents add NAME.",
		columns: []column{{"NAME", flexible}, {"KIND", fixed}, {"PRESENCE", fixed}, {"INBOX", fixed}, {"TURNS", fixed}, {"CAPABILITIES", flexible}, {"ID", wide}},
		filters: func(f *pflag.FlagSet) {
			f.String("capability", "", "only who claims or has shown it")
			f.String("query", "", "only whose summary has this text")
			f.String("kind", "", "only agent, human or remote_agent")
		},
	}, func(ag *v1.Agent, _ map[string]string) []string {
		return []string{
			cell(ag.Passport.Name), kindOf(ag), presenceOf(ag), strconv.FormatInt(ag.Depth, 10), strconv.Itoa(ag.TurnsWaiting),
			cell(strings.Join(ag.Resume.Capabilities, ", ")), ag.Passport.ID,
		}
	})
}

func (a *app) agentsShow() *cobra.Command {
	return a.withHub(&cobra.Command{
		Use:     "show NAME",
		Short:   "Show an identity, by name or id",
		Example: "  parley agents show alice",
		Args:    cobra.ExactArgs(1),
	}, func(ctx context.Context, hub *v1.Client, args []string) error {
		ag, err := hub.Agent(ctx, args[0])
		if err != nil {
			return err
		}
		return a.print(ag.Raw, func(w io.Writer) error {
			return table(w, func(w io.Writer) {
				fmt.Fprintf(w, "name\t%s\nid\t%s\nkind\t%s\npresence\t%s\ninbox\t%d unanswered\n",
					cell(ag.Passport.Name), ag.Passport.ID, kindOf(ag), presenceOf(ag), ag.Depth)
				fmt.Fprintf(w, "auth\t%s\nregistered\t%s\n", ag.Passport.Auth.Scheme, ag.Passport.CreatedAt.Format(time.RFC3339))
				if ag.Resume.Summary != "" {
					fmt.Fprintf(w, "summary\t%s\n", cell(ag.Resume.Summary))
				}
				if ag.OperatorRule != nil {
					fmt.Fprintf(w, "operator's rule\t%s\n", ruleText(ag.OperatorRule))
				}
				for capability, o := range ag.Resume.Observed {
					fmt.Fprintf(w, "observed\t%s: %d completed, %d failed, %d expired\n", cell(capability), o.Completed, o.Failed, o.Expired)
				}
			})
		})
	})
}

func (a *app) agentsRemove() *cobra.Command {
	return a.withHub(&cobra.Command{
		Annotations: map[string]string{ends: "yes"},
		Use:         "remove NAME",
		Short:       "Unregister an identity; its channels and tasks stay",
		Example:     "  parley agents remove alice",
		Args:        cobra.ExactArgs(1),
	}, func(ctx context.Context, hub *v1.Client, args []string) error {
		if err := hub.RemoveAgent(ctx, args[0]); err != nil {
			return err
		}
		return a.print(map[string]string{"removed": args[0]}, line("removed", args[0]))
	})
}
