package journalbench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/parley-hub/parley/internal/bench"
	"github.com/parley-hub/parley/journal/disk"
)

func TestQuick(t *testing.T) {
	if os.Getenv("QUICK") == "" {
		t.Skip()
	}
	dir := t.TempDir()
	e, err := disk.Open(filepath.Join(dir, "data"), disk.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	fl, err := newFloor(filepath.Join(dir, "floor"))
	if err != nil {
		t.Fatal(err)
	}
	defer fl.close()
	data := payloads()
	var figures []bench.Figure
	for _, n := range []int{1, 64, 256} {
		c := bench.Contest{Name: fmt.Sprint("append ", n), Unit: "1/s", Better: bench.Higher, Target: new(0.45),
			Ours: func(ctx context.Context, d time.Duration) (bench.Sample, error) {
				return load(ctx, d, n, appender(e, "log", data, n))
			},
			Floor: func(ctx context.Context, d time.Duration) (bench.Sample, error) {
				return load(ctx, d, n, func(_ context.Context, _, i int) error { return fl.append(data[i%64]) })
			},
		}
		before := e.Stats()
		f, err := c.Run(t.Context(), bench.Plan{Seconds: 6})
		if err != nil {
			t.Fatal(err)
		}
		after := e.Stats()
		fmt.Println("syncs/append", float64(after.Syncs-before.Syncs)/float64(after.Batches-before.Batches))
		figures = append(figures, f)
	}
	bench.Report{Figures: figures}.Table(os.Stdout)
}
