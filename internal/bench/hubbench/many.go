package hubbench

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/internal/bench"
)

// atOnce is how many envelopes are admitted together.
const atOnce = 64

// many compares envelopes that are admitted as one batch with as many posts
// that follow each other without waiting.
func many(ctx context.Context, o Options) (figures []bench.Figure, err error) {
	s, err := open(ctx, filepath.Join(o.Dir, "many"), hub.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	ch, err := s.channel(ctx, "conversation", nil)
	if err != nil {
		return nil, err
	}
	by := &hub.Caller{Agents: []string{s.a}}
	list := func() []*envelope.Envelope {
		made := make([]*envelope.Envelope, atOnce)
		for i := range made {
			made[i] = &envelope.Envelope{Channel: ch, Sender: s.a, Type: envelope.TypeText, Data: text}
		}
		return made
	}
	together64 := func(ctx context.Context, _ int) error {
		_, err := s.hub.AdmitAll(ctx, list(), by).Wait(ctx)
		return err
	}
	pipelined := func(ctx context.Context, _ int) error {
		var pending [atOnce]*hub.Pending
		for i, e := range list() {
			pending[i] = s.hub.Admit(ctx, e, by)
		}
		var err error
		for _, p := range pending {
			_, failed := p.Wait(ctx)
			err = errors.Join(err, failed)
		}
		return err
	}
	cost := func(op func(context.Context, int) error) bench.Side {
		return func(ctx context.Context, d time.Duration) (bench.Sample, error) {
			_, _, cpu, err := together(ctx, 1, d, op)
			return bench.Sample{Value: float64(cpu.Nanoseconds()) / 1000 / atOnce}, err
		}
	}
	f, err := bench.Contest{
		Name: "CPU for each of 64 envelopes admitted together, against 64 pipelined posts", Unit: "µs",
		Better: bench.Lower, Target: ptr(0.5), Ours: cost(together64), Floor: cost(pipelined),
	}.Run(ctx, o.Plan)
	return []bench.Figure{f}, err
}
