package hpdbench_test

import (
	"testing"

	"github.com/parley-hub/parley/internal/bench"
	"github.com/parley-hub/parley/internal/bench/hpdbench"
)

// A short run yields every figure; what they say is for parley bench.
func TestRun(t *testing.T) {
	t.Parallel()
	report, err := hpdbench.Run(t.Context(), hpdbench.Options{Dir: t.TempDir(), Readers: 3, Runs: 4, Deltas: 1000, Plan: bench.Plan{Seconds: 0.1}})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(report.Figures); n != 11 {
		t.Errorf("%d figures: %+v", n, report.Figures)
	}
	targets := 0
	for _, f := range report.Figures {
		if f.Ratio == nil || *f.Ratio <= 0 {
			t.Errorf("%+v", f)
		}
		if f.Target != nil {
			targets++
		}
	}
	if targets != 9 {
		t.Errorf("%d figures have a target", targets)
	}
}
