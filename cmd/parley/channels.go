package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	v1 "github.com/parley-hub/parley/client/v1"
)

// nameIn returns the name of an identity in lines of a channel.
func nameIn(ch *v1.Channel, id string) string { return cell(ch.Name(id)) }

func people(ch *v1.Channel) string {
	names := make([]string, len(ch.Participants))
	for i, p := range ch.Participants {
		names[i] = nameIn(ch, p.Agent)
	}
	return strings.Join(names, ", ")
}

func (a *app) channels() *cobra.Command {
	return group("channels", "Open, list, show, explain, read, close, delete and lint channels",
		a.channelsOpen(), a.channelsList(), a.channelsShow(), a.channelsWhy(), a.channelsState(), a.channelsClose(), a.channelsDelete(),
		a.channelsMessages(), a.channelsLint())
}

// pairs reads flags of the form key=value.
func pairs(flag string, list []string) (map[string]string, error) {
	found := map[string]string{}
	for _, text := range list {
		k, v, ok := strings.Cut(text, "=")
		if !ok || k == "" {
			return nil, usageError("%s %s: it looks like %s team=red", flag, text, flag)
		}
		found[k] = v
	}
	return found, nil
}

func (a *app) channelsList() *cobra.Command {
	rows := func(hub *v1.Client, ctx context.Context, q url.Values) (*v1.Page[v1.Row], error) {
		page, err := hub.Rows(ctx, q)
		if err == nil {
			err = a.unknownType(q.Get("type"), len(page.Items))
		}
		return page, err
	}
	return listCommand(a, rows, listing{
		what:    "channels",
		short:   "List channels, the newest first",
		example: "  parley channels list --state active",
		none:    "There are no such channels. Open one with parley channels open.",
		columns: rowColumns,
		filters: func(f *pflag.FlagSet) {
			f.String("agent", "", "only those that this `NAME` or id takes part in")
			f.String("type", "", "only of this type")
			f.String("state", "", "only in this state: pending, active, closed or expired")
			f.StringArray("label", nil, "only with this label, as `key=value`; may be repeated")
			f.Bool("newest", true, "the newest first; --newest=false: the oldest")
		},
		json: func(hub *v1.Client, ctx context.Context, q url.Values) (json.RawMessage, error) {
			page, err := hub.Channels(ctx, q)
			if err != nil {
				return nil, err
			}
			return page.Raw, a.unknownType(q.Get("type"), len(page.Items))
		},
	}, rowCells)
}

func (a *app) channelsShow() *cobra.Command {
	return a.withHub(&cobra.Command{
		Use:     "show CHANNEL",
		Short:   "Show a channel: who is in it, whose turn it is, what it folds to",
		Example: "  parley channels show $CHANNEL",
		Args:    cobra.ExactArgs(1),
	}, func(ctx context.Context, hub *v1.Client, args []string) error {
		ch, err := namedChannel(ctx, hub, args[0])
		if err != nil {
			return err
		}
		return a.print(ch.Raw, func(w io.Writer) error { return writeChannel(w, ch) })
	})
}

func writeChannel(w io.Writer, ch *v1.Channel) error {
	return table(w, func(w io.Writer) {
		state := ch.State
		if ch.CloseReason != "" {
			state += " (" + cell(ch.CloseReason) + ")"
		}
		fmt.Fprintf(w, "channel\t%s\n", ch.ID)
		fmt.Fprintf(w, "type\t%s\n", ch.Manifest.Type)
		fmt.Fprintf(w, "state\t%s\n", state)
		for _, p := range ch.Participants {
			fmt.Fprintf(w, "%s\t%s  %s\n", p.Role, nameIn(ch, p.Agent), p.Agent)
		}
		if ch.Expected != nil {
			fmt.Fprintf(w, "turn\t%s\n", nameIn(ch, *ch.Expected))
		}
		fmt.Fprintf(w, "created\t%s\n", ch.CreatedAt.Format(time.RFC3339))
		if ch.ExpiresAt != nil && !ch.Ended() {
			fmt.Fprintf(w, "expires\t%s\n", ch.ExpiresAt.Format(time.RFC3339))
		}
		for _, k := range slices.Sorted(maps.Keys(ch.Labels)) {
			fmt.Fprintf(w, "label\t%s=%s\n", cell(k), cell(ch.Labels[k]))
		}
		fmt.Fprintf(w, "envelopes\t%d\n", ch.Length)
		fmt.Fprintf(w, "position\t%s\n", ch.Position)
		fmt.Fprintf(w, "folded\t%s\n", ch.Folded)
		for _, warning := range ch.Warnings {
			fmt.Fprintf(w, "warning\t%s\n", cell(warning))
		}
	})
}

func (a *app) channelsDelete() *cobra.Command {
	var yes bool
	c := a.withHub(&cobra.Command{
		Annotations: map[string]string{ends: "yes"},
		Use:         "delete CHANNEL --yes",
		Short:       "Delete a channel and everything in it, for good; its audit stays",
		Example:     "  parley channels delete $CHANNEL --yes",
		Args:        cobra.ExactArgs(1),
	}, func(ctx context.Context, hub *v1.Client, args []string) error {
		if !yes {
			return usageError("this cannot be undone: say parley channels delete %s --yes", args[0])
		}
		id, err := findChannel(ctx, hub, args[0])
		if err != nil {
			return err
		}
		if err := hub.DeleteChannel(ctx, id); err != nil {
			return err
		}
		return a.print(map[string]string{"deleted": id}, line("deleted", id))
	})
	c.Flags().BoolVar(&yes, "yes", false, "yes, delete it")
	return c
}
