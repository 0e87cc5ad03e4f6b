package journalbench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	api "github.com/nats-io/nats.go/jetstream"

	"github.com/parley-hub/parley/internal/bench"
	"github.com/parley-hub/parley/internal/natsproc"
	"github.com/parley-hub/parley/journal/cluster"
	"github.com/parley-hub/parley/journal/cluster/jetstream"
	"github.com/parley-hub/parley/journal/cluster/port"
)

// nodeEnvironment is the variable that says which node a process is.
const nodeEnvironment = "PARLEY_BENCH_NODE"

type childNode struct{ URL, Cluster, Dir string }

// ServeChild makes this process one of those that RunCluster starts, if its
// environment says so. It ends the process then.
func ServeChild() {
	natsproc.ServeIfTold()
	text := os.Getenv(nodeEnvironment)
	if text == "" {
		return
	}
	if err := lead(text); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "node:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// lead leads a cluster until standard input ends.
func lead(text string) error {
	var c childNode
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	log, err := jetstream.Connect(jetstream.Options{URL: c.URL, Cluster: c.Cluster})
	if err != nil {
		return err
	}
	e, err := cluster.Open(cluster.Options{Dir: c.Dir, Node: "child", Log: log, Shards: 1})
	if err != nil {
		return err
	}
	for mine, _, changed := e.Lead(0); !mine; mine, _, changed = e.Lead(0) {
		<-changed
	}
	if _, err := fmt.Fprintln(os.Stdout, "leads"); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	return e.Close()
}

// suspect is how long a leader may be silent by default.
const suspect = 1200 * time.Millisecond

// deaths measures how long nothing is acknowledged after a leader or a server
// is killed.
func (r *clusterRun) deaths() ([]bench.Figure, error) {
	var leaders, servers, floors []float64
	for i := range r.opts.Kills {
		r.opts.Plan.Tell("deaths", i, r.opts.Kills)
		pause, err := r.leaderDies()
		if err != nil {
			return nil, err
		}
		leaders = append(leaders, pause.Seconds())
		ours, floor, err := r.serverDies()
		if err != nil {
			return nil, err
		}
		servers, floors = append(servers, ours.Seconds()), append(floors, floor.Seconds())
	}
	r.opts.Plan.Tell("deaths", r.opts.Kills, r.opts.Kills)
	return []bench.Figure{
		bench.Against("pause after kill -9 of the leader", bench.Median(leaders), suspect.Seconds(), "s", new(2.0)),
		bench.Against("pause after kill -9 of a server", bench.Median(servers), bench.Median(floors), "s", new(1.3)),
	}, nil
}

// leaderDies kills the process of a leader while another node is on standby.
func (r *clusterRun) leaderDies() (pause time.Duration, err error) {
	name, err := r.create()
	if err != nil {
		return 0, err
	}
	text, err := json.Marshal(childNode{URL: r.servers.URLs(), Cluster: name, Dir: r.dir + "/" + name + "child"})
	if err != nil {
		return 0, err
	}
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	child := exec.CommandContext(r.ctx, self, r.opts.Args...) //nolint:gosec // itself
	child.Env = append(os.Environ(), nodeEnvironment+"="+string(text))
	child.Stderr = os.Stderr
	in, err := child.StdinPipe()
	if err != nil {
		return 0, err
	}
	defer in.Close() //nolint:errcheck // it is dead then
	out, err := child.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := child.Start(); err != nil {
		return 0, err
	}
	_, err = bufio.NewReader(out).ReadString('\n')
	var second *node
	if err == nil {
		second, err = r.open(name, "b", false)
	}
	for err == nil && second.Status()[0].Leader != "child" {
		err = nap(r.ctx)
	}
	for began := time.Now(); err == nil && time.Since(began) < 2*suspect; { // it has been on standby for a while
		err = nap(r.ctx)
	}
	_ = child.Process.Kill()
	killed := time.Now()
	_ = child.Wait()
	if err != nil {
		return 0, err
	}
	defer second.Close() //nolint:errcheck // temporary
	write := appender(second, "log", r.data, 1)
	for write(r.ctx, 0, 0) != nil {
		if err := nap(r.ctx); err != nil {
			return 0, err
		}
	}
	return time.Since(killed), nil
}

func nap(ctx context.Context) error {
	select {
	case <-time.After(time.Millisecond):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// serverDies kills the server that leads the streams of an engine and of a bare
// publisher, which both write.
func (r *clusterRun) serverDies() (ours, floor time.Duration, err error) {
	n, name, err := r.leading()
	if err != nil {
		return 0, 0, err
	}
	defer n.Close() //nolint:errcheck // temporary
	beside, err := r.create()
	if err != nil {
		return 0, 0, err
	}
	b, err := r.connect(beside)
	if err != nil {
		return 0, 0, err
	}
	defer b.Close()
	victim, err := r.together("PARLEY_"+name+"_0", "PARLEY_"+beside+"_0")
	if err != nil {
		return 0, 0, err
	}
	ctx, cancel := context.WithTimeout(r.ctx, time.Minute)
	defer cancel()
	killed := make(chan struct{})
	var at time.Time
	var wg sync.WaitGroup
	var errs [2]error
	watch := func(i int, write func() error, pause *time.Duration) {
		wg.Go(func() {
			for {
				var dead bool
				select {
				case <-killed:
					dead = true
				default:
				}
				if errs[i] = write(); errs[i] != nil {
					return
				}
				if dead {
					*pause = time.Since(at)
					return
				}
			}
		})
	}
	write := appender(n, "log", r.data, 1)
	watch(0, func() error { return write(ctx, 0, 0) }, &ours)
	last := uint64(0)
	watch(1, func() error { return persist(ctx, b, &last, r.data[0]) }, &floor)
	if err := nap(ctx); err != nil {
		return 0, 0, err
	}
	r.servers.Kill(victim)
	at = time.Now()
	close(killed)
	wg.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return 0, 0, err
	}
	if err := r.servers.Again(victim); err != nil {
		return 0, 0, err
	}
	return ours, floor, errors.Join(r.servers.Ready(r.ctx), r.whole("PARLEY_"+name+"_0"))
}

// persist publishes until a message is stored.
func persist(ctx context.Context, log *jetstream.Log, last *uint64, data []byte) error {
	for {
		err := log.Append(ctx, 0, *last, data)
		if err == nil {
			*last++
			return nil
		}
		if ctx.Err() != nil {
			return err
		}
		if errors.Is(err, port.ErrRefused) {
			if state, err := log.State(ctx, 0); err == nil && state.Last == *last+1 {
				*last++
				return nil
			}
		}
		if err := nap(ctx); err != nil {
			return err
		}
	}
}

// together makes one server lead two streams, and returns which.
func (r *clusterRun) together(one, other string) (server int, err error) {
	err = r.asking(func(nc *nats.Conn, js api.JetStream) (bool, error) {
		a, b := leaderOf(r.ctx, js, one), leaderOf(r.ctx, js, other)
		if a != "" && a == b {
			_, err := fmt.Sscanf(a, "n%d", &server)
			return true, err
		}
		if a != "" && b != "" {
			_, _ = nc.Request("$JS.API.STREAM.LEADER.STEPDOWN."+other, nil, time.Second)
		}
		return false, nil
	})
	return server, err
}

// whole waits until all replicas of a stream have everything.
func (r *clusterRun) whole(stream string) error {
	return r.asking(func(_ *nats.Conn, js api.JetStream) (bool, error) {
		s, err := js.Stream(r.ctx, stream)
		if err != nil {
			return false, nil //nolint:nilerr // asked again
		}
		info := s.CachedInfo()
		if info.Cluster == nil || len(info.Cluster.Replicas) != 2 {
			return false, nil
		}
		for _, p := range info.Cluster.Replicas {
			if !p.Current || p.Offline {
				return false, nil
			}
		}
		return true, nil
	})
}

func leaderOf(ctx context.Context, js api.JetStream, stream string) string {
	s, err := js.Stream(ctx, stream)
	if err != nil || s.CachedInfo().Cluster == nil {
		return ""
	}
	return s.CachedInfo().Cluster.Leader
}

// asking asks the servers until the answer is valid.
func (r *clusterRun) asking(ask func(*nats.Conn, api.JetStream) (bool, error)) error {
	nc, err := nats.Connect(r.servers.URLs(), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := api.New(nc)
	if err != nil {
		return err
	}
	for {
		done, err := ask(nc, js)
		if done || err != nil {
			return err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-r.ctx.Done():
			return context.Cause(r.ctx)
		}
	}
}
