package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/parley-hub/parley/journal/cluster"
	"github.com/parley-hub/parley/server/access"
	"github.com/parley-hub/parley/server/config"
	"github.com/parley-hub/parley/server/folder"
)

func (a *app) clusterKey() *cobra.Command {
	c := &cobra.Command{
		Use:   "operator-key --cluster URL --data DIR",
		Short: "Make an operator's key while all nodes are stopped",
		Long: `Make an access key of an operator and print its token, for a cluster whose last
operator key is lost. Stop all nodes first. The command leads the cluster for a
moment, on the data folder of one node: it fences the log as a node does that takes
over, so a node that runs unseen is refused its next write and loses nothing. Revoke
the lost key then, with parley keys revoke, when the nodes run again.`,
		Example: "  parley cluster operator-key --cluster nats://a:4222,b:4222,c:4222 --data ./n1",
		Args:    cobra.NoArgs,
	}
	flags := addCluster(c, true)
	c.RunE = func(c *cobra.Command, _ []string) error {
		settings, err := a.clusterSettings(flags)
		if err != nil {
			return err
		}
		made, err := a.anotherKey(c.Context(), settings.Config)
		if err != nil {
			return err
		}
		return a.print(made, func(w io.Writer) error {
			for _, warning := range made.Warnings {
				fmt.Fprintln(w, "warning:", warning)
			}
			_, err := fmt.Fprintf(w, "operator key of cluster %s, shown once: %s\nstart the nodes again; commands take it from PARLEY_TOKEN\n", made.Cluster, made.Token)
			return err
		})
	}
	return c
}

// madeKey is a key that was made while no node serves.
type madeKey struct {
	Cluster  string   `json:"cluster"`
	Token    string   `json:"token"`
	Warnings []string `json:"warnings,omitempty"`
}

// anotherKey makes an operator's key with the folder of a stopped node, by serving for
// a moment.
func (a *app) anotherKey(ctx context.Context, cfg config.Config) (_ *madeKey, err error) {
	if _, err := copiesIn(cfg.Data.Dir); err != nil {
		return nil, err
	}
	held, err := folder.Hold(cfg.Data.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, held.Release()) }()
	log, err := connectCluster(cfg.Cluster)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	made := &madeKey{Cluster: cfg.Cluster.Name}
	if made.Warnings, err = checkCluster(ctx, cfg.Cluster, log); err != nil {
		return nil, err
	}
	state, err := clusterState(ctx, cfg.Cluster, log)
	if err != nil {
		return nil, err
	}
	if err := noNodeRuns(ctx, cfg.Cluster, log, "an operator's key is made"); err != nil {
		return nil, err
	}
	cfg.Cluster.Shards = state.Shards
	made.Token, err = a.leadForKey(ctx, cfg, "parley-operator-key", cfg.Data.Dir)
	return made, err
}

// leadForKey makes an operator's key as a node that serves for a moment.
func (a *app) leadForKey(ctx context.Context, cfg config.Config, node, dir string) (token string, err error) {
	log, err := connectCluster(cfg.Cluster)
	if err != nil {
		return "", err
	}
	quiet := slog.New(slog.DiscardHandler) // errors are returned
	engine, err := cluster.Open(cluster.Options{Dir: dir, Node: node, Log: log, Shards: cfg.Cluster.Shards, Disk: diskOptions(cfg.Data, quiet), Manual: true})
	if err != nil {
		log.Close()
		return "", err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	leading, cancel := context.WithTimeout(ctx, catchUpTimeout)
	defer cancel()
	if err := engine.Acquire(leading); err != nil {
		return "", err
	}
	keys, closeHub, err := openKeys(ctx, engine, dir)
	if err != nil {
		return "", err
	}
	defer closeHub()
	token, _, err = keys.Add(ctx, access.Operator, "", folderCaller)
	return token, err
}
