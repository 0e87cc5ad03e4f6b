//go:build !race

// A siege is bound by time, and the race detector slows hub and attackers alike.

package main

import (
	"strings"
	"testing"

	"github.com/parley-hub/parley/internal/bench"
	"github.com/parley-hub/parley/internal/bench/siegebench"
)

// A small siege on real processes loses nothing and stays within its bounds;
// how fast honest clients are is for parley bench.
func TestBenchSiege(t *testing.T) {
	t.Parallel()
	report, err := siegebench.Run(t.Context(), siegebench.Options{
		Hub: siegeHub("parley"), Floor: benchFloor("parley"), Dir: t.TempDir(), Scale: 20, Plan: bench.Plan{Seconds: 24},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Figures) != 3 {
		t.Fatalf("the figures are %+v", report.Figures)
	}
	if lost := report.Figures[0]; !lost.OK || lost.Ours != 0 {
		t.Errorf("%+v", lost)
	}
	if rate := report.Figures[1]; rate.Ours <= 0 || *rate.Floor <= 0 {
		t.Errorf("%+v", rate)
	}
	if memory := report.Figures[2]; !memory.OK || memory.Ours <= 0 {
		t.Errorf("%+v", memory)
	}
	if len(report.Notes) != 1 || !strings.Contains(report.Notes[0], "2 × [idle hub") {
		t.Errorf("the notes are %q", report.Notes)
	}
}
