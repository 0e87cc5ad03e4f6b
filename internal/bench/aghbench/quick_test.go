package aghbench

import (
	"testing"

	"github.com/parley-hub/parley/internal/bench"
)

// A short run, so that the bench itself cannot rot.
func TestRunGivesItsFigures(t *testing.T) {
	t.Parallel()
	report, err := Run(t.Context(), Options{Plan: bench.Plan{Seconds: 0.01}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"validate an envelope", "validate an envelope, with the secret scan"}
	if report.Bench != "agh" || len(report.Figures) != len(want) {
		t.Fatalf("got %+v", report)
	}
	for i, f := range report.Figures {
		if f.Name != want[i] || f.Ours <= 0 || f.Ratio == nil || f.Better != bench.Lower {
			t.Errorf("got %+v", f)
		}
	}
	if *report.Figures[0].Target != 3 || report.Figures[1].Target != nil {
		t.Errorf("got %+v", report.Figures)
	}
}
