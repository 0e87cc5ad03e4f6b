package bench_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/internal/bench"
)

// steady returns the given values in turn.
func steady(values ...float64) bench.Side {
	n := 0
	return func(context.Context, time.Duration) (bench.Sample, error) {
		n++
		return bench.Sample{Value: values[(n-1)%len(values)], P50: time.Millisecond, P99: 2 * time.Millisecond}, nil
	}
}

func TestAFigureIsTheMedianOfRatios(t *testing.T) {
	t.Parallel()
	f, err := bench.Contest{
		Name: "x", Unit: "1/s", Better: bench.Higher, Target: new(0.5),
		Ours: steady(50, 60, 1000), Floor: steady(100, 100, 100),
	}.Run(t.Context(), bench.Plan{Seconds: 0.001})
	if err != nil {
		t.Fatal(err)
	}
	want := bench.Figure{
		Name: "x", Ours: 60, Floor: new(100.0), Unit: "1/s", Ratio: new(0.6), Target: new(0.5), Better: bench.Higher, OK: true,
		P50: time.Millisecond, P99: 2 * time.Millisecond,
	}
	if diff := cmp.Diff(want, f); diff != "" {
		t.Error(diff)
	}
}

func TestTargetsAndNoise(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		better  bench.Better
		target  *float64
		ours    bench.Side
		floor   bench.Side
		ok      bool
		noisy   bool
		verdict bench.Verdict
	}{
		{"reached", bench.Higher, new(0.5), steady(50), steady(100), true, false, bench.Passed},
		{"missed", bench.Higher, new(0.6), steady(50), steady(100), false, false, bench.Missed},
		{"lower reached", bench.Lower, new(1.3), steady(130), steady(100), true, false, bench.Passed},
		{"lower missed", bench.Lower, new(1.3), steady(131), steady(100), false, false, bench.Missed},
		{"only reported", bench.Higher, nil, steady(1), steady(100), true, false, bench.Passed},
		{"missed in noise", bench.Higher, new(0.9), steady(50), steady(100, 300), false, true, bench.Noisy},
		{"reached in noise", bench.Higher, new(0.1), steady(50), steady(100, 300), true, true, bench.Passed},
		{"spread below the bound", bench.Higher, new(0.9), steady(50), steady(100, 249), false, false, bench.Missed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f, err := bench.Contest{Name: c.name, Better: c.better, Target: c.target, Ours: c.ours, Floor: c.floor}.
				Run(t.Context(), bench.Plan{Seconds: 0.001})
			if err != nil {
				t.Fatal(err)
			}
			if f.OK != c.ok || f.Noisy != c.noisy {
				t.Errorf("ok %v, noisy %v; want %v, %v", f.OK, f.Noisy, c.ok, c.noisy)
			}
			if got := (bench.Report{Figures: []bench.Figure{f}}).Check(); got != c.verdict {
				t.Errorf("the verdict is %d, want %d", got, c.verdict)
			}
		})
	}
	// A figure that certainly missed its target outweighs one that is too noisy.
	both := bench.Report{Figures: []bench.Figure{{Noisy: true}, {}}}
	if both.Check() != bench.Missed {
		t.Error("a missed figure beside a noisy one is not missed")
	}
}

func TestRoundsAreInterleavedInRandomOrder(t *testing.T) {
	t.Parallel()
	var order strings.Builder
	side := func(name string) bench.Side {
		return func(_ context.Context, d time.Duration) (bench.Sample, error) {
			order.WriteString(name)
			if d != 10*time.Millisecond {
				t.Errorf("a side runs for %v", d)
			}
			return bench.Sample{Value: 1}, nil
		}
	}
	told := 0
	_, err := bench.Contest{Name: "x", Ours: side("o"), Floor: side("f")}.
		Run(t.Context(), bench.Plan{Seconds: 0.3, Rounds: 3, Seed: 7, Tell: func(string, int, int) { told++ }})
	if err != nil {
		t.Fatal(err)
	}
	if len(order.String()) != 2*bench.MinRounds || told != bench.MinRounds+1 {
		t.Fatalf("%d runs, told %d times", len(order.String()), told)
	}
	of, fo := 0, 0
	for round := range bench.MinRounds {
		switch order.String()[2*round : 2*round+2] {
		case "of":
			of++
		case "fo":
			fo++
		default:
			t.Errorf("round %d runs one side twice", round)
		}
	}
	if of == 0 || fo == 0 {
		t.Errorf("the order is always the same: %s", order.String())
	}
}

func TestASideThatFailsEndsTheContest(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	fails := func(context.Context, time.Duration) (bench.Sample, error) { return bench.Sample{}, boom }
	for _, c := range []bench.Contest{
		{Name: "x", Ours: fails, Floor: steady(1)},
		{Name: "x", Ours: steady(1), Floor: fails},
		{Name: "x", Ours: steady(0), Floor: steady(1)},
	} {
		if _, err := c.Run(t.Context(), bench.Plan{Seconds: 0.001}); err == nil {
			t.Error("a contest with a side that fails has a figure")
		}
	}
}

func TestTheReportsShape(t *testing.T) {
	t.Parallel()
	counted := bench.Counted("syncs", 0.05, "syncs", new(0.1))
	if !counted.OK || bench.Counted("syncs", 0.2, "syncs", new(0.1)).OK {
		t.Error("a counted figure's target is for the number itself")
	}
	report := bench.Report{Bench: "journal", Params: map[string]any{"seconds": 1}, Figures: []bench.Figure{
		counted,
		{Name: "appends", Ours: 90, Floor: new(100.0), Unit: "1/s", Ratio: new(0.9), Better: bench.Higher, OK: true, P50: time.Millisecond},
	}}
	var out bytes.Buffer
	if err := report.JSON(&out); err != nil {
		t.Fatal(err)
	}
	want := `{"bench":"journal","params":{"seconds":1},"figures":[` +
		`{"name":"syncs","ours":0.05,"floor":null,"unit":"syncs","ratio":null,"target":0.1,"better":"lower","ok":true},` +
		`{"name":"appends","ours":90,"floor":100,"unit":"1/s","ratio":0.9,"target":null,"better":"higher","ok":true}]}` + "\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	out.Reset()
	if err := report.Table(&out); err != nil {
		t.Fatal(err)
	}
	for _, fragment := range []string{"FIGURE", "P50", "P99", "RATIO", "syncs", "0.0500", "≤ 0.1", "0.900", "1ms"} {
		if !strings.Contains(out.String(), fragment) {
			t.Errorf("the table lacks %q:\n%s", fragment, out.String())
		}
	}
}

func TestPercentiles(t *testing.T) {
	t.Parallel()
	list := []float64{5, 1, 4, 2, 3}
	for p, want := range map[float64]float64{0: 1, 50: 3, 100: 5, 25: 2, 10: 1.4} {
		if got := bench.Percentile(list, p); math.Abs(got-want) > 1e-9 {
			t.Errorf("p%g is %g, want %g", p, got, want)
		}
	}
	if bench.Median(nil) != 0 || bench.Spread([]float64{2, 2, 2}) != 1 {
		t.Error("median of nothing, spread of equals")
	}
	p50, p99 := bench.Latencies([]time.Duration{3, 1, 2})
	if p50 != 2 || p99 != 3 {
		t.Errorf("p50 %d, p99 %d", p50, p99)
	}
}
