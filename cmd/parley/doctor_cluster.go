package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/parley-hub/parley/internal/doctor"
	"github.com/parley-hub/parley/server/config"
)

// clusterFindings returns what is wrong with the cluster that a node is to join: its
// NATS servers, and the nodes that could serve.
func clusterFindings(ctx context.Context, cfg config.Cluster) []doctor.Finding {
	servers := doctor.Finding{Check: "cluster servers", Verdict: doctor.Failed, Remedy: "docs/cluster.md has a configuration for NATS servers"}
	log, err := connectCluster(cfg)
	if err != nil {
		servers.Found = err.Error()
		return []doctor.Finding{servers}
	}
	defer log.Close()
	warnings, err := checkCluster(ctx, cfg, log)
	switch {
	case err != nil:
		servers.Found = err.Error()
		return []doctor.Finding{servers}
	case len(warnings) > 0:
		servers.Verdict, servers.Found = doctor.Warning, strings.Join(warnings, "; ")
	default:
		servers = doctor.Finding{Check: "cluster servers", Verdict: doctor.Fine, Found: "they answer, and sync what they acknowledge"}
	}
	nodes := doctor.Finding{Check: "cluster nodes", Verdict: doctor.Failed}
	if report, err := surveyCluster(ctx, cfg); err != nil {
		nodes.Found = err.Error()
	} else {
		nodes.Verdict, nodes.Found, nodes.Remedy = report.verdict()
	}
	return []doctor.Finding{servers, nodes}
}

// verdict says whether a node serves, and which could take over.
func (r *clusterReport) verdict() (v doctor.Verdict, found, remedy string) {
	serves, ready := "", 0
	for _, n := range r.Nodes {
		if n.Serves {
			serves = n.Node
		}
		if n.Ready {
			ready++
		}
	}
	for _, s := range r.Shards {
		if s.Error != "" {
			return doctor.Failed, fmt.Sprintf("shard %d: %s", s.Shard, s.Error), "parley cluster status tells more"
		}
	}
	switch {
	case serves == "":
		return doctor.Failed, fmt.Sprintf("no node of cluster %s serves; %d could", r.Cluster, ready), "start nodes, and look at their /readyz"
	case ready < 2:
		return doctor.Warning, fmt.Sprintf("node %s serves, and no other could take over", serves), "start more nodes, or look at their /readyz"
	}
	return doctor.Fine, fmt.Sprintf("node %s serves, %d could take over", serves, ready-1), ""
}
