package journalbench

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/parley-hub/parley/internal/bench"
)

func TestAll(t *testing.T) {
	if os.Getenv("PROF") == "" {
		t.Skip()
	}
	var size, secs float64
	fmt.Sscan(os.Getenv("PROF"), &size, &secs)
	rep, err := Run(context.Background(), Options{Size: size, Plan: bench.Plan{Seconds: secs}})
	rep.Table(os.Stdout)
	fmt.Println(err)
}

func TestOpens(t *testing.T) {
	if os.Getenv("PROF") == "" {
		t.Skip()
	}
	var size, secs float64
	fmt.Sscan(os.Getenv("PROF"), &size, &secs)
	r := &run{ctx: context.Background(), dir: t.TempDir(), data: payloads(), opts: Options{Size: size, Plan: bench.Plan{Seconds: secs}.WithDefaults()}}
	figs, err := r.opens()
	bench.Report{Figures: figs}.Table(os.Stdout)
	fmt.Println(err)
}

func TestTrace(t *testing.T) {
	if os.Getenv("PROF") == "" {
		t.Skip()
	}
	r := &run{ctx: context.Background(), dir: t.TempDir(), data: payloads()}
	if err := r.prepare(r.path("s"), 10000); err != nil {
		t.Fatal(err)
	}
	if err := r.kill(r.path("s"), r.path("k")); err != nil {
		t.Fatal(err)
	}
	os.RemoveAll("/tmp/killed")
	copyTree(r.path("k"), "/tmp/killed")
	for range 6 {
		s, err := r.openingKilled(r.path("k"))(r.ctx, 0)
		fmt.Println("MARKER open took", s.Value, err)
	}
}
