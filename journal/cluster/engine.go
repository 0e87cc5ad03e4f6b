// Package cluster is the journal engine that survives the loss of machines: one
// replicated log for each shard (package port), and on each node a journal/disk
// store for each shard as the copy that all reads use. The node whose fence is the
// last one in a shard's log orders that shard; the others follow. Ordering, index
// and codec are those of the disk engine.
package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/cluster/port"
	"github.com/parley-hub/parley/journal/disk"
)

// Options configure an engine.
type Options struct {
	Dir    string // the node's data folder; copies are in cluster/ below it
	Node   string // name of this node, unique in the cluster
	Log    port.Log
	Shards int
	Disk   disk.Options // of the copies
	// Address is where other nodes reach this node. It is sent in beats; the engine does
	// not use it.
	Address string
	Version string // of this node's program; sent in beats
	// Fetch requests the copy of a shard, in the form of WriteCopy, from a live node.
	// Nil: copies are only read from the log.
	Fetch  func(ctx context.Context, from Node, shard int) (io.ReadCloser, error)
	Logger *slog.Logger // nil: nothing is logged

	GroupBytes int64         // a batch that makes a group larger waits for the next one; 0: 1 MiB
	Suspect    time.Duration // a leader without a sign of life for so long is replaced; 0: 1.2 s
	Beat       time.Duration // how often nodes send a beat; 0: a sixth of Suspect
	Poll       time.Duration // how often the end of each log is read even if no message arrived; 0: 1 s
	Patience   time.Duration // how long Close waits for groups that are being published; 0: 3 s
	Manual     bool          // lead only when Acquire is called
}

func (o Options) withDefaults() (Options, error) {
	if o.Shards < 1 || o.Shards > maxShards {
		return o, &journal.BoundsError{What: "cluster: shards", Got: o.Shards, Min: 1, Max: maxShards}
	}
	if n := len(o.Node); n == 0 || n > maxNode {
		return o, &journal.BoundsError{What: "cluster: length of the node's name", Got: n, Min: 1, Max: maxNode}
	}
	if n := len(o.Address); n > maxAddr {
		return o, &journal.BoundsError{What: "cluster: length of the node's address", Got: n, Max: maxAddr}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	// A copy applies groups as fast as they arrive, which justifies larger in-memory
	// tables.
	o.Disk.MemTableSize = cmp.Or(o.Disk.MemTableSize, 16<<20)
	o.Disk = o.Disk.WithDefaults()
	if o.GroupBytes <= 0 {
		o.GroupBytes = 1 << 20
	}
	for _, d := range []struct {
		set   *time.Duration
		value time.Duration
	}{{&o.Suspect, 1200 * time.Millisecond}, {&o.Poll, time.Second}, {&o.Patience, 3 * time.Second}} {
		if *d.set <= 0 {
			*d.set = d.value
		}
	}
	if o.Beat <= 0 {
		o.Beat = o.Suspect / 6
	}
	return o, nil
}

const (
	maxShards = 256
	maxNode   = 64
	maxAddr   = 255
)

// Engine is the engine. Its methods are described by journal.Engine.
type Engine struct {
	opts   Options
	shards []*shard
	nodes  nodes

	failed   chan struct{}
	failing  sync.Once
	stop     context.CancelFunc // following and leading
	abandon  context.CancelFunc // publishing
	running  sync.WaitGroup
	closing  sync.Once
	closed   chan struct{}
	closeErr error
}

var _ journal.Engine = (*Engine)(nil)

// Open opens the copies of a node and begins to follow. The logs must exist. The
// engine owns Log and closes it.
func Open(opts Options) (*Engine, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	run, stop := context.WithCancel(context.Background())
	ships, abandon := context.WithCancel(context.Background())
	e := &Engine{opts: opts, failed: make(chan struct{}), closed: make(chan struct{}), stop: stop, abandon: abandon}
	if err := opts.Disk.FS.RemoveAll(e.backupDir()); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	for n := range opts.Shards {
		s := newShard(ships, n, e)
		if err := s.open(); err != nil {
			return nil, errors.Join(err, e.Close())
		}
		e.shards = append(e.shards, s)
	}
	if err := e.nodes.begin(e); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	for _, s := range e.shards {
		e.running.Go(func() { s.run(run) })
	}
	e.running.Go(func() { e.nodes.run(run, e) })
	return e, nil
}

// broken closes e.failed: a copy's disk has failed.
func (e *Engine) broken() { e.failing.Do(func() { close(e.failed) }) }

// folder returns the folder of a shard's copy.
func (e *Engine) folder(n int) string { return Folder(e.opts.Disk, e.opts.Dir, n) }

// Folder returns the folder of a shard's copy in a node's data folder.
func Folder(opts disk.Options, dir string, n int) string {
	fs := opts.WithDefaults().FS
	return fs.PathJoin(fs.PathJoin(dir, "cluster"), fmt.Sprintf("shard-%02d", n))
}

// Shards implements journal.Engine.
func (e *Engine) Shards() int { return len(e.shards) }

// Shard implements journal.Engine.
func (e *Engine) Shard(p journal.PartitionName) int { return journal.ShardOf(p, len(e.shards)) }

// of returns the copy of a partition's shard.
func (e *Engine) of(p journal.PartitionName) *disk.Copy { return e.shards[e.Shard(p)].store() }

// at returns the copy of a shard.
func (e *Engine) at(shard int) (*disk.Copy, error) {
	if shard < 0 || shard >= len(e.shards) {
		return nil, fmt.Errorf("shard %d of %d: %w", shard, len(e.shards), journal.ErrInvalid)
	}
	return e.shards[shard].store(), nil
}

// Lead implements journal.Engine.
func (e *Engine) Lead(shard int) (mine bool, node string, changed <-chan struct{}) {
	if _, err := e.at(shard); err != nil {
		return false, "", nil
	}
	return e.shards[shard].leader()
}

// slowPublish is how long publishing a group may take, or the log's servers may be
// without quorum, before Health reports it.
const slowPublish = 2 * time.Second

// Health implements journal.Engine. A log that does not answer is not a failure: the
// state is Waiting, and the engine continues by itself when the log answers.
func (e *Engine) Health() journal.Health {
	worst := journal.Health{State: journal.Ready}
	for _, s := range e.shards {
		h := s.store().Health()
		if h.State == journal.Broken || h.State == journal.Closed && !s.replacing() {
			return h
		}
		switch h.State {
		case journal.Full, journal.Waiting:
			worst = h
		case journal.Ready:
			if err := s.quiet(); err != nil {
				worst = journal.Health{State: journal.Waiting, Err: err}
			}
		}
		if err := s.troubled(); err != nil {
			worst = journal.Health{State: journal.Waiting, Err: err}
		}
	}
	return worst
}

// Failed implements journal.Engine: the channel is closed when a copy's disk has failed.
func (e *Engine) Failed() <-chan struct{} { return e.failed }

// Stats implements journal.Engine.
func (e *Engine) Stats() journal.Stats {
	var sum journal.Stats
	for _, s := range e.shards {
		one := s.store().Stats()
		sum.Batches += one.Batches
		sum.Records += one.Records
		sum.Bytes += one.Bytes
		sum.Groups += one.Groups
		sum.Syncs += one.Syncs
		sum.Unsynced += one.Unsynced
		sum.Removals += one.Removals
		for i, n := range one.SyncTimes.Counts {
			sum.SyncTimes.Counts[i] += n
		}
		sum.SyncTimes.Sum += one.SyncTimes.Sum
	}
	return sum
}

// Voids counts the messages in the logs that no node wrote.
func (e *Engine) Voids() (n uint64) {
	for _, s := range e.shards {
		n += s.voids.Load()
	}
	return n
}

// Close implements journal.Engine. It waits up to Patience for groups that are being
// published; after that their outcome is unknown.
func (e *Engine) Close() error {
	e.closing.Do(func() { e.closeErr = e.close() })
	return e.closeErr
}

func (e *Engine) close() error {
	close(e.closed)
	e.stop()
	patience := time.AfterFunc(e.opts.Patience, e.abandon)
	defer patience.Stop()
	errs := make([]error, len(e.shards))
	var closing sync.WaitGroup
	for i, s := range e.shards {
		closing.Go(func() { errs[i] = s.close() })
	}
	closing.Wait()
	e.running.Wait()
	e.nodes.end(e)
	e.abandon()
	e.opts.Log.Close()
	return errors.Join(errs...)
}
