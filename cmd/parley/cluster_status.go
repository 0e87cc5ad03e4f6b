package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-hub/parley/journal/cluster"
	"github.com/parley-hub/parley/journal/cluster/port"
	"github.com/parley-hub/parley/server/config"
)

// clusterReport is the output of status.
type clusterReport struct {
	Cluster string        `json:"cluster"`
	Epoch   uint64        `json:"epoch"`
	Nodes   []nodeReport  `json:"nodes"`
	Shards  []shardReport `json:"shards"`
}

type nodeReport struct {
	Node    string    `json:"node"`
	Serves  bool      `json:"serves"`
	Ready   bool      `json:"ready"` // whether it could serve
	Leads   int       `json:"leads"` // shards that it leads
	Lag     uint64    `json:"lag"`   // batches behind the most advanced copy, in the shard where that is most
	Since   time.Time `json:"since,omitzero"`
	Version string    `json:"version"`
	Address string    `json:"address"`
}

type shardReport struct {
	Shard  int    `json:"shard"`
	Leader string `json:"leader"` // of the last fence
	Term   uint64 `json:"term"`
	Last   uint64 `json:"last"`   // message of the stream
	Offset uint64 `json:"offset"` // of the most advanced copy
	Error  string `json:"error,omitempty"`
}

func (a *app) clusterStatus() *cobra.Command {
	c := &cobra.Command{
		Use:     "status --cluster URL",
		Short:   "Tell which node serves, which could, and where each shard is",
		Example: "  parley cluster status --cluster nats://a:4222,b:4222,c:4222",
		Args:    cobra.NoArgs,
	}
	flags := addCluster(c, false)
	c.RunE = func(c *cobra.Command, _ []string) error {
		settings, err := a.clusterSettings(flags)
		if err != nil {
			return err
		}
		report, err := surveyCluster(c.Context(), settings.Cluster)
		if err != nil {
			return err
		}
		return a.print(report, func(w io.Writer) error { return a.writeCluster(w, report) })
	}
	return c
}

// surveyCluster reads the state of the streams, and listens for nodes.
func surveyCluster(ctx context.Context, cfg config.Cluster) (*clusterReport, error) {
	log, err := connectCluster(cfg)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	state, err := clusterState(ctx, cfg, log)
	if err != nil {
		return nil, err
	}
	live, err := cluster.Survey(ctx, log, max(cfg.Suspect/2, time.Second/2))
	if err != nil {
		return nil, err
	}
	return reportOf(ctx, cfg, log, state, live), nil
}

func reportOf(ctx context.Context, cfg config.Cluster, log port.Log, state port.State, live []cluster.Node) *clusterReport {
	report := &clusterReport{Cluster: cfg.Name, Epoch: state.Epoch, Nodes: []nodeReport{}}
	furthest := furthestOf(live, state.Shards)
	for _, n := range live {
		report.Nodes = append(report.Nodes, nodeReport{
			Node: n.Name, Serves: n.Leads == state.Shards, Ready: n.Ready, Leads: n.Leads, Lag: lagOf(n, furthest),
			Since: n.Since, Version: n.Version, Address: n.Address,
		})
	}
	ctx, cancel := context.WithTimeout(ctx, clusterTimeout)
	defer cancel()
	for shard := range state.Shards {
		one := shardReport{Shard: shard, Offset: furthest[shard]}
		at, err := cluster.Inspect(ctx, log, shard)
		one.Leader, one.Term, one.Last = at.Leader, at.Term, at.Last
		switch {
		case errors.Is(err, port.ErrNoLog):
			one.Error = fmt.Sprintf("%v; parley cluster reseed makes the streams anew from the copies of a node", err)
		case err != nil:
			one.Error = err.Error()
		case at.NoQuorum:
			one.Error = "too few of its NATS servers reach each other, or have space on their disks; nothing is acknowledged until a majority does"
		}
		report.Shards = append(report.Shards, one)
	}
	return report
}

func (a *app) writeCluster(w io.Writer, r *clusterReport) error {
	serves := "no node serves"
	if i := slices.IndexFunc(r.Nodes, func(n nodeReport) bool { return n.Serves }); i >= 0 {
		serves = fmt.Sprintf("node %s serves at %s", r.Nodes[i].Node, r.Nodes[i].Address)
	}
	fmt.Fprintf(w, "cluster %s, epoch %d: %s\n\n", r.Cluster, r.Epoch, serves)
	nodes := [][]string{}
	for _, n := range r.Nodes {
		since := "-"
		if n.Serves && !n.Since.IsZero() {
			since = n.Since.UTC().Format(time.RFC3339)
		}
		nodes = append(nodes, []string{cell(n.Node), yesNo(n.Serves), yesNo(n.Ready), strconv.FormatUint(n.Lag, 10), since, cell(n.Address), cell(n.Version)})
	}
	err := a.writeColumns(w, []column{{"NODE", flexible}, {"SERVES", fixed}, {"READY", fixed}, {"LAG", fixed}, {"SINCE", fixed}, {"ADDRESS", flexible}, {"VERSION", flexible}}, nodes)
	if err != nil {
		return err
	}
	shards, trouble := [][]string{}, ""
	for _, s := range r.Shards {
		shards = append(shards, []string{
			strconv.Itoa(s.Shard), cell(cmp.Or(s.Leader, "-")), strconv.FormatUint(s.Term, 10), strconv.FormatUint(s.Last, 10), strconv.FormatUint(s.Offset, 10),
		})
		if s.Error != "" { // in full: it has the remedy
			trouble += fmt.Sprintf("\nshard %d: %s", s.Shard, s.Error)
		}
	}
	fmt.Fprintln(w)
	err = a.writeColumns(w, []column{{"SHARD", fixed}, {"LEADER", flexible}, {"TERM", fixed}, {"LAST", fixed}, {"OFFSET", fixed}}, shards)
	if err == nil && trouble != "" {
		_, err = fmt.Fprintln(w, trouble)
	}
	return err
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// moveTimeout bounds how long a node has to take over.
const moveTimeout = 30 * time.Second

func (a *app) clusterMove() *cobra.Command {
	c := &cobra.Command{
		Use:   "move NODE --cluster URL",
		Short: "Have another node serve, without a failure",
		Long: `Have another node serve: the one that does finishes its requests, tells its clients
to come back, and hands over.`,
		Example: "  parley cluster move n2 --cluster nats://a:4222,b:4222,c:4222",
		Args:    cobra.ExactArgs(1),
	}
	flags := addCluster(c, false)
	c.RunE = func(c *cobra.Command, args []string) error {
		settings, err := a.clusterSettings(flags)
		if err != nil {
			return err
		}
		return a.move(c.Context(), settings.Cluster, args[0])
	}
	return c
}

func (a *app) move(ctx context.Context, cfg config.Cluster, to string) error {
	log, err := connectCluster(cfg)
	if err != nil {
		return err
	}
	defer log.Close()
	state, err := clusterState(ctx, cfg, log)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, moveTimeout)
	defer cancel()
	serves, asked := false, false
	for !serves {
		live, err := cluster.Survey(ctx, log, max(cfg.Suspect/2, time.Second/2))
		if err != nil {
			return err
		}
		i := slices.IndexFunc(live, func(n cluster.Node) bool { return n.Name == to })
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("node %s does not serve after %v; parley cluster status shows the state of every node", to, moveTimeout)
		case i < 0 && !asked:
			return fmt.Errorf("no node named %s answers; parley cluster status lists those that do", to)
		case i >= 0 && live[i].Leads == state.Shards:
			serves = true
		case i >= 0 && !live[i].Ready && !asked:
			return fmt.Errorf("node %s is not ready: its copies are behind; try again later", to)
		case !asked:
			asked = true
			if err := cluster.AskMove(log, to); err != nil {
				return err
			}
		}
	}
	return a.print(map[string]any{"node": to, "moved": asked}, linef("node %s serves", to))
}
