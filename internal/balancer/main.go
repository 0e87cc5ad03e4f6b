// Command balancer stands in front of a cluster in the tests of AG2's clients:
// three NATS servers for the nodes, and one TCP address that leads to the node
// that reports to be ready. It does not read what it forwards.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/parley-hub/parley/journal/cluster/natsservers"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "balancer:", err)
		os.Exit(1)
	}
}

func run() error {
	dir := flag.String("dir", "", "folder of the NATS servers")
	listen := flag.String("listen", "127.0.0.1:0", "address of the cluster")
	nodes := flag.String("nodes", "", "addresses of the nodes, separated by commas")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	servers, err := natsservers.Start(ctx, 3, *dir)
	if err != nil {
		return err
	}
	defer servers.Stop()
	bound, err := new(net.ListenConfig).Listen(ctx, "tcp", *listen)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = bound.Close() })()
	told := map[string]string{"nats": servers.URL(), "monitor": strings.Join(servers.Monitors(), ",")}
	if err := json.NewEncoder(os.Stdout).Encode(told); err != nil {
		return err
	}
	b := balancer{nodes: strings.Split(*nodes, ",")}
	for {
		conn, err := bound.Accept()
		if err != nil {
			return nil //nolint:nilerr // it was told to end
		}
		go b.pass(ctx, conn)
	}
}

type balancer struct{ nodes []string }

// Bounds of looking for a node: for one client, between two looks, and for one look.
const (
	findTimeout = 30 * time.Second
	findPause   = 50 * time.Millisecond
	askTimeout  = 5 * time.Second
)

// asker uses a new connection for each request: a connection from the time when
// a node stood by would be answered by the server that stood by.
var asker = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: askTimeout}

// pass connects a client with the node that is ready. While none is, the client
// waits, as in the queue of a balancer.
func (b balancer) pass(ctx context.Context, client net.Conn) {
	defer client.Close()
	server, err := b.find(ctx)
	if err != nil {
		fmt.Fprintf(os.Stderr, "balancer: %s is sent away: %v\n", client.RemoteAddr(), err)
		return
	}
	defer server.Close()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			_, _ = client.Close(), server.Close() // one end ends both
		})
	}
	both.Wait()
}

// find connects to the node that is ready, as soon as one is.
func (b balancer) find(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	for {
		if node, ok := b.ready(ctx); ok {
			if server, err := new(net.Dialer).DialContext(ctx, "tcp", node); err == nil {
				return server, nil
			}
		}
		select {
		case <-time.After(findPause):
		case <-ctx.Done():
			return nil, errors.New("no node became ready in time")
		}
	}
}

// ready asks all nodes at once, and returns the first that is.
func (b balancer) ready(ctx context.Context) (string, bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	found := make(chan string, len(b.nodes))
	var asking sync.WaitGroup
	for _, node := range b.nodes {
		asking.Go(func() {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+node+"/readyz", nil)
			if err != nil {
				return
			}
			answer, err := asker.Do(request)
			if err != nil {
				return
			}
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				found <- node
			}
		})
	}
	go func() { asking.Wait(); close(found) }()
	node, ok := <-found
	return node, ok
}
