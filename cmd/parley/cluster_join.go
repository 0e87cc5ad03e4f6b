package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/cluster"
	"github.com/parley-hub/parley/journal/cluster/jetstream"
	"github.com/parley-hub/parley/journal/cluster/port"
	"github.com/parley-hub/parley/journal/disk"
	"github.com/parley-hub/parley/server"
	"github.com/parley-hub/parley/server/config"
)

// natsServers returns the NATS servers of a cluster, each with its scheme.
func natsServers(cfg config.Cluster) string {
	list := make([]string, len(cfg.URL))
	scheme := "nats"
	for i, one := range cfg.URL {
		if s, _, found := strings.Cut(one, "://"); found {
			scheme, list[i] = s, one
		} else {
			list[i] = scheme + "://" + one
		}
	}
	return strings.Join(list, ",")
}

// connectCluster connects to the streams of a cluster.
func connectCluster(cfg config.Cluster) (*jetstream.Log, error) {
	proof, err := clusterProof(cfg)
	if err != nil {
		return nil, err
	}
	log, err := jetstream.Connect(jetstream.Options{URL: natsServers(cfg), Cluster: cfg.Name, NATS: proof})
	if err != nil {
		return nil, fmt.Errorf("cluster.url %s: %w%s", shownServers(cfg), natsError{err}, connectRemedy(err))
	}
	return log, nil
}

// clusterTimeout bounds each request to the servers of a cluster before a node runs.
const clusterTimeout = 30 * time.Second

// catchUpTimeout bounds how long a command waits for the copies of a stopped node to
// catch up.
const catchUpTimeout = 10 * time.Minute

// checkCluster refuses servers that could lose acknowledged data.
func checkCluster(ctx context.Context, cfg config.Cluster, log *jetstream.Log) (warnings []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, clusterTimeout)
	defer cancel()
	warnings, err = log.Check(ctx, jetstream.Requirements{Replicas: cfg.Replicas, Monitor: cfg.Monitor, AssumeSync: cfg.AssumeSync})
	if err != nil {
		err = natsError{err}
	}
	return warnings, err
}

// natsError is an error of the NATS servers, so that the hints for a hub do not apply.
type natsError struct{ error }

func (e natsError) Unwrap() error { return e.error }

// clusterState requests the state of the first shard until the servers have a leader.
func clusterState(ctx context.Context, cfg config.Cluster, log port.Log) (port.State, error) {
	ctx, cancel := context.WithTimeout(ctx, clusterTimeout)
	defer cancel()
	for {
		state, err := log.State(ctx, 0)
		switch {
		case err == nil:
			return state, nil
		case errors.Is(err, port.ErrUnfit):
			return state, err
		case errors.Is(err, port.ErrNoLog):
			return state, fmt.Errorf("there is no cluster named %q on %s (cluster.name): make it once with parley cluster init --cluster %s", cfg.Name, shownServers(cfg), shownServers(cfg))
		case ctx.Err() != nil:
			return state, fmt.Errorf("the NATS servers at %s cannot be asked about the cluster %q: %w", shownServers(cfg), cfg.Name, err)
		}
		select {
		case <-time.After(250 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// shownServers names the servers without credentials.
func shownServers(cfg config.Cluster) string {
	list := strings.Split(natsServers(cfg), ",")
	for i, one := range list {
		scheme, rest, _ := strings.Cut(one, "://")
		list[i] = scheme + "://" + rest[strings.LastIndex(rest, "@")+1:]
	}
	return strings.Join(list, ",")
}

// joinCluster opens the copies of a node and begins to follow. The function that it
// returns stops serving copies to other nodes.
func joinCluster(ctx context.Context, cfg config.Config, bound net.Addr, log *slog.Logger) (_ *cluster.Engine, stop func(), warnings []string, err error) {
	servers, err := connectCluster(cfg.Cluster)
	if err != nil {
		return nil, nil, nil, err
	}
	defer func() {
		if err != nil {
			servers.Close()
		}
	}()
	if warnings, err = checkCluster(ctx, cfg.Cluster, servers); err != nil {
		return nil, nil, nil, err
	}
	state, err := clusterState(ctx, cfg.Cluster, servers)
	if err != nil {
		return nil, nil, nil, err
	}
	_, elsewhere, err := server.Reached(cfg, bound)
	if err != nil {
		return nil, nil, nil, err
	}
	opts := cluster.Options{
		Dir: cfg.Data.Dir, Node: nodeName(cfg), Address: strings.TrimSuffix(cmp.Or(cfg.Cluster.Address, elsewhere), "/"), Version: thisBuild().Version,
		Log: servers, Shards: state.Shards, Disk: diskOptions(cfg.Data, log), Logger: log,
		GroupBytes: int64(cfg.Cluster.GroupBytes), Suspect: cfg.Cluster.Suspect,
		Fetch: func(ctx context.Context, from cluster.Node, shard int) (io.ReadCloser, error) {
			return servers.FetchCopy(ctx, from.Name, shard)
		},
	}
	engine, err := cluster.Open(opts)
	if errors.Is(err, journal.ErrInvalid) {
		err = fmt.Errorf("cluster.node: %w", err)
	}
	if err != nil {
		return nil, nil, nil, err
	}
	if stop, err = servers.GiveCopies(opts.Node, engine.WriteCopy); err != nil {
		return nil, nil, nil, errors.Join(err, engine.Close())
	}
	return engine, stop, warnings, nil
}

// nodeName is the name of this node.
func nodeName(cfg config.Config) string { return cmp.Or(cfg.Cluster.Node, hostName()) }

// diskOptions returns the options of a store in a data folder.
func diskOptions(cfg config.Data, log *slog.Logger) disk.Options {
	minFree := int64(cfg.MinFree)
	if minFree == 0 {
		minFree = -1 // 0 means the engine's default
	}
	return disk.Options{Logger: log, MinFree: minFree, SnapshotBytes: int64(cfg.Snapshots), RecentBytes: int64(cfg.RecentCommits)}
}
