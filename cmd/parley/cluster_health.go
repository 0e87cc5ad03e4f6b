package main

import (
	"cmp"
	"slices"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/cluster"
	"github.com/parley-hub/parley/server/api"
	"github.com/parley-hub/parley/server/config"
)

// clusterHealth returns a function for the state of an engine's cluster; nil: there
// is no cluster.
func clusterHealth(cfg config.Config, engine journal.Engine) func() *api.ClusterHealth {
	e, ok := engine.(*cluster.Engine)
	if !ok {
		return nil
	}
	return func() *api.ClusterHealth {
		health := &api.ClusterHealth{Name: cfg.Cluster.Name, Node: nodeName(cfg), Shards: e.Shards()}
		if h := e.Health(); h.State == journal.Waiting && h.Err != nil {
			health.Waiting = h.Err.Error()
		}
		nodes := e.Nodes()
		furthest := furthestOf(nodes, e.Shards())
		for _, n := range nodes {
			one := api.ClusterNode{Name: n.Name, Address: n.Address, Version: n.Version, Role: "joining", Lag: lagOf(n, furthest)}
			switch {
			case n.Leads == e.Shards():
				one.Role = "serving"
			case n.Ready:
				one.Role = "standby"
			}
			health.Nodes = append(health.Nodes, one)
		}
		slices.SortFunc(health.Nodes, func(a, b api.ClusterNode) int { return cmp.Compare(a.Name, b.Name) })
		return health
	}
}

// furthestOf returns the offsets of the most advanced copies.
func furthestOf(nodes []cluster.Node, shards int) []uint64 {
	furthest := make([]uint64, shards)
	for _, n := range nodes {
		for shard, offset := range n.Offsets[:min(len(n.Offsets), shards)] {
			furthest[shard] = max(furthest[shard], offset)
		}
	}
	return furthest
}

// lagOf returns how many batches a node is behind, in the shard where that is most.
func lagOf(n cluster.Node, furthest []uint64) (lag uint64) {
	for shard, offset := range n.Offsets[:min(len(n.Offsets), len(furthest))] {
		lag = max(lag, furthest[shard]-offset)
	}
	return lag
}
