package hubbench_test

import (
	"strings"
	"testing"

	"github.com/parley-hub/parley/internal/bench"
	"github.com/parley-hub/parley/internal/bench/hubbench"
)

// A short run yields every figure; what they say is for parley bench.
func TestRun(t *testing.T) {
	t.Parallel()
	report, err := hubbench.Run(t.Context(), hubbench.Options{
		Dir: t.TempDir(), Posters: 4, Channels: 100, Plan: bench.Plan{Seconds: 0.1},
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(report.Figures); n < 13 {
		t.Errorf("%d figures: %+v", n, report.Figures)
	}
	for _, f := range report.Figures {
		if strings.HasPrefix(f.Name, "channels loaded") && f.Ours != 10 {
			t.Errorf("%s: %v", f.Name, f.Ours)
		}
	}
}
