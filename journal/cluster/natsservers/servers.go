// Package natsservers runs NATS servers with JetStream in this process, for trying a
// cluster on one machine and for tests. Such a cluster does not survive the loss of
// its machine.
package natsservers

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/parley-hub/parley/internal/freeport"
)

// Servers are one cluster of NATS servers.
type Servers struct {
	list []*server.Server
	opts []*server.Options
}

// startTimeout bounds how long the servers take to find each other.
const startTimeout = time.Minute

// Start starts n servers that sync every write, in folders under dir, reachable from
// this machine only, and waits until streams can be made.
func Start(ctx context.Context, n int, dir string) (*Servers, error) {
	return StartWith(ctx, n, dir, func(*server.Options) {})
}

// StartWith is Start with options changed by change.
func StartWith(ctx context.Context, n int, dir string, change func(*server.Options)) (_ *Servers, err error) {
	s := &Servers{}
	defer func() {
		if err != nil {
			s.Stop()
		}
	}()
	ports, free, err := freeport.Take(ctx, 2*n)
	if err != nil {
		return nil, err
	}
	free()
	var routes []*url.URL
	for _, port := range ports[:n] {
		routes = append(routes, &url.URL{Scheme: "nats-route", Host: fmt.Sprintf("127.0.0.1:%d", port)})
	}
	for i, port := range ports[:n] {
		opts := &server.Options{
			ServerName: fmt.Sprintf("nats-%d", i+1), Host: "127.0.0.1", Port: ports[n+i], HTTPHost: "127.0.0.1", HTTPPort: server.RANDOM_PORT,
			NoLog: true, NoSigs: true, JetStream: true, StoreDir: filepath.Join(dir, fmt.Sprintf("nats-%d", i+1)), SyncAlways: true,
			Cluster: server.ClusterOpts{Name: "parley-dev", Host: "127.0.0.1", Port: port, PoolSize: -1},
			Routes:  routes,
		}
		change(opts)
		one, err := server.NewServer(opts)
		if err != nil {
			return nil, err
		}
		s.list, s.opts = append(s.list, one), append(s.opts, opts)
		one.Start()
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for !s.ready() {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return nil, errors.New("the NATS servers did not find a leader among them in time")
		}
	}
	return s, nil
}

// ready reports whether one server leads and knows all others.
func (s *Servers) ready() bool {
	leads := false
	for _, one := range s.list {
		if !one.ReadyForConnections(time.Millisecond) {
			return false
		}
		leads = leads || one.JetStreamIsLeader() && len(one.JetStreamClusterPeers()) == len(s.list)
	}
	return leads
}

// URLs returns the addresses of the servers for clients.
func (s *Servers) URLs() []string {
	list := make([]string, len(s.list))
	for i, one := range s.list {
		list[i] = one.ClientURL()
	}
	return list
}

// URL returns URLs joined with commas.
func (s *Servers) URL() string { return strings.Join(s.URLs(), ",") }

// Monitors returns the addresses of the servers' monitoring pages.
func (s *Servers) Monitors() []string {
	list := make([]string, len(s.list))
	for i, one := range s.list {
		list[i] = "http://" + one.MonitorAddr().String()
	}
	return list
}

// Dir returns the storage folder of a server.
func (s *Servers) Dir(i int) string { return s.opts[i].StoreDir }

// Name returns the name of a server.
func (s *Servers) Name(i int) string { return s.opts[i].ServerName }

// Leads reports whether a server is the meta leader, which makes streams.
func (s *Servers) Leads(i int) bool { return s.list[i].JetStreamIsLeader() }

// Change changes the options of a server that is stopped.
func (s *Servers) Change(i int, change func(*server.Options)) { change(s.opts[i]) }

// Again restarts a stopped server, at its address and with its data.
func (s *Servers) Again(i int) error {
	one, err := server.NewServer(s.opts[i])
	if err != nil {
		return err
	}
	s.list[i] = one
	one.Start()
	if !one.ReadyForConnections(startTimeout) {
		return fmt.Errorf("NATS server %s does not start again", s.Name(i))
	}
	return nil
}

// End stops one server.
func (s *Servers) End(i int) {
	s.list[i].Shutdown()
	s.list[i].WaitForShutdown()
}

// Stop stops all servers.
func (s *Servers) Stop() {
	for i := range s.list {
		s.End(i)
	}
}
