package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/parley-hub/parley/client/v1"
)

// aghNetworkStatus has the shown fields of the network's status.
type aghNetworkStatus struct {
	Enabled        bool     `json:"enabled"`
	Status         string   `json:"status"`
	Host           string   `json:"listener_host"`
	Port           int      `json:"listener_port"`
	LastDisconnect string   `json:"last_disconnect"`
	Local          int      `json:"local_peers"`
	Remote         int      `json:"remote_peers"`
	Channels       []string `json:"declared_channels"`
	Queued         int      `json:"queued_messages"`
	Sent           int64    `json:"messages_sent"`
	Received       int64    `json:"messages_received"`
	Rejected       int64    `json:"messages_rejected"`
	Delivered      int64    `json:"messages_delivered"`
}

func (a *app) aghStatus() *cobra.Command {
	return a.withForms(a.withHub(&cobra.Command{
		Use:     "status",
		Short:   "Show how AGH's network of a hub is doing",
		Example: "  parley agh status",
		Args:    cobra.NoArgs,
	}, func(ctx context.Context, hub *v1.Client, _ []string) error {
		var answer json.RawMessage
		if err := hub.Call(ctx, http.MethodGet, "/agh/network/status", nil, &answer); err != nil {
			return err
		}
		raw, s, err := unwrap[aghNetworkStatus](answer, "network")
		if err != nil {
			return err
		}
		return a.print(raw, func(w io.Writer) error { return s.write(w) })
	}))
}

func (s *aghNetworkStatus) write(w io.Writer) error {
	return table(w, func(w io.Writer) {
		fmt.Fprintf(w, "network\t%s\n", cell(s.Status))
		if !s.Enabled {
			return
		}
		if s.Host != "" {
			fmt.Fprintf(w, "nats\t%s\n", cell(net.JoinHostPort(s.Host, strconv.Itoa(s.Port))))
		}
		if s.LastDisconnect != "" {
			fmt.Fprintf(w, "disconnected\t%s\n", cell(s.LastDisconnect))
		}
		fmt.Fprintf(w, "peers\t%d hosted, %d remote\n", s.Local, s.Remote)
		fmt.Fprintf(w, "channels\t%s\n", orDash(strings.Join(s.Channels, ", ")))
		fmt.Fprintf(w, "messages\t%d sent, %d received, %d rejected, %d delivered, %d waiting\n", s.Sent, s.Received, s.Rejected, s.Delivered, s.Queued)
	})
}
