package cluster

import (
	"errors"
	"fmt"
	"time"
)

var errNoQuorum = errors.New("too few of its servers reach each other, or have space")

// noteQuorum records why the log's servers cannot store anything; nil: they can.
func (s *shard) noteQuorum(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.silence = why; why == nil {
		s.poor.Store(0)
	} else {
		s.poor.CompareAndSwap(0, time.Now().UnixNano())
	}
}

// quiet returns an error if no quorum of the log's servers has answered for slowPublish.
func (s *shard) quiet() error {
	for _, at := range []int64{s.poor.Load(), s.since.Load()} {
		if at == 0 || time.Since(time.Unix(0, at)) <= slowPublish {
			continue
		}
		err := fmt.Errorf("shard %d: no quorum of the log's servers has answered since %v", s.n, time.Unix(0, at).UTC().Format(time.RFC3339))
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.silence != nil {
			err = fmt.Errorf("%w: %w", err, s.silence)
		}
		return err
	}
	return nil
}
