package main

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// aghWorkItem has the shown fields of a piece of work.
type aghWorkItem struct {
	ID       string `json:"work_id"`
	Channel  string `json:"channel"`
	Thread   string `json:"thread_id"`
	Direct   string `json:"direct_id"`
	Opener   string `json:"opened_by_peer_id"`
	Target   string `json:"target_peer_id"`
	State    string `json:"state"`
	Opened   string `json:"opened_at"`
	Last     string `json:"last_activity_at"`
	Terminal string `json:"terminal_at"`
}

// aghWork has two names, as AGH's command has.
func (a *app) aghWork() *cobra.Command {
	return group("work", "Look work up", a.aghWorkShow("lookup"), a.aghWorkShow("status"))
}

func (a *app) aghWorkShow(name string) *cobra.Command {
	var id string
	c := a.withNetwork(&cobra.Command{
		Use:     name + " --workspace WORKSPACE --work WORK",
		Short:   "Show a piece of work: where it is, whose it is, and its state",
		Example: "  parley agh work " + name + " --workspace ws_harbor --work work_tide_1",
		Args:    cobra.NoArgs,
	}, func(ctx context.Context, n *network, _ []string) error {
		answer, err := n.get(ctx, n.path("work", id), nil)
		if err != nil {
			return err
		}
		_, item, err := unwrap[aghWorkItem](answer, "work")
		if err != nil {
			return err
		}
		return a.print(answer, func(w io.Writer) error { return item.write(w) })
	})
	c.Flags().StringVar(&id, "work", "", "the work's `ID`")
	require(c, "work")
	return c
}

func (i *aghWorkItem) write(w io.Writer) error {
	return table(w, func(w io.Writer) {
		fmt.Fprintf(w, "work\t%s\n", cell(i.ID))
		fmt.Fprintf(w, "state\t%s\n", cell(i.State))
		fmt.Fprintf(w, "in\t%s of %s\n", cell(cmp.Or(i.Thread, i.Direct)), cell(i.Channel))
		fmt.Fprintf(w, "opened\t%s by %s\n", cell(i.Opened), cell(i.Opener))
		fmt.Fprintf(w, "for\t%s\n", cell(i.Target))
		fmt.Fprintf(w, "last\t%s\n", cell(i.Last))
		if i.Terminal != "" {
			fmt.Fprintf(w, "ended\t%s\n", cell(i.Terminal))
		}
	})
}
