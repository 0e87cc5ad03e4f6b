package main

import (
	"github.com/spf13/cobra"

	"github.com/parley-hub/parley/dialect/agh/wire"
)

func (a *app) agh() *cobra.Command {
	return group("agh", "Take part in AGH's network through a hub; envelopes, ids and keys without one",
		a.aghStatus(), a.aghPeers(), a.aghChannels(), a.aghThreads(), a.aghDirects(), a.aghWork(),
		a.aghSend(), a.aghInbox(), a.aghDone(), a.aghJoin(), a.aghLeave(),
		a.aghDirectID(), a.aghRouteToken(), a.aghJCS(), a.aghDigest(),
		a.aghValidate(), a.aghVerify(), a.aghSign(), a.aghKeys())
}

func (a *app) aghDirectID() *cobra.Command {
	var workspace, channel string
	c := &cobra.Command{
		Use:     "direct-id PEER PEER --workspace WORKSPACE --channel CHANNEL",
		Short:   "Print the id of the direct room of two peers",
		Example: "  parley agh direct-id --workspace ws_harbor --channel dock crane.s01 tug.s02",
		Args:    cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			id, err := wire.DirectID(workspace, channel, args[0], args[1])
			if err != nil {
				return err
			}
			return a.print(map[string]string{"direct_id": id}, line(id))
		},
	}
	c.Flags().StringVar(&workspace, "workspace", "", "workspace id")
	c.Flags().StringVar(&channel, "channel", "", "channel of the workspace")
	require(c, "workspace", "channel")
	return c
}

func (a *app) aghRouteToken() *cobra.Command {
	return &cobra.Command{
		Use:     "route-token PEER",
		Short:   "Print the token that stands for a peer in NATS subjects",
		Example: "  parley agh route-token tug.s02",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			token, err := wire.RouteToken(args[0])
			if err != nil {
				return err
			}
			return a.print(map[string]string{"route_token": token}, line(token))
		},
	}
}

func (a *app) aghJCS() *cobra.Command {
	return &cobra.Command{
		Use:     "jcs",
		Short:   "Bring one JSON value from standard input to the canonical form of RFC 8785",
		Example: `  echo '{"b":1.0,"a":2}' | parley agh jcs`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			value, err := a.read("-")
			if err != nil {
				return err
			}
			canonical, err := wire.Canonical(value)
			if err != nil {
				return err
			}
			_, err = a.out.Write(canonical)
			return err
		},
	}
}

func (a *app) aghDigest() *cobra.Command {
	return &cobra.Command{
		Use:     "digest",
		Short:   "Print the digest of one capability object from standard input",
		Example: `  echo '{"id":"tow","summary":"Tow one hull.","outcome":"It is moored."}' | parley agh digest`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			document, err := a.read("-")
			if err != nil {
				return err
			}
			capability, err := wire.ReadCapability(document)
			if err != nil {
				return err
			}
			digest := capability.ComputeDigest()
			return a.print(map[string]string{"digest": digest}, line(digest))
		},
	}
}
