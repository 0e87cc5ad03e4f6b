//go:build unix

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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
