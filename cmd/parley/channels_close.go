package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/parley-hub/parley/client/v1"
)

func (a *app) channelsClose() *cobra.Command {
	var reason string
	var filter []string
	var expect int
	var dryRun bool
	var c *cobra.Command
	c = a.withHub(&cobra.Command{
		Annotations: map[string]string{ends: "yes"},
		Use:         "close [CHANNEL]",
		Short:       "Close a channel, or those that a filter selects; one that has ended stays as it is",
		Long: `Close a channel; one that has ended stays as it is.

With --filter, given once or several times, every channel is closed that matches
all of them, at most 1,000 at once: agent=NAME, type=TYPE, state=STATE,
label=KEY=VALUE, q=TEXT, waiting_for=NAME, overdue=true. Nothing is closed unless
as many match as --expect says; --dry-run only counts.`,
		Example: `  parley channels close $CHANNEL --reason done
  parley channels close --filter label=team=red --dry-run
  parley channels close --filter type=consulting --filter agent=alice --expect 0`,
		Args: cobra.MaximumNArgs(1),
	}, func(ctx context.Context, hub *v1.Client, args []string) error {
		switch {
		case len(filter) > 0 && len(args) > 0:
			return usageError("give a CHANNEL or --filter, not both")
		case len(filter) == 0 && len(args) == 0:
			return usageError("CHANNEL is missing: %s, or --filter and --expect", c.UseLine())
		case len(filter) == 0 && (c.Flags().Changed("expect") || dryRun):
			return usageError("--expect and --dry-run go with --filter")
		case len(filter) > 0 && !c.Flags().Changed("expect") && !dryRun:
			return usageError("say with --expect N how many you mean to close; --dry-run counts them")
		case len(filter) > 0:
			return a.closeMany(ctx, hub, filter, v1.Closing{Reason: reason, Expect: &expect, DryRun: dryRun})
		}
		id, err := findChannel(ctx, hub, args[0])
		if err != nil {
			return err
		}
		ch, err := hub.CloseChannel(ctx, id, reason)
		if err != nil {
			return err
		}
		return a.print(ch.Raw, linef("%s is %s (%s)", ch.ID, ch.State, cell(ch.CloseReason)))
	})
	c.Flags().StringVar(&reason, "reason", "", "why (default explicit_close)")
	c.Flags().StringArrayVar(&filter, "filter", nil, "which, as `KEY=VALUE`; may be repeated")
	c.Flags().IntVar(&expect, "expect", 0, "how many there are; nothing is closed if there are more or less")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "only count")
	return c
}

// closeFilter reads the filter of channels.
func closeFilter(list []string) (map[string]any, error) {
	filter := map[string]any{}
	for _, text := range list {
		key, value, ok := strings.Cut(text, "=")
		if !ok || value == "" {
			return nil, usageError("--filter %s: it looks like --filter type=workflow", text)
		}
		switch key {
		case "agent", "type", "q", "waiting_for":
			if _, given := filter[key]; given {
				return nil, usageError("--filter %s is given twice; give it once", key)
			}
			filter[key] = value
		case "state", "label":
			before, _ := filter[key].([]string)
			filter[key] = append(before, value)
		case "overdue":
			if value != "true" {
				return nil, usageError("--filter overdue=%s: it is true, or left out", value)
			}
			filter[key] = true
		default:
			return nil, usageError("--filter %s: it is agent, type, state, label, q, waiting_for or overdue", key)
		}
	}
	return filter, nil
}

func (a *app) closeMany(ctx context.Context, hub *v1.Client, filter []string, closing v1.Closing) error {
	var err error
	if closing.Filter, err = closeFilter(filter); err != nil {
		return err
	}
	if closing.DryRun {
		closing.Expect = nil
	}
	done, err := hub.CloseChannels(ctx, closing)
	if err != nil {
		return err
	}
	err = a.print(done, func(w io.Writer) error {
		if closing.DryRun {
			more := ""
			if done.Next != "" {
				more = ", and more"
			}
			_, err := fmt.Fprintf(w, "%d would be closed%s\n", done.Matched, more)
			return err
		}
		for _, f := range done.Failed {
			fmt.Fprintf(w, "%s is not closed: %s\n", f.Channel, cell(f.Detail))
		}
		_, err := fmt.Fprintf(w, "%d closed\n", done.Closed)
		return err
	})
	if err == nil && len(done.Failed) > 0 {
		err = fmt.Errorf("%d of %d were not closed", len(done.Failed), done.Matched)
	}
	return err
}
