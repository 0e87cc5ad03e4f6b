package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/cluster"
	"github.com/parley-hub/parley/journal/disk"
	"github.com/parley-hub/parley/journal/disk/repair"
)

// logOf returns a log in the given shard.
func logOf(e *cluster.Engine, shard int) journal.LogName {
	for i := 0; ; i++ {
		if log := (journal.PartitionName{Tenant: "acme", Partition: fmt.Sprint("p", i)}).In("log", "history"); e.Shard(log.Of()) == shard {
			return log
		}
	}
}

func (n *node) count(log journal.LogName) uint64 {
	n.t.Helper()
	heads, err := n.Head(n.ctx, log)
	if err != nil {
		n.t.Fatal(err)
	}
	return heads.Durable.Seq
}

// TestALiveBackup: a node with three shards is backed up while it writes. The
// backup has all shards at one moment: if it has a write to one shard, it also has
// the earlier acknowledged writes to the others. A new cluster begins with the backup,
// in a new epoch; its nodes have the same data, and continue.
func TestALiveBackup(t *testing.T) {
	t.Parallel()
	const shards = 3
	three := func(o *cluster.Options) { o.Shards = shards }
	a := openNode(t, "a", dial(t, natsServers{}.create(t, shards, 1)), three).take()
	var logs []journal.LogName
	for n := range shards {
		logs = append(logs, logOf(a.Engine, n))
	}
	var rounds atomic.Int64
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		for {
			for _, log := range logs { // one after the other
				b := text(fmt.Sprint(rounds.Load()))
				b.Appends[0].Log = log
				ticket, err := a.Append(a.ctx, b)
				if err == nil {
					err = ticket.Wait(a.ctx)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
			rounds.Add(1)
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	a.until("writes", func() bool { return rounds.Load() > 20 || t.Failed() })
	before := uint64(rounds.Load())
	var archive bytes.Buffer
	err := a.Backup(a.ctx, &archive)
	after := uint64(rounds.Load())
	close(stop)
	writer.Wait()
	if err != nil {
		t.Fatal(err)
	}

	opts := disk.Options{FS: vfs.NewMem()}
	if ofCluster, err := cluster.Unpack(bytes.NewReader(archive.Bytes()), "/backup", opts, nil); err != nil || !ofCluster {
		t.Fatal(ofCluster, err)
	}
	if n, err := cluster.BackupShards(opts, "/backup"); err != nil || n != shards {
		t.Fatalf("the backup has %d shards, %v", n, err)
	}
	b := restoredNode(t, opts, shards)
	var counts []uint64
	for _, log := range logs {
		counts = append(counts, b.count(log))
	}
	if last := len(counts) - 1; counts[0]-counts[last] > 1 || !slices.IsSortedFunc(counts, func(x, y uint64) int { return int(int64(y) - int64(x)) }) {
		t.Errorf("of writes one after the other the shards have %v", counts)
	}
	if counts[0] < before || counts[0] > after+1 {
		t.Errorf("the backup of %d to %d rounds has %d", before, after, counts[0])
	}
	if place, err := b.Place(b.ctx, 1); err != nil || place.Epoch < 2 {
		t.Errorf("the restored place is %+v, %v", place, err)
	}
	b.take()
	one := text("after")
	one.Appends[0].Log = logs[2]
	if ticket, err := b.Append(b.ctx, one); err != nil || ticket.Wait(b.ctx) != nil {
		t.Fatal(err)
	}
	if b.count(logs[2]) != counts[2]+1 {
		t.Error("the new cluster does not go on where the backup ends")
	}

	// A stream that is cut is never a complete backup.
	for _, cut := range []int{0, 600, 2048, archive.Len() / 3, archive.Len() / 2, archive.Len() - 2000} {
		dir := fmt.Sprint("/cut", cut)
		_, err := cluster.Unpack(bytes.NewReader(archive.Bytes()[:cut]), dir, opts, nil)
		if err == nil {
			t.Errorf("a stream that was cut at %d of %d is whole", cut, archive.Len())
		}
		if n, err := cluster.BackupShards(opts, dir); n != 0 {
			t.Errorf("cut at %d: %d shards, %v", cut, n, err)
		}
	}
}

// restoredNode opens a node of a new cluster on the unpacked backup.
func restoredNode(t *testing.T, opts disk.Options, shards int) *node {
	t.Helper()
	for n := range shards {
		if err := repair.Restore(cluster.Folder(opts, "/backup", n), cluster.Folder(opts, "/data", n), opts, nil); err != nil {
			t.Fatal(err)
		}
	}
	epoch, err := cluster.NewEpoch(opts, "/data", shards, 0)
	if err != nil {
		t.Fatal(err)
	}
	name := natsServers{}.create(t, shards, epoch)
	return openOn(t, opts.FS.(*vfs.MemFS), "b", dial(t, name), func(o *cluster.Options) { o.Shards = shards })
}

// TestABackupWithoutQuorum: a shard that waits for its servers has no moment
// between two groups. The backup ends with its context, leaves no files, and blocks
// no other call.
func TestABackupWithoutQuorum(t *testing.T) {
	t.Parallel()
	g := newGate(dial(t, natsServers{}.create(t, 3, 1)))
	a := openNode(t, "a", g, func(o *cluster.Options) { o.Shards = 3 }).take()
	reached, release := g.HoldSync()
	defer release()
	b := text("held")
	b.Appends[0].Log = logOf(a.Engine, 1)
	ticket, err := a.Append(a.ctx, b)
	if err != nil {
		t.Fatal(err)
	}
	<-reached
	ctx, cancel := context.WithTimeout(a.ctx, 50*time.Millisecond)
	defer cancel()
	var archive bytes.Buffer
	if err := a.Backup(ctx, &archive); !errors.Is(err, ctx.Err()) || err == nil || archive.Len() > 0 {
		t.Errorf("it ends with %v, after %d bytes", err, archive.Len())
	}
	release()
	if err := ticket.Wait(a.ctx); err != nil {
		t.Fatal(err)
	}
	if err := a.Backup(a.ctx, &archive); err != nil || archive.Len() == 0 {
		t.Errorf("afterwards it ends with %v", err)
	}
	if names, err := a.fs.List("/data/cluster"); err != nil || slices.Contains(names, "backup") {
		t.Errorf("left in the node's folder: %v, %v", names, err)
	}
}
