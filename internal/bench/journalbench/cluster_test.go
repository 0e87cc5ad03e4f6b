package journalbench_test

import (
	"os"
	"testing"

	"github.com/parley-hub/parley/internal/bench"
	"github.com/parley-hub/parley/internal/bench/journalbench"
)

func TestMain(m *testing.M) {
	journalbench.ServeChild()
	os.Exit(m.Run())
}

// TestRunCluster runs the whole bench, short, with servers and a leader that are
// killed.
func TestRunCluster(t *testing.T) {
	t.Parallel()
	report, err := journalbench.RunCluster(t.Context(), journalbench.ClusterOptions{
		Dir: t.TempDir(), Plan: bench.Plan{Seconds: 0.01}, Kills: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Figures) != 11 {
		t.Errorf("%d figures", len(report.Figures))
	}
	reported := 0
	for _, f := range report.Figures {
		if f.Target == nil {
			reported++
		}
		if f.Ours <= 0 || f.Ratio == nil || reported > 1 { // one says what the log allows
			t.Errorf("got %+v", f)
		}
	}
}
