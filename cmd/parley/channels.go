package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	v1 "github.com/parley-hub/parley/client/v1"
)

// nameIn is how lines call an identity of a channel.
func nameIn(ch *v1.Channel, id string) string { return cell(ch.Name(id)) }

func people(ch *v1.Channel) string {
	names := make([]string, len(ch.Participants))
	for i, p := range ch.Participants {
		names[i] = nameIn(ch, p.Agent)
	}
	return strings.Join(names, ", ")
}

func (a *app) channels() *cobra.Command {
	return group("channels", "Open, list, show, read, close, delete and lint channels",
		a.channelsOpen(), a.channelsList(), a.channelsShow(), a.channelsClose(), a.channelsDelete(),
		a.channelsMessages(), a.channelsLint())
}

func (a *app) channelsOpen() *cobra.Command {
	var as, ttl, knobs, intent string
	var labels []string
	c := a.withHub(&cobra.Command{
		Use:     "open TYPE NAME... --as CREATOR",
		Short:   "Open a channel and wait until everyone has accepted",
		Example: "  parley channels open conversation parrot --as alice",
		Args:    cobra.MinimumNArgs(2),
	}, func(ctx context.Context, hub *v1.Client, args []string) error {
		opening := v1.Opening{Type: args[0], Participants: args[1:], Creator: as, Intent: intent, TTL: ttl}
		if knobs != "" {
			if !json.Valid([]byte(knobs)) {
				return usageError("--knobs is not JSON; it looks like '{\"ordering\":\"round_robin\"}'")
			}
			opening.Knobs = json.RawMessage(knobs)
		}
		var err error
		if opening.Labels, err = pairs("--label", labels); err != nil {
			return err
		}
		ch, err := hub.OpenChannel(ctx, opening)
		if err != nil {
			return err
		}
		return a.print(ch.Raw, func(w io.Writer) error {
			for _, warning := range ch.Warnings {
				fmt.Fprintln(plain{a.err}, "warning:", cell(warning))
			}
			_, err := fmt.Fprintf(w, "%s  %s of %s is %s\n", ch.ID, ch.Manifest.Type, people(ch), ch.State)
			return err
		})
	})
	c.Flags().StringVar(&as, "as", "", "the `NAME` or id that opens the channel")
	c.Flags().StringVar(&ttl, "ttl", "", "how long it may last, like 30m or 2h; 0 for ever")
	c.Flags().StringVar(&knobs, "knobs", "", "the adapter's settings, as a JSON object")
	c.Flags().StringVar(&intent, "intent", "", "what it is for")
	c.Flags().StringArrayVar(&labels, "label", nil, "a label, as `key=value`; may be repeated")
	return c
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
	return listCommand(a, (*v1.Client).Channels, listing{
		what:    "channels",
		short:   "List channels",
		example: "  parley channels list --state active",
		none:    "There are no such channels. Open one with parley channels open.",
		columns: "CHANNEL\tTYPE\tSTATE\tPARTICIPANTS\tCREATED",
		filters: func(f *pflag.FlagSet) {
			f.String("agent", "", "only those that this `NAME` or id takes part in")
			f.String("type", "", "only of this type")
			f.String("state", "", "only in this state: pending, active, closed or expired")
			f.StringArray("label", nil, "only with this label, as `key=value`; may be repeated")
			f.Bool("newest", false, "the newest first")
		},
	}, func(w io.Writer, ch *v1.Channel, names map[string]string) {
		ch.Names = names
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", ch.ID, ch.Manifest.Type, ch.State, people(ch), ch.CreatedAt.Format(time.RFC3339))
	})
}

func (a *app) channelsShow() *cobra.Command {
	return a.withHub(&cobra.Command{
		Use:     "show CHANNEL",
		Short:   "Show a channel: who is in it, whose turn it is, what it folds to",
		Example: "  parley channels show $CHANNEL",
		Args:    cobra.ExactArgs(1),
	}, func(ctx context.Context, hub *v1.Client, args []string) error {
		id, err := findChannel(ctx, hub, args[0])
		if err != nil {
			return err
		}
		ch, err := hub.Channel(ctx, id)
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

func (a *app) channelsClose() *cobra.Command {
	var reason string
	c := a.withHub(&cobra.Command{
		Annotations: map[string]string{ends: "yes"},
		Use:         "close CHANNEL",
		Short:       "Close a channel; one that has ended stays as it is",
		Example:     "  parley channels close $CHANNEL --reason done",
		Args:        cobra.ExactArgs(1),
	}, func(ctx context.Context, hub *v1.Client, args []string) error {
		id, err := findChannel(ctx, hub, args[0])
		if err != nil {
			return err
		}
		ch, err := hub.CloseChannel(ctx, id, reason)
		if err != nil {
			return err
		}
		return a.print(ch.Raw, func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "%s is %s (%s)\n", ch.ID, ch.State, cell(ch.CloseReason))
			return err
		})
	})
	c.Flags().StringVar(&reason, "reason", "", "why (default explicit_close)")
	return c
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
		return a.print(map[string]string{"deleted": id}, func(w io.Writer) error {
			_, err := fmt.Fprintln(w, "deleted", id)
			return err
		})
	})
	c.Flags().BoolVar(&yes, "yes", false, "yes, delete it")
	return c
}
