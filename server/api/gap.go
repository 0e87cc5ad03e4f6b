package api

import (
	"context"
	"errors"

	"github.com/parley-hub/parley/hub"
)

// gapError is a gap with the position to start again from.
type gapError struct {
	error
	head string
}

func (g gapError) Unwrap() error   { return g.error }
func (g gapError) Restart() string { return g.head }

// placed adds the position to start again from to a gap. There is none if the whole
// log is gone.
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

// acrossGaps streams from a follower of all channels. It reports a gap to the reader
// and continues from the head.
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
