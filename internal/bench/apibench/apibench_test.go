package apibench_test

import (
	"testing"

	"github.com/parley-hub/parley/internal/bench"
	"github.com/parley-hub/parley/internal/bench/apibench"
)

// A short run yields every figure; what they say is for parley bench.
func TestRun(t *testing.T) {
	t.Parallel()
	report, err := apibench.Run(t.Context(), apibench.Options{Dir: t.TempDir(), Followers: 3, Plan: bench.Plan{Seconds: 0.1}})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(report.Figures); n != 6 {
		t.Errorf("%d figures: %+v", n, report.Figures)
	}
	for _, f := range report.Figures {
		if f.Ratio == nil || *f.Ratio <= 0 || f.Target == nil {
			t.Errorf("%+v", f)
		}
	}
}
