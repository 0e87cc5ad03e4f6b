package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/parley-hub/parley/journal/cluster"
	"github.com/parley-hub/parley/server"
	"github.com/parley-hub/parley/server/config"
	"github.com/parley-hub/parley/server/folder"
	"github.com/parley-hub/parley/server/standby"
)

// node is one process of a cluster: a standby, which serves while it leads.
type node struct {
	cfg      config.Config
	log      *slog.Logger
	engine   *cluster.Engine
	door     *standby.Door
	warnings []string
	end      *ending
	metrics  *clusterMetrics
	stood    sync.WaitGroup // connections from times as a standby
}

// runNode joins a cluster and is one of its nodes until ctx ends or its store fails.
func (a *app) runNode(ctx context.Context, cfg config.Config, log *slog.Logger) (err error) {
	if err := server.CanListen(cfg, 1); err != nil { // the keys are known only once it leads
		return err
	}
	if err := checkNode(cfg.Data.Dir); err != nil {
		return err
	}
	held, err := folder.Hold(cfg.Data.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, held.Release()) }()
	bound, err := server.Bind(ctx, cfg)
	if err != nil {
		return err
	}
	door := standby.NewDoor(bound)
	defer door.Close() //nolint:errcheck // nothing listens any more
	engine, stopGiving, warnings, err := joinCluster(ctx, cfg, door.Addr(), log)
	if err != nil {
		return err
	}
	defer stopGiving()
	n := &node{
		cfg: cfg, log: log, engine: engine, door: door, warnings: warnings,
		end: &ending{engine: engine, timeout: cfg.Shutdown.Timeout}, metrics: &clusterMetrics{engine: engine},
	}
	defer n.end.watch(ctx)()
	defer func() { err = errors.Join(err, n.end.closing("the journal", engine.Close)) }()
	running, stop := context.WithCancel(ctx)
	defer n.stood.Wait()
	defer stop()
	here, _, err := server.Reached(cfg, door.Addr())
	if err != nil {
		return err
	}
	if err := errors.Join(held.Announce(here), a.nodeScreen(n, here)); err != nil {
		return err
	}
	for _, warning := range warnings {
		log.Warn("the cluster's servers", "warning", warning)
	}
	log.Info("joined the cluster", "cluster", cfg.Cluster.Name, "node", nodeName(cfg), "address", door.Addr().String(), "data", cfg.Data.Dir)
	for ctx.Err() == nil {
		if err := n.turn(running); err != nil && ctx.Err() == nil {
			return err
		}
	}
	log.Info("stopped")
	return nil
}

// turn is a standby until this node leads, and then serves until it no longer does.
func (n *node) turn(ctx context.Context) error {
	stands, err := n.standBy(ctx)
	if err != nil {
		return err
	}
	defer stands.Leave() //nolint:errcheck // lead returns the reason
	lost, err := n.lead(ctx, stands)
	if err != nil {
		return err
	}
	began, to := time.Now(), ""
	deps, closeHub, err := compose(ctx, n.cfg, n.engine, n.log)
	if err == nil {
		to, err = n.serve(ctx, n.with(deps, lost), lost, stands.Leave, began)
		err = errors.Join(err, n.end.closing("the hub", closeHub))
	}
	if ctx.Err() != nil {
		return err
	}
	select {
	case <-lost:
		if err != nil {
			n.log.Warn("what was served ended", "error", err)
		}
		err = nil // another node serves, or will
	default:
	}
	n.engine.Hold(ctx, true)
	if to != "" {
		n.engine.HandOver(to)
	}
	n.engine.Hold(ctx, false)
	return err
}

// lead waits until this node leads.
func (n *node) lead(ctx context.Context, stands *standby.Standing) (lost <-chan struct{}, err error) {
	waiting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		for {
			select {
			case <-stands.Ended():
				cancel(fmt.Errorf("the node cannot answer while it stands by: %w", stands.Leave()))
			case <-n.engine.Failed():
				cancel(n.failed())
			case <-n.engine.Asked(): // the leader receives it too
				continue
			case <-waiting.Done():
			}
			return
		}
	}()
	return n.engine.Led(waiting)
}

func (n *node) failed() error {
	return fmt.Errorf("the node's own store failed: %w", n.engine.Health().Err)
}

// with adds what a cluster needs to the server.
func (n *node) with(deps server.Deps, lost <-chan struct{}) server.Deps {
	deps.Listener = n.door.Listener()
	deps.May = n.confirmed(lost)
	note := fmt.Sprintf("node %s of cluster %s serves", nodeName(n.cfg), n.cfg.Cluster.Name)
	for _, warning := range n.warnings {
		note += "; " + warning
	}
	deps.Ready = append(deps.Ready, server.Check{Name: "cluster", Note: note, Run: func(context.Context) error { return n.engine.Twin() }})
	deps.Metrics.MustRegister(n.metrics)
	return deps
}

// serve serves until the lead is lost or given up, or ctx ends. It returns the node to
// hand over to, if one was named.
func (n *node) serve(ctx context.Context, deps server.Deps, lost <-chan struct{}, instead func() error, began time.Time) (to string, err error) {
	s, err := server.New(ctx, n.cfg, deps)
	if err != nil {
		return "", err
	}
	if err := instead(); err != nil { // the standby has ended
		return "", errors.Join(err, s.Close())
	}
	n.metrics.takeovers.Add(1)
	n.log.Info("this node serves", "node", nodeName(n.cfg), "opening", time.Since(began))
	serving, end := context.WithCancelCause(ctx)
	defer end(nil)
	watched := make(chan string, 1)
	go func() { watched <- n.watch(serving, s, lost, end) }()
	err = s.Run(serving)
	end(nil)
	to = <-watched
	if errors.Is(context.Cause(serving), errStoreFailed) {
		err = errors.Join(err, n.failed())
	}
	return to, err
}

var (
	errLost        = errors.New("another node leads")
	errMoved       = errors.New("another node is to lead")
	errStoreFailed = errors.New("the node's own store failed")
)

// watch waits for the reason to stop serving, and returns the node to hand over to.
func (n *node) watch(ctx context.Context, s *server.Server, lost <-chan struct{}, end context.CancelCauseFunc) (to string) {
	for {
		select {
		case <-lost:
			n.engine.Hold(ctx, true)
			s.Hurry(failedTimeout)
			end(errLost)
			return ""
		case <-n.engine.Failed():
			s.Hurry(failedTimeout)
			end(errStoreFailed)
			return ""
		case to := <-n.engine.Asked():
			ready := slices.ContainsFunc(n.engine.Nodes(), func(m cluster.Node) bool { return m.Name == to && m.Ready })
			if to == nodeName(n.cfg) || !ready {
				n.log.Warn("asked to hand over to a node that leads already, or is not ready", "node", to)
				continue
			}
			n.log.Info("handing over", "node", to)
			end(errMoved)
			return to
		case <-ctx.Done():
			return ""
		}
	}
}

// standBy answers requests as a standby until Leave is called.
func (n *node) standBy(ctx context.Context) (*standby.Standing, error) {
	secure, err := server.TLS(n.cfg, n.log)
	if err != nil {
		return nil, err
	}
	registry := registryOf(n.metrics, journalMetrics{n.engine})
	who := standby.Node{
		Name: nodeName(n.cfg), Version: thisBuild().Version, Serving: n.serving,
		Checks: []standby.Check{
			{Name: "copies", Run: n.engine.Following},
			{Name: "cluster", Run: n.engine.Twin},
		},
		Metrics: promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}),
	}
	stands := who.Stand(n.door.Listener(), secure, standby.Limits{
		Connections: n.cfg.HTTP.MaxConnections, Header: int(n.cfg.HTTP.MaxHeader),
		HeaderTimeout: n.cfg.HTTP.HeaderTimeout, IdleTimeout: n.cfg.HTTP.IdleTimeout, BodyTimeout: n.cfg.HTTP.BodyTimeout,
	}, n.log)
	n.stood.Go(func() {
		<-stands.Ended()
		if err := stands.Wait(ctx); err != nil {
			n.log.Warn("connections of a node that stood by did not end well", "error", err)
		}
	})
	return stands, nil
}

// serving returns the serving node, as far as this node knows.
func (n *node) serving() standby.Serving {
	leader, ok := n.engine.Leader()
	if !ok || leader.Leads < n.engine.Shards() {
		return standby.Serving{}
	}
	if leader.Name == nodeName(n.cfg) { // and does not serve yet
		return standby.Serving{}
	}
	return standby.Serving{Node: leader.Name, Address: leader.Address}
}
