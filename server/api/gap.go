package api

import (
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
