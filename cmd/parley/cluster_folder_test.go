//go:build unix

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/server/folder"
)

// refuses: the folder of a node that is stopped is not taken for that of a hub alone,
// nor the other way round, and nothing is written to it.
func (n *nodes) refuses(dir string) {
	n.t.Helper()
	before := filesIn(n.t, dir)
	const named = "is the data folder of a cluster's node"
	for want, args := range map[string][]string{
		named + "; start it":                     {"keys", "add", "--role", "operator", "--data", dir},
		named + "; start it with parley serve":   {"serve", "--data", dir, "--listen", "127.0.0.1:0"},
		named + ", with a copy of each shard":    {"data", "stats", dir},
		named + ", with a copy of each shard; n": {"data", "salvage", dir, "--to", filepath.Join(n.dir, "salvaged")},
	} {
		if code, out, errs := call(n.t, nil, args...); code == exitFine || !strings.Contains(errs, want) {
			n.t.Errorf("%v: exit %d, %s%s", args, code, out, errs)
		}
	}
	if after := filesIn(n.t, dir); !slices.Equal(before, after) {
		n.t.Errorf("the folder had %v, and has %v", before, after)
	}
	alone := filepath.Join(n.dir, "alone")
	if code, _, errs := call(n.t, nil, "keys", "add", "--role", "operator", "--data", alone); code != exitFine {
		n.t.Fatal(errs)
	}
	args := append([]string{"serve", "--node-name", "x", "--data", alone, "--listen", "127.0.0.1:0"}, n.flags()...)
	if code, _, errs := call(n.t, nil, args...); code == exitFine || !strings.Contains(errs, "is the data folder of a hub that was alone") {
		n.t.Errorf("a node on the folder of a hub: exit %d, %s", code, errs)
	}
}

// makesAnotherKey: who has lost every operator's key makes another on the folder of a
// node, while none runs. The node that serves next knows it, and the keys of before.
// The node that is named serves, and is stopped.
func (n *nodes) makesAnotherKey(name, before string) {
	n.t.Helper()
	dir := filepath.Join(n.dir, name)
	args := append([]string{"cluster", "operator-key", "-o", "json", "--data", dir}, n.flags()...)
	if code, _, errs := call(n.t, nil, args...); code == exitFine || !strings.Contains(errs, dir) {
		n.t.Errorf("while the node runs on that folder: exit %d, %s", code, errs)
	}
	copied := filepath.Join(n.dir, "copied")
	if err := os.CopyFS(filepath.Join(copied, "cluster"), os.DirFS(filepath.Join(dir, "cluster"))); err != nil {
		n.t.Fatal(err)
	}
	elsewhere := append([]string{"cluster", "operator-key", "--data", copied}, n.flags()...)
	if code, _, errs := call(n.t, nil, elsewhere...); code == exitFine || !strings.Contains(errs, "node "+name+" is running; stop all nodes") {
		n.t.Errorf("while a node runs: exit %d, %s", code, errs)
	}
	n.end(name, syscall.SIGTERM)
	if code, _, errs := call(n.t, nil, append([]string{"cluster", "operator-key", "--data", n.dir}, n.flags()...)...); code == exitFine || !strings.Contains(errs, "has no copies of a cluster") {
		n.t.Errorf("a folder without copies: exit %d, %s", code, errs)
	}
	code, out, errs := call(n.t, nil, args...)
	var made struct{ Token string }
	if err := json.Unmarshal([]byte(out), &made); code != exitFine || err != nil || made.Token == "" {
		n.t.Fatalf("exit %d, %s%s: %v", code, out, errs, err)
	}
	n.start(name)
	n.serves("")
	for _, token := range []string{made.Token, before} {
		hub, err := v1.New(n.urls(), v1.Options{Token: token})
		if err != nil {
			n.t.Fatal(err)
		}
		if keys, err := hub.Keys(n.ctx); err != nil || len(keys) != 2 {
			n.t.Errorf("the keys are %v, %v", keys, err)
		}
	}
	n.end(name, syscall.SIGTERM)
}

// filesIn are the files of a folder, without those by which a process holds it.
func filesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.Name() != "PID" && entry.Name() != folder.LockFile {
			names = append(names, entry.Name())
		}
	}
	return names
}
