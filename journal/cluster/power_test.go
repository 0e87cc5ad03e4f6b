//go:build fuse && unix

package cluster_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/parley-hub/parley/internal/lossyfs"
	"github.com/parley-hub/parley/internal/natsproc"
	"github.com/parley-hub/parley/internal/scale"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/cluster/jetstream"
)

// These tests need FUSE: make power.

// lossy returns folders with the given names on a file system that loses what was not
// synced.
func lossy(t *testing.T, names ...string) (disk *lossyfs.FS, folders []string) {
	t.Helper()
	dir := t.TempDir()
	disk, err := lossyfs.Mount(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := disk.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, name := range names {
		folder := filepath.Join(dir, name)
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		folders = append(folders, folder)
	}
	return disk, folders
}

var (
	serverDisks = []string{"server0", "server1", "server2"}
	nodeDisks   = []string{"node0", "node1", "node2"}
)

// TestPowerLoss: clients write through three nodes while machines lose their
// power: those of one, two and all servers, of one node, and all at once. Every
// acknowledged write is there once, at its sequence, and histories are linearizable.
func TestPowerLoss(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	disk, folders := lossy(t, append(serverDisks, nodeDisks...)...)
	s := newSite(t, seed, natsproc.Options{Folders: folders[:3]}, folders[3:]...)
	h := s.clients(seed)
	s.progress("the beginning")
	for range scale.N(1) {
		for _, c := range []struct{ servers, nodes int }{{1, 0}, {0, 1}, {2, 0}, {1, 1}, {3, 0}, {3, 3}} {
			lost := s.cutPower(disk, c.servers, c.nodes)
			s.progress(fmt.Sprintf("a loss of power of %d servers and %d nodes, and of %d bytes", c.servers, c.nodes, lost))
		}
	}
	s.check(h.end())
}

// cutPower cuts the power of some servers and nodes, and restores it a moment later.
func (s *site) cutPower(disk *lossyfs.FS, servers, nodes int) (lost int) {
	s.t.Helper()
	whichServers, whichNodes := s.rng.Perm(3)[:servers], s.rng.Perm(3)[:nodes]
	var disks []string
	for _, i := range whichNodes {
		s.nodes[i].kill()
		disks = append(disks, nodeDisks[i])
	}
	for _, i := range whichServers {
		s.servers.Kill(i)
		disks = append(disks, serverDisks[i])
	}
	lost = disk.CutPower(s.rng, disks...)
	s.while(time.Millisecond, time.Second)
	for _, i := range whichServers {
		if err := s.servers.Again(i); err != nil {
			s.t.Fatal(err)
		}
	}
	for _, i := range whichNodes {
		s.nodes[i].begin()
	}
	return lost
}

// TestPowerLossWithoutSync: with the default sync interval of the servers the same run
// fails: acknowledged writes are lost, and the nodes report it.
func TestPowerLossWithoutSync(t *testing.T) {
	t.Parallel()
	disk, folders := lossy(t, serverDisks...)
	ctx, servers := processes(t, natsproc.Options{Folders: folders, NoSync: true})
	log, err := jetstream.Connect(jetstream.Options{URL: servers.URLs(), Cluster: "power"})
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Create(ctx, 1, 3, 1); err != nil {
		t.Fatal(err)
	}
	a := openNode(t, "a", log).take()
	a.write("1", "2", "3")
	for i := range 3 {
		servers.Kill(i)
	}
	if lost := disk.CutPower(rand.New(rand.NewPCG(1, 1)), serverDisks...); lost == 0 {
		t.Fatal("nothing was lost")
	}
	for i := range 3 {
		if err := servers.Again(i); err != nil {
			t.Fatal(err)
		}
	}
	a.until("an error", func() bool { return errors.Is(a.Trouble(0), journal.ErrDamaged) })
	t.Log(a.Trouble(0))
}
