package cluster

import (
	"context"
	"errors"
	"time"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/cluster/internal/frame"
	"github.com/parley-hub/parley/journal/cluster/port"
)

// Bounds of following a log.
const (
	tailQueue    = 256 // messages that wait to be applied; more are read again later
	missingTries = 10  // looks for a message before it is missing
)

// firstWait is how long a look that found nothing waits for the next.
func (s *shard) firstWait() time.Duration { return s.opts.Poll / 20 }

// longestWait is how long it waits at most, and so do others after trouble.
func (s *shard) longestWait() time.Duration { return s.opts.Poll / 2 }

// run follows the log until ctx ends. Trouble fails the shard closed; it is
// looked at again, because a log can be repaired.
func (s *shard) run(ctx context.Context) {
	for ctx.Err() == nil {
		err := s.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		s.setTrouble(err)
		s.opts.Logger.Error("a shard's log is not followed", "shard", s.n, "error", err)
		if errors.Is(err, journal.ErrDamaged) {
			_ = s.copy.Exclusively(ctx, func() error { s.resign(""); return nil })
		}
		select {
		case <-time.After(s.longestWait()):
		case <-ctx.Done():
		}
	}
}

// follow attaches to the log, catches up, and applies what comes.
func (s *shard) follow(ctx context.Context) error {
	queue := make(chan port.Message, tailQueue)
	stop, err := s.log.Tail(s.n, func(m port.Message) {
		select {
		case queue <- m:
		default:
			s.nudge()
		}
	})
	if err != nil {
		return err
	}
	defer stop()
	state, err := s.attach(ctx)
	if err != nil {
		return err
	}
	if err := s.fill(ctx, state.Last); err != nil {
		return err
	}
	s.setTrouble(nil)
	s.nudge()
	ticker := time.NewTicker(s.opts.Poll)
	defer ticker.Stop()
	for {
		select {
		case m := <-queue:
			err = s.pushed(ctx, m)
		case <-s.nudged:
			err = s.toEnd(ctx)
		case <-ticker.C:
			err = s.toEnd(ctx)
		case <-ctx.Done():
			return ctx.Err()
		}
		if err != nil {
			return err
		}
	}
}

// attach checks that the copy is one of this log.
func (s *shard) attach(ctx context.Context) (port.State, error) {
	var state port.State
	err := s.retried(ctx, func() (err error) {
		if state, err = s.log.State(ctx, s.n); err != nil {
			return err
		}
		return s.copy.Exclusively(ctx, func() error { return s.compare(ctx, state) })
	})
	return state, err
}

// retried tries again what damage was found by: an answer may be that of a
// server which is behind.
func (s *shard) retried(ctx context.Context, look func() error) error {
	wait := s.firstWait()
	for n := 1; ; n++ {
		err := look()
		if err == nil || !errors.Is(err, journal.ErrDamaged) || n == missingTries {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		wait = min(2*wait, s.longestWait())
	}
}

// compare compares the log with the copy's place, and moves the cursor there; on
// the committer.
func (s *shard) compare(ctx context.Context, state port.State) error {
	at := s.copy.At()
	if state.Shards != s.opts.Shards {
		return errors.New("the cluster has another number of shards than this node was told")
	}
	if state.Epoch != at.Epoch {
		return &EpochError{Shard: s.n, Log: state.Epoch, Copy: at.Epoch}
	}
	if s.term != nil && state.ID == at.Log {
		return nil // it knows better
	}
	if at.Seq == 0 {
		if state.First > 1 {
			return &BehindError{Shard: s.n, First: state.First, Offset: s.copy.Offset()}
		}
		at.Log = state.ID
		s.parts.Reset()
		s.move(cursor{})
		return s.copy.Move(at)
	}
	switch {
	case state.ID != at.Log:
		return &ReplacedError{Shard: s.n}
	case state.Last < at.Seq:
		return &WentBackError{Shard: s.n, Last: state.Last, Applied: at.Seq}
	case state.First > at.Seq:
		return &BehindError{Shard: s.n, First: state.First, Offset: s.copy.Offset()}
	}
	messages, err := s.log.Read(ctx, s.n, at.Seq)
	if err != nil {
		return err
	}
	if len(messages) == 0 || messages[0].Seq != at.Seq {
		return &MissingError{Shard: s.n, Seq: at.Seq}
	}
	if m, err := frame.Decode(messages[0].Data); err != nil || m.Chain != at.Chain {
		return &ChainError{Shard: s.n, Seq: at.Seq}
	}
	s.parts.Reset()
	s.move(cursor{at.Seq, at.Chain, at.Term})
	return nil
}

// pushed takes a message that was just stored. Who leads wrote it itself, apart
// from fences.
func (s *shard) pushed(ctx context.Context, m port.Message) error {
	if m.Seq <= s.seen.Load() {
		return nil
	}
	if mine, _, _ := s.leader(); mine && frame.KindOf(m.Data) != frame.Fence {
		return nil // the next look at the end finds what it is
	}
	if err := s.fill(ctx, m.Seq-1); err != nil {
		return err
	}
	return s.give(ctx, m)
}

// toEnd reads the log to its end.
func (s *shard) toEnd(ctx context.Context) error {
	state, err := s.log.State(ctx, s.n)
	if err != nil {
		return nil //nolint:nilerr // nobody answers: the next look may be luckier
	}
	if state.Last < s.seen.Load() {
		_, err := s.attach(ctx)
		return err
	}
	return s.fill(ctx, state.Last)
}

// reach waits until the log was applied up to a sequence.
func (s *shard) reach(ctx context.Context, seq uint64) error {
	s.nudge()
	wait := time.Millisecond
	for s.seen.Load() < seq || s.troubled() != nil {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), s.troubled())
		}
		wait = min(2*wait, 20*time.Millisecond)
	}
	return nil
}

// fill reads what is missing up to a sequence and applies it. A message that
// nobody has is not skipped.
func (s *shard) fill(ctx context.Context, upTo uint64) error {
	tries, wait := 0, s.firstWait()
	for s.seen.Load() < upTo {
		from := s.seen.Load() + 1
		messages, err := s.log.Read(ctx, s.n, from)
		if err == nil && len(messages) > 0 && messages[0].Seq <= from {
			if err := s.give(ctx, messages...); err != nil {
				return err
			}
			tries, wait = 0, s.firstWait()
			continue
		}
		if err == nil { // somebody answered, and does not have it
			if tries++; tries == missingTries {
				return &MissingError{Shard: s.n, Seq: from}
			}
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		wait = min(2*wait, s.longestWait())
	}
	return nil
}

// give applies consecutive messages; a hole among them ends them.
func (s *shard) give(ctx context.Context, messages ...port.Message) error {
	return s.copy.Exclusively(ctx, func() error {
		for _, m := range messages {
			if m.Seq > s.at.seq+1 {
				return nil
			}
			if err := s.receive(m); err != nil {
				return err
			}
		}
		return nil
	})
}
