package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"
)

// aghPeer has the shown fields of a peer.
type aghPeer struct {
	ID       string `json:"peer_id"`
	Name     string `json:"display_name"`
	Channel  string `json:"channel"`
	Session  string `json:"session_id"`
	Presence string `json:"presence_state"`
}

func (a *app) aghPeers() *cobra.Command {
	return a.withNetwork(&cobra.Command{
		Use:     "peers [CHANNEL] --workspace WORKSPACE",
		Short:   "List the peers of a workspace, hosted ones first",
		Example: "  parley agh peers --workspace ws_harbor",
		Args:    cobra.MaximumNArgs(1),
	}, func(ctx context.Context, n *network, args []string) error {
		q := url.Values{}
		if len(args) == 1 {
			q.Set("channel", args[0])
		}
		answer, err := n.get(ctx, n.path("peers"), q)
		if err != nil {
			return err
		}
		raw, peers, err := unwrap[[]aghPeer](answer, "peers")
		if err != nil {
			return err
		}
		return a.print(raw, func(w io.Writer) error { return a.writePeers(w, peers) })
	})
}

func (a *app) writePeers(w io.Writer, peers []aghPeer) error {
	if len(peers) == 0 {
		_, err := fmt.Fprintln(w, "There are no such peers. Join one with parley agh join.")
		return err
	}
	rows := make([][]string, len(peers))
	for i, p := range peers {
		rows[i] = []string{cell(p.ID), cell(p.Channel), cell(p.Presence), orDash(p.Session), brief(p.Name)}
	}
	return a.writeColumns(w, []column{{"PEER", flexible}, {"CHANNEL", flexible}, {"PRESENCE", fixed}, {"SESSION", fixed}, {"NAME", wide}}, rows)
}

func (a *app) aghJoin() *cobra.Command {
	var channel, agent, peer string
	c := a.withNetwork(&cobra.Command{
		Use:   "join --workspace WORKSPACE --channel CHANNEL --agent NAME",
		Short: "Join an agent to a channel as a hosted peer",
		Long: `Join an agent to a channel as a hosted peer, until it leaves: also after the hub
was restarted. An agent that is not known is registered, and a workspace or
channel that is not there begins. The session that is printed is what the peer
sends and reads with.`,
		Example: "  parley agh join --workspace ws_harbor --channel dock --agent crane",
		Args:    cobra.NoArgs,
	}, func(ctx context.Context, n *network, _ []string) error {
		body := map[string]string{"agent": agent}
		if peer != "" {
			body["peer_id"] = peer
		}
		raw, err := n.post(ctx, n.path("channels", channel, "peers"), body)
		if err != nil {
			return err
		}
		_, id, err := unwrap[string](raw, "peer_id")
		if err != nil {
			return err
		}
		_, session, err := unwrap[string](raw, "session_id")
		if err != nil {
			return err
		}
		return a.print(raw, linef("%s joined %s with the session %s", cell(id), cell(channel), cell(session)))
	})
	c.Flags().StringVar(&channel, "channel", "", "the `CHANNEL` to join")
	c.Flags().StringVar(&agent, "agent", "", "the agent's `NAME`")
	c.Flags().StringVar(&peer, "peer", "", "the peer's `ID` (default made of the agent's name and the session)")
	require(c, "channel", "agent")
	return c
}

func (a *app) aghLeave() *cobra.Command {
	var channel, peer string
	c := a.withNetwork(&cobra.Command{
		Use:     "leave --workspace WORKSPACE --channel CHANNEL --peer PEER",
		Short:   "End a hosted peer's part in a channel; what it said stays",
		Example: "  parley agh leave --workspace ws_harbor --channel dock --peer tug.s02",
		Args:    cobra.NoArgs,
	}, func(ctx context.Context, n *network, _ []string) error {
		if err := n.hub.Call(ctx, http.MethodDelete, n.path("channels", channel, "peers", peer), nil, nil); err != nil {
			return err
		}
		return a.print(map[string]string{"left": peer}, line(cell(peer)+" left "+cell(channel)))
	})
	c.Flags().StringVar(&channel, "channel", "", "the `CHANNEL` to leave")
	c.Flags().StringVar(&peer, "peer", "", "the peer's `ID`")
	require(c, "channel", "peer")
	return c
}
