package cluster_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/nats-io/nats.go"

	"github.com/parley-hub/parley/internal/natsproc"
	"github.com/parley-hub/parley/internal/scale"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/cluster"
	"github.com/parley-hub/parley/journal/cluster/internal/fakelog"
	"github.com/parley-hub/parley/journal/cluster/jetstream"
	"github.com/parley-hub/parley/journal/cluster/port"
	"github.com/parley-hub/parley/journal/disk"
	"github.com/parley-hub/parley/journal/disk/repair"
	"github.com/parley-hub/parley/journal/journaltest"
)

func TestMain(m *testing.M) {
	natsproc.ServeIfTold()
	nodeIfTold()
	_ = flag.Set("rapid.checks", strconv.Itoa(scale.N(8)))
	_ = flag.Set("rapid.steps", "25")
	code := m.Run()
	if stopServers != nil {
		stopServers()
	}
	os.Exit(code)
}

// servers starts three real servers, each a process, which all tests of the package
// share.
var servers = sync.OnceValues(func() (urls string, err error) {
	dir, err := os.MkdirTemp("/dev/shm", "parley-nats") // syncs work, and cost little
	if err != nil {
		dir, err = os.MkdirTemp("", "parley-nats")
	}
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := natsproc.Start(ctx, natsproc.Options{Servers: 3, Dir: dir, Direct: true})
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	stopServers = func() {
		c.Stop()
		_ = os.RemoveAll(dir)
	}
	return c.URLs(), nil
})

var stopServers func()

// clusters counts the clusters, to name them.
var clusters atomic.Int64

// backend makes new clusters and connects to them.
type backend interface {
	create(t testing.TB, shards int, epoch uint64) (name string)
	connect(t testing.TB, name string) port.Log
}

// natsServers is JetStream on three servers.
type natsServers struct{}

func (natsServers) connect(t testing.TB, name string) port.Log { return dial(t, name) }

func dial(t testing.TB, name string) *jetstream.Log {
	t.Helper()
	s, err := servers()
	if err != nil {
		t.Fatal(err)
	}
	log, err := jetstream.Connect(jetstream.Options{URL: s, Cluster: name})
	if err != nil {
		t.Fatal(err)
	}
	return log
}

func (natsServers) create(t testing.TB, shards int, epoch uint64) string {
	t.Helper()
	name := fmt.Sprint("c", clusters.Add(1))
	log := dial(t, name)
	defer log.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := log.Create(ctx, shards, 3, epoch); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, name, shards) })
	return name
}

// remove deletes the streams of a cluster.
func remove(t testing.TB, name string, shards int) {
	t.Helper()
	s, err := servers()
	if err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(s)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	for n := range shards {
		_, _ = nc.Request(fmt.Sprintf("$JS.API.STREAM.DELETE.PARLEY_%s_%d", name, n), nil, 10*time.Second)
	}
}

// fakeServers is a backend with logs in memory.
type fakeServers struct{ logs sync.Map }

func (f *fakeServers) create(_ testing.TB, shards int, epoch uint64) string {
	name := fmt.Sprint("f", clusters.Add(1))
	logs := fakelog.New(shards)
	logs.Epoch = epoch
	f.logs.Store(name, logs)
	return name
}

func (f *fakeServers) connect(_ testing.TB, name string) port.Log {
	logs, _ := f.logs.Load(name)
	return logs.(*fakelog.Logs).Connect()
}

// patience bounds every wait; only a failure reaches it.
const patience = 2 * time.Minute

// rig is a node with its stores and its cluster.
type rig struct {
	*gate
	backend backend
	name    string
	shards  int
	node    string
	mem     *vfs.MemFS
	dir     string
	opts    journaltest.Options
	engine  *cluster.Engine
	lost    *vfs.MemFS // what a crash left
	second  bool       // Reopen opens another node
}

// opener opens engines that lead at once, on new clusters.
func opener(b backend, shards int) journaltest.Open {
	return func(t testing.TB, opts journaltest.Options) (journal.Engine, journaltest.Faults) {
		t.Helper()
		r := rig{backend: b, name: b.create(t, shards, 1), shards: shards, node: "a", mem: vfs.NewCrashableMem(), dir: "/data", opts: opts}
		return r.open(t)
	}
}

func (r rig) options(t testing.TB) cluster.Options {
	t.Helper()
	return cluster.Options{
		Dir: r.dir, Node: r.node, Shards: r.shards, Suspect: 20 * time.Millisecond, Patience: patience, Poll: 200 * time.Millisecond,
		Disk: disk.Options{FS: r.mem, Now: r.opts.Now, MaxUnsynced: r.opts.MaxUnsynced, MemTableSize: 1 << 20, CacheBytes: 1 << 20},
	}
}

func (r rig) open(t testing.TB) (journal.Engine, journaltest.Faults) {
	t.Helper()
	r.gate, r.lost = newGate(r.backend.connect(t, r.name)), nil
	o := r.options(t)
	o.Log = r.gate
	e, err := cluster.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	r.engine = e
	acquire(t, e)
	return e, &r
}

func acquire(t testing.TB, e *cluster.Engine) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := e.Acquire(ctx); err != nil {
		_ = e.Close()
		t.Fatal(err)
	}
}

// Crash discards what the node has not synced, and blocks the messages that it was
// publishing.
func (r *rig) Crash() {
	r.lost = r.mem.CrashClone(vfs.CrashCloneCfg{})
	r.die()
	r.engine.Abandon()
}

func (r *rig) LoseIndex(t testing.TB) {
	t.Helper()
	for n := range r.shards {
		dir := cluster.Folder(disk.Options{FS: r.mem}, r.dir, n)
		db, err := pebble.Open(dir+"/store", &pebble.Options{FS: r.mem, FormatMajorVersion: pebble.FormatNewest, Logger: quiet{}})
		if err != nil {
			t.Fatal(err)
		}
		for _, span := range []string{"ij", "kl"} {
			if err := db.DeleteRange([]byte(span[:1]), []byte(span[1:]), pebble.Sync); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Delete([]byte("mi"), pebble.Sync); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if err := r.mem.Remove(dir + "/SEAL"); err != nil {
			t.Fatal(err)
		}
	}
}

type quiet struct{}

func (quiet) Infof(string, ...any)              {}
func (quiet) Errorf(string, ...any)             {}
func (quiet) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func (r *rig) Reopen(t testing.TB) (journal.Engine, journaltest.Faults) {
	t.Helper()
	again := *r
	if r.lost != nil {
		again.mem = r.lost
	}
	if r.second { // with its own, empty copies
		again.node, again.mem = fmt.Sprint("n", clusters.Add(1)), vfs.NewCrashableMem()
	}
	return again.open(t)
}

func (r *rig) Restore(t testing.TB, dir string) (journal.Engine, journaltest.Faults) {
	t.Helper()
	return r.restored(t, dir).open(t)
}

// restored returns a node of a new cluster whose store was made from a checkpoint.
func (r *rig) restored(t testing.TB, dir string) rig {
	t.Helper()
	restored := *r
	restored.dir = "/restored"
	opts := disk.Options{FS: r.mem}
	for n := range r.shards {
		if err := repair.Restore(cluster.Folder(opts, dir, n), cluster.Folder(opts, restored.dir, n), opts, nil); err != nil {
			t.Fatal(err)
		}
	}
	restored.name = r.backend.create(t, r.shards, 2)
	return restored
}

func TestExercise(t *testing.T) { journaltest.Exercise(t, opener(natsServers{}, 1)) }

func TestExerciseThreeShards(t *testing.T) { journaltest.Exercise(t, opener(natsServers{}, 3)) }

// many returns the backend of further suites that make many streams, which is slow:
// real servers from a scale of 2 on, logs in memory below.
func many() backend {
	if scale.N(1) > 1 {
		return natsServers{}
	}
	return &fakeServers{}
}

// TestExerciseTakeover reopens a store as another node, whose copies are empty.
// TestRandomTakeover always runs on real servers.
func TestExerciseTakeover(t *testing.T) {
	journaltest.Exercise(t, takingOver(opener(many(), 1)))
}

func takingOver(open journaltest.Open) journaltest.Open {
	return func(t testing.TB, opts journaltest.Options) (journal.Engine, journaltest.Faults) {
		e, f := open(t, opts)
		f.(*rig).second = true
		return e, f
	}
}

// TestRandom compares the engine with a simple model. A failure prints how to run
// it again.
func TestRandom(t *testing.T) {
	t.Parallel()
	journaltest.Random(t, opener(natsServers{}, 1))
}

func TestRandomThreeShards(t *testing.T) {
	t.Parallel()
	journaltest.Random(t, opener(natsServers{}, 3))
}

func TestRandomTakeover(t *testing.T) {
	t.Parallel()
	journaltest.Random(t, takingOver(opener(natsServers{}, 1)))
}
