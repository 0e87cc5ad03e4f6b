package main

import (
	"context"
	"io"
	"strconv"

	"github.com/spf13/cobra"
)

// aghChannel has the shown fields of a channel.
type aghChannel struct {
	Channel  string `json:"channel"`
	Purpose  string `json:"purpose"`
	Peers    int    `json:"peer_count"`
	Messages int    `json:"message_count"`
	Last     string `json:"last_activity_at"`
}

// aghChannels lists channels when called without a subcommand, as AGH's does.
func (a *app) aghChannels() *cobra.Command {
	c := a.aghChannelsList("channels")
	c.AddCommand(a.aghChannelsList("list"), a.aghChannelsCreate())
	return c
}

func (a *app) aghChannelsList(name string) *cobra.Command {
	return a.withNetwork(&cobra.Command{
		Use:     name + " --workspace WORKSPACE",
		Short:   "List the channels of a workspace, the newest activity first",
		Example: "  parley agh channels list --workspace ws_harbor",
		Args:    cobra.NoArgs,
	}, func(ctx context.Context, n *network, _ []string) error {
		answer, err := n.get(ctx, n.path("channels"), nil)
		if err != nil {
			return err
		}
		raw, channels, err := unwrap[[]aghChannel](answer, "channels")
		if err != nil {
			return err
		}
		return a.print(raw, func(w io.Writer) error {
			rows := make([][]string, len(channels))
			for i, c := range channels {
				rows[i] = []string{cell(c.Channel), strconv.Itoa(c.Peers), strconv.Itoa(c.Messages), agoText(c.Last), brief(c.Purpose)}
			}
			return a.writeColumns(w, []column{{"CHANNEL", flexible}, {"PEERS", fixed}, {"MESSAGES", fixed}, {"LAST", fixed}, {"PURPOSE", flexible}}, rows)
		})
	})
}

func (a *app) aghChannelsCreate() *cobra.Command {
	var channel, purpose string
	var agents []string
	c := a.withNetwork(&cobra.Command{
		Use:     "create [CHANNEL] --workspace WORKSPACE --purpose TEXT --agent NAME",
		Short:   "Open a channel with a hosted peer for each of some agents: all of them, or none",
		Example: "  parley agh channels create yard --workspace ws_harbor --purpose 'Plan the berths.' --agent alice --agent parrot",
		Args:    cobra.MaximumNArgs(1),
	}, func(ctx context.Context, n *network, args []string) error {
		switch {
		case len(args) == 1 && channel != "" && channel != args[0]:
			return usageError("the channel is %s, and --channel says %s; name it once", args[0], channel)
		case len(args) == 1:
			channel = args[0]
		case channel == "":
			return usageError("name the channel: parley agh channels create CHANNEL")
		}
		answer, err := n.post(ctx, n.path("channels"), map[string]any{"channel": channel, "purpose": purpose, "agent_names": agents})
		if err != nil {
			return err
		}
		raw, made, err := unwrap[struct {
			Peers []aghPeer `json:"peers"`
		}](answer, "channel")
		if err != nil {
			return err
		}
		return a.print(raw, func(w io.Writer) error { return a.writePeers(w, made.Peers) })
	})
	c.Flags().StringVar(&channel, "channel", "", "the `CHANNEL`, if it is not the argument")
	c.Flags().StringVar(&purpose, "purpose", "", "what the channel is for")
	c.Flags().StringArrayVar(&agents, "agent", nil, "the `NAME` of an agent that takes part; may be repeated")
	require(c, "purpose", "agent")
	return c
}
