package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// MinRounds is the least number of rounds a timed figure is made of.
const MinRounds = 15

// noisyAbove is the spread of the floor, p90 over p10, beyond which a run says
// nothing.
const noisyAbove = 2.5

// Sample is what one side did in one round.
type Sample struct {
	Value    float64       // in the figure's unit
	P50, P99 time.Duration // of one operation, where that means something
}

// Side runs for about a duration and reports what it did.
type Side func(ctx context.Context, d time.Duration) (Sample, error)

// Contest compares ours with a floor: in every round both run, in random
// order, and the figure is the median of the rounds' ratios.
type Contest struct {
	Name   string
	Unit   string
	Better Better
	Target *float64 // for the ratio; nil only reports
	Ours   Side
	Floor  Side
}

// Plan is how a bench is run.
type Plan struct {
	Seconds float64 // for each figure; 0: 15
	Rounds  int     // at least MinRounds; 0: MinRounds
	Seed    uint64  // of the order; 0: from the clock
	// Tell, if set, is called with what is being measured.
	Tell func(what string, done, total int)
}

// WithDefaults replaces zeros and bounds what is too small.
func (p Plan) WithDefaults() Plan {
	if p.Seconds <= 0 {
		p.Seconds = 15
	}
	p.Rounds = max(p.Rounds, MinRounds)
	if p.Seed == 0 {
		p.Seed = uint64(time.Now().UnixNano())
	}
	if p.Tell == nil {
		p.Tell = func(string, int, int) {}
	}
	return p
}

// Run runs the contest.
func (c Contest) Run(ctx context.Context, plan Plan) (Figure, error) {
	plan = plan.WithDefaults()
	order := rand.New(rand.NewPCG(plan.Seed, 0)) //nolint:gosec // an order needs no secrecy
	each := time.Duration(plan.Seconds / float64(2*plan.Rounds) * float64(time.Second))
	var ours, floor []Sample
	var ratios []float64
	for round := range plan.Rounds {
		plan.Tell(c.Name, round, plan.Rounds)
		a, b, err := c.round(ctx, each, order.IntN(2) == 0)
		if err != nil {
			return Figure{}, fmt.Errorf("%s: %w", c.Name, err)
		}
		ours, floor = append(ours, a), append(floor, b)
		ratios = append(ratios, a.Value/b.Value)
	}
	plan.Tell(c.Name, plan.Rounds, plan.Rounds)
	f := Figure{
		Name: c.Name, Unit: c.Unit, Better: c.Better, Target: c.Target,
		Ours:  Median(values(ours)),
		Floor: new(Median(values(floor))),
		Ratio: new(Median(ratios)),
		P50:   medianOf(ours, func(s Sample) time.Duration { return s.P50 }),
		P99:   medianOf(ours, func(s Sample) time.Duration { return s.P99 }),
		Noisy: Spread(values(floor)) > noisyAbove,
	}
	f.judge()
	return f, nil
}

func (c Contest) round(ctx context.Context, each time.Duration, oursFirst bool) (ours, floor Sample, err error) {
	if oursFirst {
		if ours, err = c.Ours(ctx, each); err != nil {
			return ours, floor, err
		}
	}
	if floor, err = c.Floor(ctx, each); err != nil {
		return ours, floor, fmt.Errorf("floor: %w", err)
	}
	if !oursFirst {
		ours, err = c.Ours(ctx, each)
	}
	if err == nil && (floor.Value <= 0 || ours.Value <= 0) {
		err = fmt.Errorf("measured %g against a floor of %g", ours.Value, floor.Value)
	}
	return ours, floor, err
}

func values(samples []Sample) []float64 {
	out := make([]float64, len(samples))
	for i, s := range samples {
		out[i] = s.Value
	}
	return out
}

func medianOf(samples []Sample, of func(Sample) time.Duration) time.Duration {
	list := make([]float64, len(samples))
	for i, s := range samples {
		list[i] = float64(of(s))
	}
	return time.Duration(Median(list))
}

// Median returns the median of some numbers; 0 of none.
func Median(list []float64) float64 { return Percentile(list, 50) }

// Spread returns p90 over p10.
func Spread(list []float64) float64 {
	low := Percentile(list, 10)
	if low == 0 {
		return 0
	}
	return Percentile(list, 90) / low
}

// Percentile returns a percentile of some numbers, between the two nearest.
func Percentile(list []float64, p float64) float64 {
	if len(list) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(list))
	at := p / 100 * float64(len(sorted)-1)
	low := int(at)
	if low+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[low] + (at-float64(low))*(sorted[low+1]-sorted[low])
}

// Latencies turns the durations of operations into p50 and p99.
func Latencies(list []time.Duration) (p50, p99 time.Duration) {
	if len(list) == 0 {
		return 0, 0
	}
	slices.Sort(list)
	return list[len(list)/2], list[len(list)*99/100]
}
