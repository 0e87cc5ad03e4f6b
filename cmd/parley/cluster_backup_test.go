//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	v1 "github.com/parley-hub/parley/client/v1"
)

// TestAClusterFromACopiedFolder: the folder of a node that was stopped, copied, is a
// backup of every shard. A cluster on other servers begins with it, in a new epoch,
// and goes on.
func TestAClusterFromACopiedFolder(t *testing.T) {
	t.Parallel()
	n := startCluster(t, "a")
	n.serves("")
	hub, err := v1.New(n.urls(), v1.Options{})
	if err != nil {
		t.Fatal(err)
	}
	token, _, err := hub.AddKey(n.ctx, "operator", "")
	if err != nil {
		t.Fatal(err)
	}
	n.end("a", syscall.SIGTERM)
	if err := os.CopyFS(filepath.Join(n.dir, "kept"), os.DirFS(filepath.Join(n.dir, "a"))); err != nil {
		t.Fatal(err)
	}
	n.start("a") // what happens afterwards is not in the backup
	n.serves("")
	if hub, err = v1.New(n.urls(), v1.Options{Token: token}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := hub.AddKey(n.ctx, "operator", ""); err != nil {
		t.Fatal(err)
	}
	n.end("a", syscall.SIGKILL)

	n.servers = startServers(t)
	n.run("cluster", "reseed", "--yes", "--data", filepath.Join(n.dir, "kept"))
	n.start("kept")
	n.start("new") // takes its copies from the other
	n.goesOn(token)
}

// TestABackupOfACluster: a cluster of three shards is backed up while it serves; a
// cluster on other servers begins with the backup, in a new epoch, and goes on.
func TestABackupOfACluster(t *testing.T) {
	t.Parallel()
	n := startShards(t, 3, "a", "b")
	first := n.serves("")
	hub, err := v1.New(n.urls(), v1.Options{})
	if err != nil {
		t.Fatal(err)
	}
	token, _, err := hub.AddKey(n.ctx, "operator", "")
	if err != nil {
		t.Fatal(err)
	}
	environ := []string{"PARLEY_TOKEN=" + token}
	kept, data := filepath.Join(n.dir, "kept"), filepath.Join(n.dir, "new")
	code, out, errs := call(t, environ, "backup", kept, "--hub", n.list[first].url)
	if code != exitFine || !strings.Contains(out, "parley cluster init") {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	if hub, err = v1.New(n.urls(), v1.Options{Token: token}); err != nil { // it is not in the backup
		t.Fatal(err)
	}
	if _, _, err := hub.AddKey(n.ctx, "operator", ""); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		n.end(name, syscall.SIGKILL)
	}
	if code, _, errs := call(t, nil, "restore", kept, "--data", filepath.Join(n.dir, "alone")); code == exitFine || !strings.Contains(errs, "cluster init") {
		t.Errorf("restoring it as a hub alone: exit %d: %s", code, errs)
	}

	again := append([]string{"cluster", "init", "--from", kept, "--data", data}, n.flags()...)
	if code, _, errs := call(t, nil, again...); code == exitFine || !strings.Contains(errs, `there is a cluster "parley"`) || !strings.Contains(errs, "cluster.name") {
		t.Errorf("beginning a cluster that exists: exit %d: %s", code, errs)
	}
	n.servers = startServers(t)
	if out := n.run("cluster", "init", "--from", kept, "--data", data); !strings.Contains(out, "3 shards") || strings.Contains(out, "epoch 1\n") {
		t.Errorf("init says %s", out)
	}
	n.start("new")
	n.start("other") // takes its copies from the other
	n.goesOn(token)
}

// goesOn checks that a cluster has one key, and takes another.
func (n *nodes) goesOn(token string) {
	n.t.Helper()
	n.serves("")
	hub, err := v1.New(n.urls(), v1.Options{Token: token})
	if err != nil {
		n.t.Fatal(err)
	}
	if keys, err := hub.Keys(n.ctx); err != nil || len(keys) != 1 {
		n.t.Errorf("there are the keys %v, %v", keys, err)
	}
	if _, _, err := hub.AddKey(n.ctx, "operator", ""); err != nil {
		n.t.Errorf("it does not go on: %v", err)
	}
}
