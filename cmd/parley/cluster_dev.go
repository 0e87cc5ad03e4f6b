package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/parley-hub/parley/journal/cluster/natsservers"
	"github.com/parley-hub/parley/journal/cluster/port"
	"github.com/parley-hub/parley/server/config"
)

// devServers is how many NATS servers dev starts.
const devServers = 3

func (a *app) clusterDev() *cobra.Command {
	c := &cobra.Command{
		Use:   "dev DIR",
		Short: "Run three NATS servers and one node in this process, for a look",
		Long: `Run three NATS servers and one node in this process, with all their data in DIR, for
a look at a cluster. More nodes can join: parley cluster status says where. On one
machine it survives no more than a hub alone does.`,
		Example: "  parley cluster dev ./look",
		Args:    cobra.ExactArgs(1),
	}
	flags := addSettings(c, func(key config.Key) bool { return key.Name == "http.listen" || key.Name == "cluster.node" })
	c.RunE = func(c *cobra.Command, args []string) error {
		settings, err := flags.load(a.environ)
		if err != nil {
			return err
		}
		log, err := newLog(a.err, settings.Log)
		if err != nil {
			return err
		}
		ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		defer context.AfterFunc(ctx, func() { signal.Reset(os.Interrupt) })()
		servers, err := natsservers.Start(ctx, devServers, args[0])
		if err != nil {
			return err
		}
		defer servers.Stop()
		cfg := settings.Config
		cfg.Data.Dir = filepath.Join(args[0], "node")
		cfg.Cluster.URL, cfg.Cluster.Monitor, cfg.Cluster.Replicas = servers.URLs(), servers.Monitors(), devServers
		if err := a.devCluster(ctx, cfg); err != nil {
			return err
		}
		return a.runNode(ctx, cfg, log)
	}
	return c
}

// devCluster makes the cluster, unless an earlier run made it.
func (a *app) devCluster(ctx context.Context, cfg config.Config) error {
	log, err := connectCluster(cfg.Cluster)
	if err != nil {
		return err
	}
	defer log.Close()
	ctx, cancel := context.WithTimeout(ctx, clusterTimeout)
	defer cancel()
	if _, err = log.State(ctx, 0); !errors.Is(err, port.ErrNoLog) {
		return nil // the node waits until the folder is known
	}
	_, err = a.makeCluster(ctx, cfg, "", false)
	return err
}
