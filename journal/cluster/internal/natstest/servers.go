// Package natstest runs real NATS servers with JetStream in the process of a
// test.
package natstest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Servers are one cluster of NATS servers.
type Servers struct {
	list []*server.Server
	opts []*server.Options
}

// Start starts n servers that sync every write, in folders under dir, and waits
// until they can make streams.
func Start(n int, dir string) (*Servers, error) {
	s := &Servers{}
	ports, err := freePorts(n)
	if err != nil {
		return nil, err
	}
	var routes []*url.URL
	for _, port := range ports {
		routes = append(routes, &url.URL{Scheme: "nats-route", Host: fmt.Sprintf("127.0.0.1:%d", port)})
	}
	for i := range n {
		opts := &server.Options{
			ServerName: fmt.Sprintf("n%d", i), Host: "127.0.0.1", Port: server.RANDOM_PORT,
			NoLog: true, NoSigs: true, JetStream: true, StoreDir: fmt.Sprintf("%s/n%d", dir, i), SyncAlways: true,
			Cluster: server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: ports[i], PoolSize: -1},
			Routes:  routes,
		}
		srv, err := server.NewServer(opts)
		if err != nil {
			s.Stop()
			return nil, err
		}
		s.list, s.opts = append(s.list, srv), append(s.opts, opts)
		srv.Start()
		if !srv.ReadyForConnections(time.Minute) {
			s.Stop()
			return nil, fmt.Errorf("server %d does not start", i)
		}
		opts.Port = srv.Addr().(*net.TCPAddr).Port // where clients look for it, should it start again
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		for _, srv := range s.list {
			if srv.JetStreamIsLeader() && len(srv.JetStreamClusterPeers()) == n {
				return s, nil
			}
		}
		if time.Now().After(end) {
			s.Stop()
			return nil, fmt.Errorf("the servers found no leader")
		}
	}
}

const (
	childRole   = "PARLEY_NATS_SERVERS"
	childFolder = "PARLEY_NATS_FOLDER"
)

// Spawn starts n servers in a process of their own: the test binary, whose
// TestMain calls ServeIfChild first. A test for goroutines that are left behind
// then does not see theirs. They end with stop, or with this process.
func Spawn(n int) (url string, stop func(), err error) {
	dir, err := os.MkdirTemp("/dev/shm", "parley-nats") // syncs are made, and cost little
	if err != nil {
		dir, err = os.MkdirTemp("", "parley-nats")
	}
	if err != nil {
		return "", nil, err
	}
	child := exec.CommandContext(context.Background(), os.Args[0]) //nolint:gosec // itself
	child.Env = append(os.Environ(), fmt.Sprintf("%s=%d", childRole, n), childFolder+"="+dir)
	child.Stderr = os.Stderr
	in, err := child.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	out, err := child.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := child.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		_ = in.Close()
		_ = child.Wait()
		_ = os.RemoveAll(dir)
	}
	url, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		stop()
		return "", nil, fmt.Errorf("the servers did not start: %w", err)
	}
	return strings.TrimSpace(url), stop, nil
}

// ServeIfChild runs servers and ends the process if Spawn started it.
func ServeIfChild() {
	n, err := strconv.Atoi(os.Getenv(childRole))
	if err != nil {
		return
	}
	s, err := Start(n, os.Getenv(childFolder))
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_, _ = fmt.Fprintln(os.Stdout, s.URL())
	_, _ = io.Copy(io.Discard, os.Stdin) // until the parent closes it, or ends
	s.Stop()
	os.Exit(0)
}

// freePorts are ports that nobody listens on. Servers must know each other's
// before they start.
func freePorts(n int) (ports []int, err error) {
	for range n {
		l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() //nolint:errcheck // it was only to have a port
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// Run starts servers for a test.
func Run(t testing.TB, n int) *Servers {
	t.Helper()
	s, err := Start(n, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// URL of all servers.
func (s *Servers) URL() string {
	var urls []string
	for _, srv := range s.list {
		urls = append(urls, srv.ClientURL())
	}
	return strings.Join(urls, ",")
}

// End ends one server.
func (s *Servers) End(i int) {
	s.list[i].Shutdown()
	s.list[i].WaitForShutdown()
}

// Again starts a server that was ended, with what it had stored.
func (s *Servers) Again(i int) error {
	srv, err := server.NewServer(s.opts[i])
	if err != nil {
		return err
	}
	s.list[i] = srv
	srv.Start()
	if !srv.ReadyForConnections(time.Minute) {
		return fmt.Errorf("server %d does not start again", i)
	}
	return nil
}

// Stop ends all of them.
func (s *Servers) Stop() {
	for _, srv := range s.list {
		srv.Shutdown()
		srv.WaitForShutdown()
	}
}
