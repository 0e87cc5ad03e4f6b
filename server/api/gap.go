package api

import (
	"context"
	"errors"

	"github.com/parley-hub/parley/hub"
)

// gapError is a gap with where to start again.
type gapError struct {
	error
	head string
}

func (g gapError) Unwrap() error   { return g.error }
func (g gapError) Restart() string { return g.head }

// placed tells the problem of a gap where to start again. A log that is gone
// altogether has no such place.
func placed(err error) error {
	var one *hub.Gap
	var wide *hub.WideGap
	switch {
	case errors.As(err, &one) && !one.Head.IsZero():
		return gapError{err, one.Head.String()}
	case errors.As(err, &wide):
		return gapError{err, wide.Head.String()}
	}
	return err
}

// acrossGaps streams what a follower of all channels yields. A gap is told to the
// reader, and the stream goes on from its head.
func acrossGaps[F interface{ Close() }](a *API, c *call, after hub.WidePosition,
	follow func(context.Context, hub.WidePosition) (F, error), run func(context.Context, stream, F) error,
) error {
	f, err := follow(c.Context(), after)
	if err != nil {
		return err
	}
	defer func() { f.Close() }()
	s, ctx, done, err := a.stream(c)
	if err != nil {
		return err
	}
	defer done()
	for {
		gap, ok := errors.AsType[*hub.WideGap](run(ctx, s, f))
		if !ok {
			return nil
		}
		if s.json(gap.Head.String(), "gap", gapBody{Reason: gap.Reason, Head: gap.Head.String()}) != nil {
			return nil
		}
		next, err := follow(ctx, gap.Head)
		if err != nil {
			return nil
		}
		f.Close()
		f = next
	}
}
