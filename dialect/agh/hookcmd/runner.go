// Package hookcmd runs an operator's command for each event of the AGH network.
// Events are told in order, one command at a time, with the event as JSON on its
// standard input. It never holds up the network: what waits is bounded, and what
// fails is counted and logged.
package hookcmd

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Defaults and bounds.
const (
	DefaultQueue   = 1000
	DefaultTimeout = 10 * time.Second
	DefaultLinger  = 3 * time.Second

	logEvery = time.Minute // between two lines about what failed
)

// Options of a runner. Zero values are the defaults.
type Options struct {
	// Command is the program and its arguments. No shell reads them.
	Command []string
	// Events are the names of those that are told; empty: all.
	Events  []string
	Queue   int           // events that wait; one more is dropped
	Timeout time.Duration // after which a command is ended
	Linger  time.Duration // for what waits when the runner is closed
	Log     *slog.Logger
}

// Runner runs the command.
type Runner struct {
	opts   Options
	cancel context.CancelFunc
	done   chan struct{}
	told   *prometheus.CounterVec

	mu     sync.Mutex
	queue  chan []byte
	closed bool
	logged time.Time // when something that failed was last logged
}

// New starts a runner.
func New(o Options) *Runner {
	if o.Queue <= 0 {
		o.Queue = DefaultQueue
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Linger <= 0 {
		o.Linger = DefaultLinger
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &Runner{
		opts: o, cancel: cancel, done: make(chan struct{}), queue: make(chan []byte, o.Queue),
		told: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "network_hooks_total", Help: "Events of the AGH network by what became of telling them to agh.hooks.command.",
		}, []string{"result"}),
	}
	go r.run(ctx)
	return r
}

// Tell runs the command soon with an event, unless too many wait.
func (r *Runner) Tell(name string, event []byte) {
	if len(r.opts.Events) > 0 && !slices.Contains(r.opts.Events, name) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	select {
	case r.queue <- event:
	default:
		r.told.WithLabelValues("dropped").Inc()
		r.complain("events of the AGH network wait for agh.hooks.command and more are dropped; make it faster, or raise agh.hooks.queue", "waiting", len(r.queue))
	}
}

// Close waits a moment for what is waiting, and then ends the command. It may be
// called again.
func (r *Runner) Close() error {
	r.mu.Lock()
	if !r.closed {
		r.closed = true
		close(r.queue)
	}
	r.mu.Unlock()
	late := time.AfterFunc(r.opts.Linger, r.cancel)
	defer late.Stop()
	<-r.done
	r.cancel()
	return nil
}

func (r *Runner) run(ctx context.Context) {
	defer close(r.done)
	for event := range r.queue {
		if ctx.Err() != nil {
			r.told.WithLabelValues("dropped").Inc()
			continue
		}
		if err := r.tell(ctx, event); err != nil {
			r.told.WithLabelValues("failed").Inc()
			r.mu.Lock()
			r.complain("agh.hooks.command failed", "error", err)
			r.mu.Unlock()
			continue
		}
		r.told.WithLabelValues("told").Inc()
	}
}

// tell runs the command once.
func (r *Runner) tell(ctx context.Context, event []byte) error {
	ctx, cancel := context.WithTimeoutCause(ctx, r.opts.Timeout, errors.New("it took longer than agh.hooks.timeout"))
	defer cancel()
	cmd := exec.CommandContext(ctx, r.opts.Command[0], r.opts.Command[1:]...)
	cmd.Stdin = bytes.NewReader(append(event, '\n'))
	cmd.Env = environ()
	cmd.WaitDelay = time.Second // for children that keep its pipes open
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	}
	return nil
}

// environ is the hub's environment without its own settings, some of which are
// secrets.
func environ() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PARLEY_") })
}

// complain logs that something failed, now and then; the lock is held.
func (r *Runner) complain(what string, args ...any) {
	now := time.Now()
	if !r.logged.IsZero() && now.Sub(r.logged) < logEvery {
		return
	}
	r.logged = now
	r.opts.Log.Warn(what, args...)
}

// Describe names the figures.
func (r *Runner) Describe(to chan<- *prometheus.Desc) { r.told.Describe(to) }

// Collect tells them.
func (r *Runner) Collect(to chan<- prometheus.Metric) { r.told.Collect(to) }
