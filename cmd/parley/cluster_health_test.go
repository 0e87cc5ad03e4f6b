//go:build unix

package main

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	v1 "github.com/parley-hub/parley/client/v1"
)

// TestHealthOfACluster: the node that serves tells who is in the cluster and how far
// each copy is; one that stands by says where to ask; that no quorum of the NATS
// servers answers is told by name, and passes by itself.
func TestHealthOfACluster(t *testing.T) {
	t.Parallel()
	n := startCluster(t, "a", "b")
	serves := n.serves("")
	other := map[string]string{"a": "b", "b": "a"}[serves]
	hub, err := v1.New(n.list[serves].url, v1.Options{})
	if err != nil {
		t.Fatal(err)
	}
	roles := map[string]string{}
	for roles[serves] != "serving" || roles[other] != "standby" {
		h, err := hub.Health(n.ctx)
		if err != nil {
			t.Fatal(err)
		}
		c := h.Cluster
		if c == nil || c.Node != serves || c.Shards != 2 || c.Waiting != "" {
			t.Fatalf("the cluster is %+v", c)
		}
		for _, node := range c.Nodes {
			roles[node.Name] = node.Role
			if node.Address == "" || node.Version == "" || node.Lag > 1000 {
				t.Errorf("a node is %+v", node)
			}
		}
		n.pause()
	}
	for told := ""; told != n.list[serves].url; { // it has to hear of it first
		status, header, body := n.get(n.list[other].url + "/v1/health")
		if status != http.StatusServiceUnavailable || !strings.Contains(body, "not_serving") {
			t.Fatalf("node %s answers %d, %v: %s", other, status, header, body)
		}
		told = header.Get("Parley-Serving")
		n.pause()
	}

	n.servers.End(1)
	n.servers.End(2)
	for waiting := ""; !strings.Contains(waiting, "quorum"); n.pause() {
		asking, cancel := context.WithTimeout(n.ctx, 100*time.Millisecond)
		_, err := hub.Session(asking) // so that there is something to publish
		cancel()
		h, err2 := hub.Health(n.ctx)
		if err2 != nil {
			t.Fatalf("health is not told without quorum: %v, after %v", err2, err)
		}
		waiting = h.Cluster.Waiting
	}
	if status, _, body := n.ready(serves); status == http.StatusOK || !strings.Contains(body, "quorum") {
		t.Errorf("readyz without quorum: %d %s", status, body)
	}
	for i := 1; i <= 2; i++ {
		if err := n.servers.Again(i); err != nil {
			t.Fatal(err)
		}
	}
	for waiting := "?"; waiting != ""; n.pause() {
		if hub, err = v1.New(n.list[n.serves("")].url, v1.Options{}); err != nil {
			t.Fatal(err)
		}
		if h, err := hub.Health(n.ctx); err == nil {
			waiting = h.Cluster.Waiting
		}
	}
}

// pause passes a moment of waiting for others.
func (n *nodes) pause() {
	n.t.Helper()
	select {
	case <-time.After(20 * time.Millisecond):
	case <-n.ctx.Done():
		n.t.Fatal("out of time")
	}
}
