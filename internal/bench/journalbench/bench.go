// Package journalbench measures the disk engine of the journal against the
// least that its work can cost: a hand-written, group-committed file, a replay
// of such a file, a reading of the store's own log.
package journalbench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/parley-hub/parley/internal/bench"
	"github.com/parley-hub/parley/journal/disk"
)

// Options for a run. The zero value is what figures are quoted from.
type Options struct {
	Dir  string // where the stores are made, on the disk to be measured; "": a temporary folder
	Plan bench.Plan
	// Size shrinks the prepared stores, for a quick look: 1 is full size, 0
	// counts as 1.
	Size float64
}

func (o Options) scaled(n int) int {
	if o.Size <= 0 {
		return n
	}
	return max(1, int(float64(n)*o.Size))
}

// Run measures everything and reports it.
func Run(ctx context.Context, opts Options) (bench.Report, error) {
	opts.Plan = opts.Plan.WithDefaults()
	dir, err := os.MkdirTemp(opts.Dir, "parley-bench-*")
	if err != nil {
		return bench.Report{}, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // temporary
	r := &run{ctx: ctx, opts: opts, dir: dir, data: payloads()}
	report := bench.Report{Bench: "journal", Params: map[string]any{
		"record_bytes": recordLen, "seconds": opts.Plan.Seconds, "rounds": opts.Plan.Rounds, "size": max(opts.Size, 0),
		"go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH, "cpus": runtime.NumCPU(),
	}}
	if opts.Size <= 0 {
		report.Params["size"] = 1
	}
	for _, part := range []func() ([]bench.Figure, error){
		r.appends, r.claims, r.reads, r.tails, r.opens, r.memory,
	} {
		figures, err := part()
		if err != nil {
			return report, err
		}
		report.Figures = append(report.Figures, figures...)
	}
	return report, nil
}

type run struct {
	ctx  context.Context
	opts Options
	dir  string
	data [][]byte
}

func (r *run) path(name string) string { return filepath.Join(r.dir, name) }

// appends compares durable appends at equal concurrency, and counts syncs.
func (r *run) appends() ([]bench.Figure, error) {
	fs := newCountFS()
	e, err := disk.Open(r.path("appends"), disk.Options{FS: fs})
	if err != nil {
		return nil, err
	}
	fl, err := newFloor(r.path("floor"))
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	figures, err := r.appendFigures(e, fl, fs)
	return figures, errors.Join(err, fl.close(), e.Close(), os.Remove(r.path("floor")), os.RemoveAll(r.path("appends")))
}

func (r *run) appendFigures(e *disk.Engine, fl *floor, fs *countFS) ([]bench.Figure, error) {
	var figures []bench.Figure
	// Both sides are measured as they run for most of their lives: the store
	// uses its logs again, and the floor's file has been grown.
	if err := fill(r.ctx, e, "warm", 64, r.opts.scaled(160_000), 8, recordLen, r.data); err != nil {
		return nil, err
	}
	for range r.opts.scaled(160_000) / 512 {
		if err := fl.append(bytes.Repeat(r.data[0], 512)); err != nil {
			return nil, err
		}
	}
	side := func(n int, p50 bool) (ours, base bench.Side) {
		pick := func(s bench.Sample, err error) (bench.Sample, error) {
			if p50 {
				s.Value = float64(s.P50) / float64(time.Microsecond)
			}
			return s, err
		}
		write := appender(e, fmt.Sprint("appends-", n), r.data, n)
		return func(ctx context.Context, d time.Duration) (bench.Sample, error) {
				return pick(load(ctx, d, n, write))
			}, func(ctx context.Context, d time.Duration) (bench.Sample, error) {
				return pick(load(ctx, d, n, func(_ context.Context, _, i int) error { return fl.append(r.data[i%len(r.data)]) }))
			}
	}
	for _, c := range []struct {
		writers int
		target  *float64
	}{{1, new(0.9)}, {64, new(0.45)}, {256, new(0.45)}, {1024, nil}} {
		ours, base := side(c.writers, false)
		f, err := bench.Contest{
			Name: fmt.Sprintf("durable appends, %d writers", c.writers), Unit: "1/s", Better: bench.Higher,
			Target: c.target, Ours: ours, Floor: base,
		}.Run(r.ctx, r.opts.Plan)
		if err != nil {
			return figures, err
		}
		figures = append(figures, f)
	}
	ours, base := side(1, true)
	f, err := bench.Contest{
		Name: "p50 of a durable append, 1 writer", Unit: "µs", Better: bench.Lower, Target: new(1.3), Ours: ours, Floor: base,
	}.Run(r.ctx, r.opts.Plan)
	if err != nil {
		return figures, err
	}
	figures = append(figures, f)

	syncs, batches := fs.syncs.Load(), e.Stats().Batches
	many, _ := side(64, false)
	if _, err := many(r.ctx, time.Duration(r.opts.Plan.Seconds*float64(time.Second)/5)); err != nil {
		return figures, err
	}
	each := float64(fs.syncs.Load()-syncs) / float64(e.Stats().Batches-batches)
	return append(figures, bench.Counted("syncs for each append, 64 writers", each, "syncs", new(0.1))), nil
}
