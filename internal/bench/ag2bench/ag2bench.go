// Package ag2bench measures the AG2 dialect as clients see it: over WebSocket,
// with the hub in a process of its own, data on disk and every admission
// synced. Each figure is compared with the least that it can cost: an echo, a
// group-committed file, a loop of writes. The driver uses only the protocol, so it
// also measures any other hub that speaks it.
package ag2bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/parley-hub/parley/internal/bench"
	"github.com/parley-hub/parley/internal/bench/journalbench"
)

// Options of a run. The zero value of each field but the two commands is what
// figures are quoted from.
type Options struct {
	// Hub runs a hub on a folder: the first line that it prints is a JSON
	// object with its url. Required.
	Hub func(ctx context.Context, dir string) *exec.Cmd
	// Floor runs ServeFloor on its standard input and output. Required.
	Floor func(ctx context.Context) *exec.Cmd
	// Against is the URL of another hub, which the same driver then measures
	// too; empty is none.
	Against string

	Dir         string // for data; empty: a temporary folder
	Connections int    // that post at once; 0: 16
	InFlight    int    // on each of them; 0: 64
	Readers     int    // of the fan-out; 0: 50
	Idle        int    // connections that say nothing; 0: 5,000
	bench.Plan
}

func (o Options) withDefaults() Options {
	o.Connections = cmp.Or(o.Connections, 16)
	o.InFlight = cmp.Or(o.InFlight, 64)
	o.Readers = cmp.Or(o.Readers, 50)
	o.Idle = cmp.Or(o.Idle, 5000)
	o.Plan = o.Plan.WithDefaults()
	return o
}

// saturating is how many posts of the fan-out are in flight: enough that the
// hub never waits for the poster, however slow the disk.
const saturating = 256

// run is what the figures share.
type run struct {
	Options
	ctx  context.Context
	hub  *bench.Process // with no other load on it
	echo *bench.Process // the floor's server
	file *journalbench.Floor
}

// Run measures every figure.
func Run(ctx context.Context, o Options) (report bench.Report, err error) {
	if o.Hub == nil || o.Floor == nil {
		return report, errors.New("ag2bench: the commands of a hub and of the floor are needed")
	}
	r := &run{Options: o.withDefaults(), ctx: ctx}
	if r.Dir == "" {
		if r.Dir, err = os.MkdirTemp("", "parley-bench-ag2-"); err != nil {
			return report, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(r.Dir)) }()
	}
	report = bench.Report{Bench: "ag2", Params: map[string]any{
		"connections": r.Connections, "in_flight": r.InFlight, "readers": r.Readers, "fan_out_in_flight": saturating,
		"idle": r.Idle, "data_bytes": len(text), "seconds": r.Seconds, "rounds": r.Rounds,
		"go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH, "cpus": runtime.NumCPU(),
	}}
	if r.Against != "" {
		report.Params["against"] = r.Against
	}
	if err := r.start(); err != nil {
		return report, errors.Join(err, r.stop())
	}
	for _, part := range []func() ([]bench.Figure, error){r.delivery, r.admissions, r.fanOut, r.weight, r.crowd, r.against} {
		figures, err := part()
		report.Figures = append(report.Figures, figures...)
		if err != nil {
			return report, errors.Join(err, r.stop())
		}
	}
	return report, r.stop()
}

func (r *run) start() (err error) {
	if r.hub, err = bench.StartProcess(r.Hub(r.ctx, filepath.Join(r.Dir, "hub"))); err != nil {
		return err
	}
	if r.echo, err = bench.StartProcess(r.Floor(r.ctx)); err != nil {
		return err
	}
	r.file, err = journalbench.OpenFloor(filepath.Join(r.Dir, "floor"))
	return err
}

func (r *run) stop() error {
	var errs []error
	if r.file != nil {
		errs = append(errs, r.file.Close())
	}
	return errors.Join(append(errs, r.hub.Stop(), r.echo.Stop())...)
}

// text is the data of every post: with its header, the record that is stored
// has about the 600 bytes of the floor's.
var text = func() []byte {
	b := []byte(`{"text":"`)
	for len(b) < 440 {
		b = append(b, "the quick brown fox "...)
	}
	return append(b, `"}`...)
}()

// record is what the floor stores instead.
var record = make([]byte, journalbench.RecordLen)

// patience is how long a hub may leave the driver without a frame.
const patience = time.Minute

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func (r *run) contest(c bench.Contest) ([]bench.Figure, error) {
	f, err := c.Run(r.ctx, r.Plan)
	if err != nil {
		return nil, err
	}
	return []bench.Figure{f}, nil
}

// named makes names that no earlier run on the same hub has used.
func named(what string, i int) string {
	return fmt.Sprintf("bench-%d-%d-%s-%d", os.Getpid(), time.Now().UnixNano(), what, i)
}
