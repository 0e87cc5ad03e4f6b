package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// agentInfo is what commands show of an identity.
type agentInfo struct {
	Passport struct {
		Name      string    `json:"name"`
		ID        string    `json:"agent_id"`
		Kind      *string   `json:"kind"`
		Owner     string    `json:"owner"`
		CreatedAt time.Time `json:"created_at"`
		Auth      struct {
			Scheme string `json:"scheme"`
		} `json:"auth"`
	} `json:"passport"`
	Resume struct {
		Summary      string   `json:"summary"`
		Capabilities []string `json:"claimed_capabilities"`
		Observed     map[string]struct {
			N, Completed, Failed, Expired int64
		} `json:"observed"`
	} `json:"resume"`
	Online bool  `json:"online"`
	Depth  int64 `json:"inbox_depth"`
}

func (i *agentInfo) kind() string {
	if i.Passport.Kind == nil {
		return "agent"
	}
	return *i.Passport.Kind
}

func (i *agentInfo) presence() string {
	if i.Online {
		return "online"
	}
	return "away"
}

func (a *app) agents() *cobra.Command {
	return group("agents", "List, show and remove identities", a.agentsList(), a.agentsShow(), a.agentsRemove())
}

func (a *app) agentsList() *cobra.Command {
	return listCommand(a, listing{
		what:    "agents",
		short:   "List identities, with presence and inbox",
		example: "  parley agents list --capability ocr",
		none:    "There are no such agents. Start one with parley agent echo NAME.",
		columns: "NAME\tKIND\tPRESENCE\tINBOX\tCAPABILITIES\tID",
		filters: func(f *pflag.FlagSet) {
			f.String("capability", "", "only who claims or has shown it")
			f.String("query", "", "only whose summary has this text")
			f.String("kind", "", "only agent, human or remote_agent")
		},
	}, func(w io.Writer, ag *agentInfo, _ map[string]string) {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\n", cell(ag.Passport.Name), ag.kind(), ag.presence(), ag.Depth,
			cell(strings.Join(ag.Resume.Capabilities, ", ")), ag.Passport.ID)
	})
}

func (a *app) agentsShow() *cobra.Command {
	return a.withHub(&cobra.Command{
		Use:     "show NAME",
		Short:   "Show an identity, by name or id",
		Example: "  parley agents show alice",
		Args:    cobra.ExactArgs(1),
	}, func(ctx context.Context, hub *hubClient, args []string) error {
		var raw json.RawMessage
		if err := hub.call(ctx, http.MethodGet, "/v1/agents/"+url.PathEscape(args[0]), nil, &raw); err != nil {
			return err
		}
		var ag agentInfo
		if err := json.Unmarshal(raw, &ag); err != nil {
			return err
		}
		return a.print(raw, func(w io.Writer) error {
			return table(w, func(w io.Writer) {
				fmt.Fprintf(w, "name\t%s\nid\t%s\nkind\t%s\npresence\t%s\ninbox\t%d unanswered\n",
					cell(ag.Passport.Name), ag.Passport.ID, ag.kind(), ag.presence(), ag.Depth)
				fmt.Fprintf(w, "auth\t%s\nregistered\t%s\n", ag.Passport.Auth.Scheme, ag.Passport.CreatedAt.Format(time.RFC3339))
				if ag.Resume.Summary != "" {
					fmt.Fprintf(w, "summary\t%s\n", cell(ag.Resume.Summary))
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
		Use:     "remove NAME",
		Short:   "Unregister an identity; its channels and tasks stay",
		Example: "  parley agents remove alice",
		Args:    cobra.ExactArgs(1),
	}, func(ctx context.Context, hub *hubClient, args []string) error {
		if err := hub.call(ctx, http.MethodDelete, "/v1/agents/"+url.PathEscape(args[0]), nil, nil); err != nil {
			return err
		}
		return a.print(map[string]string{"removed": args[0]}, func(w io.Writer) error {
			_, err := fmt.Fprintln(w, "removed", args[0])
			return err
		})
	})
}
