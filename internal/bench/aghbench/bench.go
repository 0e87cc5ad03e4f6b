// Package aghbench measures the AGH dialect: what validating an envelope costs
// beside finding that it is JSON at all, how many durable messages many senders
// get through over NATS and over HTTP, what opening a thread costs beside
// writing into one, and what many threads cost. Everything runs in this process:
// the hub on a disk, its NATS server and its HTTP interface on loopback ports,
// and the senders.
package aghbench

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"

	"github.com/parley-hub/parley/internal/bench"
	"github.com/parley-hub/parley/internal/bench/journalbench"
)

// Options of a run. Zero values are what figures are quoted from.
type Options struct {
	Dir     string // for data; empty: a temporary folder
	Senders int    // at once; 0: 64
	Few     int    // threads of the small workspace; 0: 1,000
	Many    int    // and of the large one; 0: 100,000
	bench.Plan
}

func (o Options) withDefaults() Options {
	for _, d := range []struct {
		field *int
		value int
	}{{&o.Senders, 64}, {&o.Few, 1000}, {&o.Many, 100_000}} {
		*d.field = cmp.Or(*d.field, d.value)
	}
	o.Plan = o.Plan.WithDefaults()
	return o
}

// run is what the figures share.
type run struct {
	Options
	ctx  context.Context
	file *journalbench.Floor
}

// Run measures every figure.
func Run(ctx context.Context, o Options) (report bench.Report, err error) {
	r := &run{Options: o.withDefaults(), ctx: ctx}
	if r.Dir == "" {
		if r.Dir, err = os.MkdirTemp("", "parley-bench-agh-"); err != nil {
			return report, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(r.Dir)) }()
	}
	report = bench.Report{Bench: "agh", Params: map[string]any{
		"envelope_bytes": len(sample), "senders": r.Senders, "in_flight": inFlight, "threads": []int{r.Few, r.Many},
		"seconds": r.Seconds, "rounds": r.Rounds, "go": runtime.Version(), "cpus": runtime.NumCPU(),
	}}
	if r.file, err = journalbench.OpenFloor(filepath.Join(r.Dir, "floor")); err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, r.file.Close()) }()
	for _, part := range []func() ([]bench.Figure, error){r.validation, r.sends, r.threads} {
		figures, err := part()
		report.Figures = append(report.Figures, figures...)
		if err != nil {
			return report, err
		}
	}
	return report, nil
}

// contests runs some, in order.
func (r *run) contests(list ...bench.Contest) (figures []bench.Figure, err error) {
	for _, c := range list {
		f, err := c.Run(r.ctx, r.Plan)
		if err != nil {
			return figures, err
		}
		figures = append(figures, f)
	}
	return figures, nil
}
