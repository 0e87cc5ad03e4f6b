package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/parley-hub/parley/journal/cluster"
	"github.com/parley-hub/parley/journal/disk"
	"github.com/parley-hub/parley/journal/disk/repair"
	"github.com/parley-hub/parley/server/config"
)

func (a *app) clusterInit() *cobra.Command {
	c := &cobra.Command{
		Use:   "init --cluster URL",
		Short: "Make a cluster on NATS servers, once",
		Long: `Make a cluster on NATS servers, once: the streams that its nodes share. It refuses
servers that could lose what they acknowledged, and says which setting is wrong.

With --operator-key the first access key is made and printed: nodes that listen
beyond loopback need one. With --from, the cluster begins with a backup, of a cluster
or of a hub that was alone, whose copies are made in --data; start the first node
there.`,
		Example: `  parley cluster init --cluster nats://a:4222,b:4222,c:4222 --operator-key
  parley cluster init --cluster nats://a:4222 --from ./backup-monday --data ./n1`,
		Args: cobra.NoArgs,
	}
	flags := addCluster(c, true)
	shards := c.Flags().Int("shards", 0, "streams to make (default cluster.shards)")
	replicas := c.Flags().Int("replicas", 0, "copies of each stream (default cluster.replicas)")
	key := c.Flags().Bool("operator-key", false, "make the first access key, of an operator, and print its token")
	from := c.Flags().String("from", "", "`FOLDER` with a backup that the cluster begins with")
	c.MarkFlagsMutuallyExclusive("operator-key", "from")
	c.RunE = func(c *cobra.Command, _ []string) error {
		settings, err := a.clusterSettings(flags)
		if err != nil {
			return err
		}
		cfg := settings.Config
		cfg.Cluster.Shards, cfg.Cluster.Replicas = cmp.Or(*shards, cfg.Cluster.Shards), cmp.Or(*replicas, cfg.Cluster.Replicas)
		made, err := a.makeCluster(c.Context(), cfg, *from, *key)
		if err != nil {
			return err
		}
		return a.print(made, func(w io.Writer) error {
			for _, warning := range made.Warnings {
				fmt.Fprintln(w, "warning:", warning)
			}
			fmt.Fprintf(w, "cluster %s: %d shards with %d replicas, epoch %d\n", made.Cluster, made.Shards, made.Replicas, made.Epoch)
			if made.Token != "" {
				fmt.Fprintf(w, "operator key, shown once: %s\n", made.Token)
			}
			where := ""
			if *from != "" {
				where = " --data " + shellWord(cfg.Data.Dir)
			}
			_, err := fmt.Fprintf(w, "start each node with parley serve --cluster %s --node-name NAME%s\n", shownServers(cfg.Cluster), where)
			return err
		})
	}
	return c
}

// madeCluster is the result of init.
type madeCluster struct {
	Cluster  string   `json:"cluster"`
	Shards   int      `json:"shards"`
	Replicas int      `json:"replicas"`
	Epoch    uint64   `json:"epoch"`
	Token    string   `json:"token,omitempty"` // of the first operator key
	Warnings []string `json:"warnings,omitempty"`
}

// makeCluster makes the streams and their first contents.
func (a *app) makeCluster(ctx context.Context, cfg config.Config, from string, key bool) (_ *madeCluster, err error) {
	log, err := connectCluster(cfg.Cluster)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	made := &madeCluster{Cluster: cfg.Cluster.Name, Shards: cfg.Cluster.Shards, Replicas: cfg.Cluster.Replicas, Epoch: 1}
	if made.Warnings, err = checkCluster(ctx, cfg.Cluster, log); err != nil {
		return nil, err
	}
	if from != "" {
		if _, err := log.State(ctx, 0); err == nil {
			return nil, fmt.Errorf("there is a cluster %q on %s already; name another one with --set cluster.name=NAME", cfg.Cluster.Name, shownServers(cfg.Cluster))
		}
		if made.Shards, made.Epoch, err = a.copyOfBackup(cfg, from); err != nil {
			return nil, err
		}
	}
	dir := ""
	if key {
		if dir, err = temporary(cfg.Data.Dir); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	ctx, cancel := context.WithTimeout(ctx, clusterTimeout)
	defer cancel()
	if err := log.Create(ctx, made.Shards, made.Replicas, made.Epoch); err != nil {
		if from != "" { // so that the command can be given again
			err = errors.Join(err, os.RemoveAll(filepath.Dir(cluster.Folder(disk.Options{}, cfg.Data.Dir, 0))))
		}
		return nil, err
	}
	if key {
		made.Token, err = a.leadForKey(ctx, cfg, "parley-cluster-init", dir)
	}
	return made, err
}

// copyOfBackup makes the copies of a node from a backup of a cluster, or of a single
// hub, which becomes one shard.
func (a *app) copyOfBackup(cfg config.Config, from string) (shards int, epoch uint64, err error) {
	to := func(n int) string { return cluster.Folder(disk.Options{}, cfg.Data.Dir, n) }
	if _, err := os.Lstat(to(0)); err == nil {
		return 0, 0, fmt.Errorf("%s has copies of a cluster already; name another folder with --data", cfg.Data.Dir)
	}
	if shards, err = cluster.BackupShards(disk.Options{}, from); err != nil {
		return 0, 0, err
	}
	folders := []string{from}
	if shards > 0 {
		folders = nil
		for n := range shards {
			folders = append(folders, cluster.Folder(disk.Options{}, from, n))
		}
	}
	if err := os.MkdirAll(cfg.Data.Dir, 0o700); err != nil {
		return 0, 0, err
	}
	tell, end := a.progress()
	defer end()
	for n, folder := range folders {
		if err := repair.Restore(folder, to(n), disk.Options{}, tell); err != nil {
			return 0, 0, err
		}
	}
	epoch, err = cluster.NewEpoch(disk.Options{}, cfg.Data.Dir, len(folders), 0)
	return len(folders), epoch, err
}

// temporary makes a folder for the copies of a moment: in the system's folder for such
// files, or, where there is none, as in our container image, in the data folder.
func temporary(data string) (dir string, err error) {
	if dir, err = os.MkdirTemp("", "parley-init-"); err == nil {
		return dir, nil
	}
	if os.MkdirAll(data, 0o700) == nil {
		if dir, other := os.MkdirTemp(data, "parley-init-"); other == nil {
			return dir, nil
		}
	}
	return "", fmt.Errorf("a temporary folder is needed for the first key: %w; name a folder that can be written to with TMPDIR or --data", err)
}
