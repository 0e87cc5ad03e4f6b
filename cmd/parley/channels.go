package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// channelInfo is what commands show of a channel.
type channelInfo struct {
	ID       string `json:"channel_id"`
	Manifest struct {
		Type string `json:"type"`
	} `json:"manifest"`
	Creator      string `json:"creator_id"`
	Participants []struct {
		Agent string `json:"agent_id"`
		Role  string `json:"role"`
	} `json:"participants"`
	State       string            `json:"state"`
	CreatedAt   time.Time         `json:"created_at"`
	ExpiresAt   *time.Time        `json:"expires_at"`
	CloseReason string            `json:"close_reason"`
	Labels      map[string]string `json:"labels"`
	Knobs       json.RawMessage   `json:"knobs"`
	Expected    *string           `json:"expected_next_speaker"`
	Folded      json.RawMessage   `json:"folded_state"`
	Length      uint64            `json:"length"`
	Position    string            `json:"position"`
	Warnings    []string          `json:"warnings"`
	Names       map[string]string `json:"names"`
}

// name is how somebody is called where lines are printed.
func (c *channelInfo) name(id string) string {
	if name, ok := c.Names[id]; ok {
		return cell(name)
	}
	return id
}

func (c *channelInfo) ended() bool { return c.State == "closed" || c.State == "expired" }

func (c *channelInfo) people() string {
	names := make([]string, len(c.Participants))
	for i, p := range c.Participants {
		names[i] = c.name(p.Agent)
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
	}, func(ctx context.Context, hub *hubClient, args []string) error {
		body := map[string]any{"type": args[0], "participants": args[1:], "creator": as, "intent": intent}
		if ttl != "" {
			body["ttl"] = ttl
		}
		if knobs != "" {
			if !json.Valid([]byte(knobs)) {
				return usageError("--knobs is not JSON; it looks like '{\"ordering\":\"round_robin\"}'")
			}
			body["knobs"] = json.RawMessage(knobs)
		}
		marked, err := pairs("--label", labels)
		if err != nil {
			return err
		}
		body["labels"] = marked
		var ch channelInfo
		var raw json.RawMessage
		if err := hub.call(ctx, http.MethodPost, "/v1/channels", body, &raw); err != nil {
			return err
		}
		if err := json.Unmarshal(raw, &ch); err != nil {
			return err
		}
		return a.print(raw, func(w io.Writer) error {
			for _, warning := range ch.Warnings {
				fmt.Fprintln(plain{a.err}, "warning:", cell(warning))
			}
			_, err := fmt.Fprintf(w, "%s  %s of %s is %s\n", ch.ID, ch.Manifest.Type, ch.people(), ch.State)
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
	return listCommand(a, listing{
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
	}, func(w io.Writer, ch *channelInfo, names map[string]string) {
		ch.Names = names
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", ch.ID, ch.Manifest.Type, ch.State, ch.people(), ch.CreatedAt.Format(time.RFC3339))
	})
}

// channel asks for one channel.
func (h *hubClient) channel(ctx context.Context, id string) (*channelInfo, json.RawMessage, error) {
	var raw json.RawMessage
	if err := h.call(ctx, http.MethodGet, "/v1/channels/"+url.PathEscape(id), nil, &raw); err != nil {
		return nil, nil, err
	}
	var ch channelInfo
	err := json.Unmarshal(raw, &ch)
	return &ch, raw, err
}

func (a *app) channelsShow() *cobra.Command {
	return a.withHub(&cobra.Command{
		Use:     "show CHANNEL",
		Short:   "Show a channel: who is in it, whose turn it is, what it folds to",
		Example: "  parley channels show $CHANNEL",
		Args:    cobra.ExactArgs(1),
	}, func(ctx context.Context, hub *hubClient, args []string) error {
		ch, raw, err := hub.channel(ctx, args[0])
		if err != nil {
			return err
		}
		return a.print(raw, ch.write)
	})
}

func (c *channelInfo) write(w io.Writer) error {
	return table(w, func(w io.Writer) {
		state := c.State
		if c.CloseReason != "" {
			state += " (" + cell(c.CloseReason) + ")"
		}
		fmt.Fprintf(w, "channel\t%s\n", c.ID)
		fmt.Fprintf(w, "type\t%s\n", c.Manifest.Type)
		fmt.Fprintf(w, "state\t%s\n", state)
		for _, p := range c.Participants {
			fmt.Fprintf(w, "%s\t%s  %s\n", p.Role, c.name(p.Agent), p.Agent)
		}
		if c.Expected != nil {
			fmt.Fprintf(w, "turn\t%s\n", c.name(*c.Expected))
		}
		fmt.Fprintf(w, "created\t%s\n", c.CreatedAt.Format(time.RFC3339))
		if c.ExpiresAt != nil && !c.ended() {
			fmt.Fprintf(w, "expires\t%s\n", c.ExpiresAt.Format(time.RFC3339))
		}
		for _, k := range slices.Sorted(maps.Keys(c.Labels)) {
			fmt.Fprintf(w, "label\t%s=%s\n", cell(k), cell(c.Labels[k]))
		}
		fmt.Fprintf(w, "envelopes\t%d\n", c.Length)
		fmt.Fprintf(w, "position\t%s\n", c.Position)
		fmt.Fprintf(w, "folded\t%s\n", c.Folded)
		for _, warning := range c.Warnings {
			fmt.Fprintf(w, "warning\t%s\n", cell(warning))
		}
	})
}

func (a *app) channelsClose() *cobra.Command {
	var reason string
	c := a.withHub(&cobra.Command{
		Use:     "close CHANNEL",
		Short:   "Close a channel; one that has ended stays as it is",
		Example: "  parley channels close $CHANNEL --reason done",
		Args:    cobra.ExactArgs(1),
	}, func(ctx context.Context, hub *hubClient, args []string) error {
		var raw json.RawMessage
		path := "/v1/channels/" + url.PathEscape(args[0]) + "/close"
		if err := hub.call(ctx, http.MethodPost, path, map[string]string{"reason": reason}, &raw); err != nil {
			return err
		}
		var ch channelInfo
		if err := json.Unmarshal(raw, &ch); err != nil {
			return err
		}
		return a.print(raw, func(w io.Writer) error {
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
		Use:     "delete CHANNEL --yes",
		Short:   "Delete a channel and everything in it, for good; its audit stays",
		Example: "  parley channels delete $CHANNEL --yes",
		Args:    cobra.ExactArgs(1),
	}, func(ctx context.Context, hub *hubClient, args []string) error {
		if !yes {
			return usageError("this cannot be undone: say parley channels delete %s --yes", args[0])
		}
		if err := hub.call(ctx, http.MethodDelete, "/v1/channels/"+url.PathEscape(args[0]), nil, nil); err != nil {
			return err
		}
		return a.print(map[string]string{"deleted": args[0]}, func(w io.Writer) error {
			_, err := fmt.Fprintln(w, "deleted", args[0])
			return err
		})
	})
	c.Flags().BoolVar(&yes, "yes", false, "yes, delete it")
	return c
}
