package journalbench

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	api "github.com/nats-io/nats.go/jetstream"

	"github.com/parley-hub/parley/internal/bench"
	"github.com/parley-hub/parley/internal/natsproc"
	"github.com/parley-hub/parley/journal/cluster"
	"github.com/parley-hub/parley/journal/cluster/jetstream"
	"github.com/parley-hub/parley/journal/cluster/port"
	"github.com/parley-hub/parley/journal/disk"
)

// ClusterOptions for RunCluster.
type ClusterOptions struct {
	Dir  string // where servers and copies are, on the disk to be measured; "": a temporary folder
	Plan bench.Plan
	Args []string // with which this program calls ServeChild
	// Kills is how often a leader and a server are killed; 0: 3.
	Kills int
}

// clusterRun measures the cluster engine on three servers, each a process.
type clusterRun struct {
	ctx     context.Context
	opts    ClusterOptions
	dir     string
	data    [][]byte
	servers *natsproc.Cluster
	made    int // clusters
}

// RunCluster measures the cluster engine against a bare publisher on the same
// servers, and against the disk engine.
func RunCluster(ctx context.Context, opts ClusterOptions) (report bench.Report, err error) {
	opts.Plan = opts.Plan.WithDefaults()
	opts.Kills = cmp.Or(opts.Kills, 3)
	dir, err := os.MkdirTemp(opts.Dir, "parley-bench-*")
	if err != nil {
		return report, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // temporary
	servers, err := natsproc.Start(ctx, natsproc.Options{Servers: 3, Dir: dir, Direct: true, Args: opts.Args})
	if err != nil {
		return report, err
	}
	defer servers.Stop()
	r := &clusterRun{ctx: ctx, opts: opts, dir: dir, data: payloads(), servers: servers}
	report = bench.Report{Bench: "cluster", Params: map[string]any{
		"record_bytes": recordLen, "seconds": opts.Plan.Seconds, "rounds": opts.Plan.Rounds, "kills": opts.Kills, "servers": 3,
		"go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH, "cpus": runtime.NumCPU(),
	}}
	for _, part := range []func() ([]bench.Figure, error){r.appends, r.singly, r.cpu, r.building, r.deaths} {
		figures, err := part()
		if err != nil {
			return report, err
		}
		report.Figures = append(report.Figures, figures...)
	}
	report.Notes = []string{
		"groups: the bare publisher publishes messages as large as the engine's groups, one in flight, and counts as many records in each",
		"the limit: a shard has one group in flight, so no engine on this log exceeds bare messages as large as its groups",
		"pause of a leader: from kill -9 of its process to the next acknowledged append, beside cluster.suspect",
		"pause of a server: from kill -9 of the one that leads the stream to the next acknowledged append, beside that of a bare publisher",
	}
	return report, nil
}

// counted counts what is published.
type counted struct {
	port.Log
	messages, bytes atomic.Int64
}

func (c *counted) Append(ctx context.Context, shard int, after uint64, data []byte) error {
	c.messages.Add(1)
	c.bytes.Add(int64(len(data)))
	return c.Log.Append(ctx, shard, after, data)
}

func (r *clusterRun) connect(name string) (*jetstream.Log, error) {
	return jetstream.Connect(jetstream.Options{URL: r.servers.URLs(), Cluster: name})
}

// create makes the streams of a new cluster.
func (r *clusterRun) create() (name string, err error) {
	r.made++
	name = fmt.Sprint("b", r.made)
	log, err := r.connect(name)
	if err != nil {
		return "", err
	}
	defer log.Close()
	return name, log.Create(r.ctx, 1, 3, 1)
}

// node is an engine of a cluster, with its copies on disk.
type node struct {
	*cluster.Engine
	log *counted
	dir string
}

func (r *clusterRun) open(name, who string, manual bool) (*node, error) {
	log, err := r.connect(name)
	if err != nil {
		return nil, err
	}
	n := &node{log: &counted{Log: log}, dir: filepath.Join(r.dir, name+who)}
	n.Engine, err = cluster.Open(cluster.Options{Dir: n.dir, Node: who, Log: n.log, Shards: 1, Manual: manual, Disk: disk.Options{}})
	return n, err
}

// leading returns a node of a new cluster that leads.
func (r *clusterRun) leading() (n *node, name string, err error) {
	if name, err = r.create(); err != nil {
		return nil, "", err
	}
	if n, err = r.open(name, "a", true); err != nil {
		return nil, "", err
	}
	return n, name, n.Acquire(r.ctx)
}

// bare publishes to a stream of its own, as the engine does to its stream.
type bare struct {
	log  *jetstream.Log
	last uint64
	size int
	each float64 // records in a message
}

func (r *clusterRun) bare() (*bare, error) {
	name, err := r.create()
	if err != nil {
		return nil, err
	}
	log, err := r.connect(name)
	return &bare{log: log}, err
}

func (b *bare) publish(ctx context.Context, _, _ int) error {
	if err := b.log.Append(ctx, 0, b.last, make([]byte, b.size)); err != nil {
		return err
	}
	b.last++
	return nil
}

// beside returns a side that also notes how large the groups of a node are, and one that
// publishes messages of that size, one in flight.
func (b *bare) beside(n *node, write bench.Side) (ours, floor bench.Side) {
	ours = func(ctx context.Context, d time.Duration) (bench.Sample, error) {
		messages, bytes, batches := n.log.messages.Load(), n.log.bytes.Load(), n.Stats().Batches
		s, err := write(ctx, d)
		messages, bytes = n.log.messages.Load()-messages, n.log.bytes.Load()-bytes
		if err == nil && messages > 0 {
			b.size, b.each = int(bytes/messages), float64(n.Stats().Batches-batches)/float64(messages)
		}
		return s, err
	}
	floor = func(ctx context.Context, d time.Duration) (bench.Sample, error) {
		s, err := load(ctx, d, 1, b.publish)
		s.Value *= b.each
		return s, err
	}
	return ours, floor
}

// appends compares durable appends with messages as large as the engine's groups.
func (r *clusterRun) appends() (figures []bench.Figure, err error) {
	for _, c := range []struct {
		writers int
		target  float64
	}{{1, 0.75}, {64, 0.5}, {256, 0.5}} {
		n, _, err := r.leading()
		if err != nil {
			return nil, err
		}
		defer n.Close() //nolint:errcheck // temporary
		b, err := r.bare()
		if err != nil {
			return nil, err
		}
		defer b.log.Close()
		write := appender(n, "log", r.data, c.writers)
		ours, floor := b.beside(n, func(ctx context.Context, d time.Duration) (bench.Sample, error) {
			return load(ctx, d, c.writers, write)
		})
		if _, err := ours(r.ctx, 200*time.Millisecond); err != nil { // sizes of groups
			return nil, err
		}
		f, err := bench.Contest{
			Name: "appends, " + plural(c.writers), Unit: "1/s", Better: bench.Higher, Target: &c.target, Ours: ours, Floor: floor,
		}.Run(r.ctx, r.opts.Plan)
		if err != nil {
			return nil, err
		}
		figures = append(figures, f)
		if c.writers == 1 {
			f, err := bench.Contest{
				Name: "append, p50 of 1 writer", Unit: "ms", Better: bench.Lower, Target: new(1.3), Ours: median(ours), Floor: median(floor),
			}.Run(r.ctx, r.opts.Plan)
			if err != nil {
				return nil, err
			}
			figures = append(figures, f)
		}
	}
	return figures, nil
}

// median measures the duration of one operation instead of a rate.
func median(side bench.Side) bench.Side {
	return func(ctx context.Context, d time.Duration) (bench.Sample, error) {
		s, err := side(ctx, d)
		s.Value = float64(s.P50.Microseconds()) / 1000
		return s, err
	}
}

// singly measures the same records, each a message, with 64 outstanding.
func (r *clusterRun) singly() ([]bench.Figure, error) {
	const writers = 64
	n, _, err := r.leading()
	if err != nil {
		return nil, err
	}
	defer n.Close() //nolint:errcheck // temporary
	nc, err := nats.Connect(r.servers.URLs())
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	js, err := api.New(nc)
	if err != nil {
		return nil, err
	}
	if _, err := js.CreateStream(r.ctx, api.StreamConfig{Name: "SINGLY", Subjects: []string{"singly"}, Replicas: 3, Storage: api.FileStorage}); err != nil {
		return nil, err
	}
	b, err := r.bare()
	if err != nil {
		return nil, err
	}
	defer b.log.Close()
	write := appender(n, "log", r.data, writers)
	ours, groups := b.beside(n, func(ctx context.Context, d time.Duration) (bench.Sample, error) { return load(ctx, d, writers, write) })
	single := func(ctx context.Context, d time.Duration) (bench.Sample, error) {
		return load(ctx, d, writers, func(ctx context.Context, _, i int) error {
			_, err := js.Publish(ctx, "singly", r.data[i%len(r.data)])
			return err
		})
	}
	f, err := bench.Contest{
		Name: "appends, 64 writers, against single messages", Unit: "1/s", Better: bench.Higher, Target: new(2.5), Ours: ours, Floor: single,
	}.Run(r.ctx, r.opts.Plan)
	if err != nil {
		return nil, err
	}
	limit, err := bench.Contest{
		Name: "the limit of that: bare messages as large as its groups", Unit: "1/s", Better: bench.Higher, Ours: groups, Floor: single,
	}.Run(r.ctx, r.opts.Plan)
	return []bench.Figure{f, limit}, err
}

// work returns a side that reports the processor time of one append.
func work(engine func() uint64, side bench.Side) bench.Side {
	return func(ctx context.Context, d time.Duration) (bench.Sample, error) {
		before, cpu := engine(), bench.CPU()
		_, err := side(ctx, d)
		n := engine() - before
		return bench.Sample{Value: float64((bench.CPU() - cpu).Microseconds()) / float64(max(n, 1))}, err
	}
}

// cpu measures the processor time of an append in this process, which does not run the
// servers.
func (r *clusterRun) cpu() ([]bench.Figure, error) {
	const writers = 64
	n, name, err := r.leading()
	if err != nil {
		return nil, err
	}
	defer n.Close() //nolint:errcheck // temporary
	local, err := disk.Open(filepath.Join(r.dir, "disk"), disk.Options{})
	if err != nil {
		return nil, err
	}
	defer local.Close() //nolint:errcheck // temporary
	loads := func(write func(context.Context, int, int) error) bench.Side {
		return func(ctx context.Context, d time.Duration) (bench.Sample, error) { return load(ctx, d, writers, write) }
	}
	owner := work(func() uint64 { return n.Stats().Batches }, loads(appender(n, "log", r.data, writers)))
	first, err := bench.Contest{
		Name: "CPU of an append, 64 writers", Unit: "µs", Better: bench.Lower, Target: new(1.6), Ours: owner,
		Floor: work(func() uint64 { return local.Stats().Batches }, loads(appender(local, "log", r.data, writers))),
	}.Run(r.ctx, r.opts.Plan)
	if err != nil {
		return nil, err
	}
	// The follower runs in the same process, so the difference is what it costs.
	second, err := bench.Contest{
		Name: "CPU of a follower for an append", Unit: "µs", Better: bench.Lower, Target: new(0.5), Floor: owner,
		Ours: func(ctx context.Context, d time.Duration) (bench.Sample, error) {
			alone, err := owner(ctx, d/2)
			if err != nil {
				return alone, err
			}
			f, err := r.open(name, "b", true)
			if err != nil {
				return alone, err
			}
			defer f.Close() //nolint:errcheck // temporary
			if err := reach(ctx, f, n); err != nil {
				return alone, err
			}
			both, err := work(func() uint64 { return n.Stats().Batches }, func(ctx context.Context, d time.Duration) (bench.Sample, error) {
				s, err := load(ctx, d, writers, appender(n, "log", r.data, writers))
				if err == nil {
					err = reach(ctx, f, n)
				}
				return s, err
			})(ctx, d/2)
			return bench.Sample{Value: max(both.Value-alone.Value, 0.01)}, err
		},
	}.Run(r.ctx, r.opts.Plan)
	if err != nil {
		return nil, err
	}
	return []bench.Figure{first, second}, nil
}

// reach waits until one node has everything that another has.
func reach(ctx context.Context, behind, ahead *node) error {
	for behind.Status()[0].Offset < ahead.Status()[0].Offset {
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// building compares a copy that is made from the stream with reading it.
func (r *clusterRun) building() ([]bench.Figure, error) {
	n, name, err := r.leading()
	if err != nil {
		return nil, err
	}
	defer n.Close() //nolint:errcheck // temporary
	if _, err := load(r.ctx, time.Duration(r.opts.Plan.Seconds/3*float64(time.Second)), 256, appender(n, "log", r.data, 256)); err != nil {
		return nil, err
	}
	last := n.Status()[0]
	records := float64(last.Offset)
	made := 0
	log, err := r.connect(name)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	f, err := bench.Contest{
		Name: "a copy from the stream", Unit: "records/s", Better: bench.Higher, Target: new(0.2),
		Ours: func(ctx context.Context, _ time.Duration) (bench.Sample, error) {
			made++
			began := time.Now()
			c, err := r.open(name, fmt.Sprint("c", made), true)
			if err != nil {
				return bench.Sample{}, err
			}
			defer os.RemoveAll(c.dir) //nolint:errcheck // temporary
			defer c.Close()           //nolint:errcheck // temporary
			err = reach(ctx, c, n)
			return bench.Sample{Value: records / time.Since(began).Seconds()}, err
		},
		Floor: func(ctx context.Context, _ time.Duration) (bench.Sample, error) {
			began := time.Now()
			for at := uint64(1); at <= last.Seq; {
				messages, err := log.Read(ctx, 0, at)
				if err != nil {
					return bench.Sample{}, err
				}
				at += uint64(len(messages))
			}
			return bench.Sample{Value: records / time.Since(began).Seconds()}, nil
		},
	}.Run(r.ctx, r.opts.Plan)
	return []bench.Figure{f}, err
}

func plural(writers int) string {
	if writers == 1 {
		return "1 writer"
	}
	return fmt.Sprint(writers, " writers")
}
