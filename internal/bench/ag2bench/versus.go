package ag2bench

import (
	"context"
	"time"

	"github.com/parley-hub/parley/internal/bench"
)

// limits are targets of one hub compared with another; nil only reports.
type limits struct{ latency, rate *float64 }

// scene is a measurement that can be made on any hub.
type scene interface {
	side(ctx context.Context, d time.Duration) (bench.Sample, error)
	close()
}

// versus measures the same on two hubs: ours, and the one it is compared with.
func (r *run) versus(what, ours, other string, l limits, fanOut bool) (figures []bench.Figure, err error) {
	type part struct {
		name, unit string
		better     bench.Better
		target     *float64
		set        func(url string) (scene, error)
	}
	parts := []part{
		{"post → delivered, p50, ", "µs", bench.Lower, l.latency, func(url string) (scene, error) { return converse(r.ctx, url) }},
		{"pipelined admissions, ", "1/s", bench.Higher, l.rate, func(url string) (scene, error) { return r.posters(url) }},
	}
	if fanOut {
		parts = append(parts, part{"fan-out, ", "deliveries/s", bench.Higher, l.rate, func(url string) (scene, error) { return r.talk(url) }})
	}
	for _, p := range parts {
		mine, err := p.set(ours)
		if err != nil {
			return figures, err
		}
		theirs, err := p.set(other)
		if err != nil {
			mine.close()
			return figures, err
		}
		f, err := r.contest(bench.Contest{
			Name: p.name + what, Unit: p.unit, Better: p.better, Target: p.target, Ours: mine.side, Floor: theirs.side,
		})
		mine.close()
		theirs.close()
		figures = append(figures, f...)
		if err != nil {
			return figures, err
		}
	}
	return figures, nil
}

// against compares with the other hub, if one was named.
func (r *run) against() ([]bench.Figure, error) {
	if r.Against == "" {
		return nil, nil
	}
	return r.versus("against "+r.Against, r.hub.Socket(), r.Against, limits{}, false)
}
