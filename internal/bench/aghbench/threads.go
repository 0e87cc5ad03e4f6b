package aghbench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/parley-hub/parley/internal/bench"
)

// Targets of what many threads cost beside few.
const (
	maxFirstPage = 3.0
	maxReopening = 2.0
)

// threads compares a workspace of many threads with one of few: the first page
// of its list, and opening the hub.
func (r *run) threads() ([]bench.Figure, error) {
	few, many := filepath.Join(r.Dir, "few"), filepath.Join(r.Dir, "many")
	if err := errors.Join(r.fill(few, r.Few), r.fill(many, r.Many)); err != nil {
		return nil, err
	}
	figures, err := r.firstPage(few, many)
	if err != nil {
		return figures, err
	}
	opened, err := r.contests(bench.Contest{
		Name: fmt.Sprintf("open the hub with %d threads, against %d", r.Many, r.Few), Unit: "ms",
		Better: bench.Lower, Target: new(maxReopening), Ours: opening(many), Floor: opening(few),
	})
	return append(figures, opened...), err
}

// fill makes a site of so many threads, and closes it.
func (r *run) fill(dir string, n int) (err error) {
	s, err := open(r.ctx, dir, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	var wg sync.WaitGroup
	errs := make([]error, r.Senders)
	session, err := s.join(r.ctx, "hosted.h00")
	if err != nil {
		return err
	}
	for w := range r.Senders {
		wg.Go(func() {
			for i := w; i < n && errs[w] == nil; i += r.Senders {
				if w == 0 {
					r.Tell(fmt.Sprintf("making %d threads", n), i, n)
				}
				errs[w] = s.call(r.ctx, http.MethodPost, "/send", map[string]any{
					"session_id": session, "channel": dock, "surface": "thread", "thread_id": fmt.Sprintf("thread_%06d", i), "body": map[string]string{"text": text},
				}, nil)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (r *run) firstPage(few, many string) (_ []bench.Figure, err error) {
	small, err := open(r.ctx, few, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, small.close()) }()
	large, err := open(r.ctx, many, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, large.close()) }()
	page := func(s *site) bench.Side {
		return bench.Timed(func() error {
			return s.call(r.ctx, http.MethodGet, "/channels/"+dock+"/threads?limit=50", nil, nil)
		})
	}
	return r.contests(bench.Contest{
		Name: fmt.Sprintf("first page of %d threads, against %d", r.Many, r.Few), Unit: "µs",
		Better: bench.Lower, Target: new(maxFirstPage), Ours: page(large), Floor: page(small),
	})
}

// opening measures opening a hub that was closed cleanly.
func opening(dir string) bench.Side {
	return func(ctx context.Context, _ time.Duration) (bench.Sample, error) {
		start := time.Now()
		s, err := open(ctx, dir, false)
		if err != nil {
			return bench.Sample{}, err
		}
		took := time.Since(start)
		return bench.Sample{Value: float64(took) / float64(time.Millisecond)}, s.close()
	}
}
