package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/parley-hub/parley/journal/cluster"
	"github.com/parley-hub/parley/journal/cluster/port"
	"github.com/parley-hub/parley/journal/disk"
	"github.com/parley-hub/parley/server/config"
)

func (a *app) clusterReseed() *cobra.Command {
	c := &cobra.Command{
		Use:   "reseed --cluster URL --data DIR",
		Short: "Make the streams anew from the copies of one node, in a new epoch",
		Long: `Make the streams of a cluster anew from the copies in the data folder of one node,
in a new epoch. It is for streams that contradict the copies: a log that went back,
was deleted or damaged (/readyz says so). Stop all nodes first, and choose the one
whose copies are most advanced: parley data check DIR tells their offsets. What
only the streams had is lost. The other nodes take their copies from that one.`,
		Example:     "  parley cluster reseed --cluster nats://a:4222,b:4222,c:4222 --data ./n1 --yes",
		Args:        cobra.NoArgs,
		Annotations: map[string]string{ends: "yes"},
	}
	flags := addCluster(c, true)
	yes := c.Flags().Bool("yes", false, "delete the streams as they are now")
	c.RunE = func(c *cobra.Command, _ []string) error {
		settings, err := a.clusterSettings(flags)
		if err != nil {
			return err
		}
		if !*yes {
			return usageError("reseed deletes the streams of cluster %s as they are now; confirm with --yes", settings.Cluster.Name)
		}
		return a.reseed(c.Context(), settings.Config)
	}
	return c
}

func (a *app) reseed(ctx context.Context, cfg config.Config) error {
	log, err := connectCluster(cfg.Cluster)
	if err != nil {
		return err
	}
	defer log.Close()
	if _, err := checkCluster(ctx, cfg.Cluster, log); err != nil {
		return err
	}
	if err := noNodeRuns(ctx, cfg.Cluster, log, "a reseed"); err != nil {
		return err
	}
	shards, err := copiesIn(cfg.Data.Dir)
	if err != nil {
		return err
	}
	above := uint64(0)
	for shard := range shards {
		if state, err := log.State(ctx, shard); err == nil {
			above = max(above, state.Epoch)
		}
	}
	epoch, err := cluster.NewEpoch(disk.Options{}, cfg.Data.Dir, shards, above)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, clusterTimeout)
	defer cancel()
	if err := log.Replace(ctx, shards, cfg.Cluster.Replicas, epoch); err != nil {
		return err
	}
	data := map[string]any{"cluster": cfg.Cluster.Name, "shards": shards, "epoch": epoch, "data": cfg.Data.Dir}
	return a.print(data, linef("cluster %s: %d shards made anew, epoch %d; start the node of %s first, then the others", cfg.Cluster.Name, shards, epoch, cfg.Data.Dir))
}

// noNodeRuns refuses to continue while nodes run.
func noNodeRuns(ctx context.Context, cfg config.Cluster, log port.Log, before string) error {
	live, err := cluster.Survey(ctx, log, 2*cfg.Suspect)
	if err == nil && len(live) > 0 {
		err = fmt.Errorf("node %s is running; stop all nodes before %s", live[0].Name, before)
	}
	return err
}

// copiesIn counts the copies in a node's folder.
func copiesIn(dir string) (shards int, err error) {
	for {
		_, err := os.Stat(cluster.Folder(disk.Options{}, dir, shards))
		if errors.Is(err, os.ErrNotExist) {
			break
		}
		if err != nil {
			return 0, err
		}
		shards++
	}
	if shards == 0 {
		return 0, fmt.Errorf("%s has no copies of a cluster; name the data folder of a node with --data", dir)
	}
	return shards, nil
}
