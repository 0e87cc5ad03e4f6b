package aghbench

import (
	"strings"
	"testing"

	"github.com/parley-hub/parley/internal/bench"
)

// A short run shows that the bench works.
func TestRunGivesItsFigures(t *testing.T) {
	t.Parallel()
	report, err := Run(t.Context(), Options{Plan: bench.Plan{Seconds: 0.01}, Dir: t.TempDir(), Senders: 2, Few: 5, Many: 10})
	if err != nil {
		t.Fatal(err)
	}
	want := []struct {
		name   string
		better bench.Better
		target float64 // 0: none
	}{
		{"validate an envelope", bench.Lower, 3},
		{"validate an envelope, with the secret scan", bench.Lower, 0},
		{"durable messages over NATS", bench.Higher, 0.15},
		{"durable sends over HTTP", bench.Higher, 0.4},
		{"threads opened by their first message", bench.Higher, 0.2},
		{"first page of 10 threads, against 5", bench.Lower, 3},
		{"open the hub with 10 threads, against 5", bench.Lower, 2},
	}
	if report.Bench != "agh" || len(report.Figures) != len(want) {
		t.Fatalf("got %+v", report)
	}
	for i, f := range report.Figures {
		if !strings.HasPrefix(f.Name, want[i].name) || f.Ours <= 0 || f.Ratio == nil || f.Better != want[i].better {
			t.Errorf("got %+v", f)
		}
		if f.Target == nil != (want[i].target == 0) || f.Target != nil && *f.Target != want[i].target {
			t.Errorf("the target of %s is %v", f.Name, f.Target)
		}
	}
}
