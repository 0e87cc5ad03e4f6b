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

// firstWait is how long a read that found nothing waits before the next.
func (s *shard) firstWait() time.Duration { return s.opts.Poll / 20 }

// longestWait bounds that wait, and the wait after an error.
func (s *shard) longestWait() time.Duration { return s.opts.Poll / 2 }

// run follows the log until ctx ends. An error fails the shard closed. The log is read
// again later, because it can be repaired.
func (s *shard) run(ctx context.Context) {
	for ctx.Err() == nil {
		err := s.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		s.setTrouble(err)
		s.opts.Logger.Error("a shard's log is not followed", "shard", s.n, "error", err)
		switch {
		case errors.Is(err, journal.ErrDamaged):
			_ = s.store().Exclusively(ctx, func() error { s.resign(""); return nil })
		case !errors.Is(err, port.ErrUnfit):
			s.log.Elsewhere(s.n)
		}
		if s.mend(ctx, err) {
			continue
		}
		select {
		case <-time.After(s.longestWait()):
		case <-ctx.Done():
		}
	}
}

// mend replaces the copy by that of another node if that resolves the error, and
// reports whether it did.
func (s *shard) mend(ctx context.Context, trouble error) bool {
	var err error
	switch {
	case s.replacing(): // it was closed, and could not be opened
		err = s.open()
	case s.opts.Fetch != nil && needsCopy(trouble):
		s.asked = true
		err = s.takeCopy(ctx)
	default:
		return false
	}
	if err != nil && ctx.Err() == nil {
		s.opts.Logger.Warn("a copy could not be replaced", "shard", s.n, "error", err)
	}
	return err == nil
}

// follow attaches to the log, catches up, and applies what comes.
func (s *shard) follow(ctx context.Context) error {
	pushes := tail{shard: s, queue: make(chan port.Message, tailQueue)}
	defer pushes.end()
	if err := pushes.begin(); err != nil {
		return err
	}
	state, err := s.attach(ctx)
	if err != nil {
		return err
	}
	if s.opts.Fetch != nil && !s.asked && s.seen.Load() == 0 && state.Last > longRead {
		return errNew
	}
	if err := s.fill(ctx, state.Last); err != nil {
		return err
	}
	s.setTrouble(nil)
	s.nudge()
	ticker := time.NewTicker(s.opts.Poll)
	defer ticker.Stop()
	for {
		mine, _, changed := s.leader()
		if mine {
			pushes.end()
		} else if err := pushes.begin(); err != nil {
			return err
		}
		select {
		case m := <-pushes.queue:
			err = s.pushed(ctx, m)
		case <-s.nudged:
			err = s.toEnd(ctx)
		case <-ticker.C:
			err = s.toEnd(ctx)
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err != nil {
			return err
		}
	}
}

// tail is what the log pushes. Who leads has no use for it: it would get everything
// back that it writes. That another leads it learns from the next slot, from beats, and
// from its looks at the end of the log.
type tail struct {
	shard *shard
	queue chan port.Message
	stop  func() // nil: nothing is pushed
}

// begin has new messages pushed, and the end of the log looked at: some may have come
// before.
func (t *tail) begin() (err error) {
	if t.stop != nil {
		return nil
	}
	t.stop, err = t.shard.log.Tail(t.shard.n, func(m port.Message) {
		select {
		case t.queue <- m:
		default:
			t.shard.nudge()
		}
	})
	t.shard.nudge()
	return err
}

func (t *tail) end() {
	if t.stop != nil {
		t.stop()
		t.stop = nil
	}
}

// attach checks that the copy is one of this log.
func (s *shard) attach(ctx context.Context) (port.State, error) {
	var state port.State
	err := s.retried(ctx, func() (err error) {
		if state, err = s.log.State(ctx, s.n); errors.Is(err, port.ErrNoLog) {
			return &GoneError{Shard: s.n}
		} else if err != nil {
			return err
		}
		return s.store().Exclusively(ctx, func() error { return s.compare(ctx, state) })
	})
	return state, err
}

// retried reads again what appeared to be damaged, because the answer may come from a
// server that is behind.
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
	at := s.store().At()
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
			return &BehindError{Shard: s.n, First: state.First, Offset: s.store().Offset()}
		}
		at.Log = state.ID
		s.parts.Reset()
		s.move(cursor{})
		return s.store().Move(at)
	}
	switch {
	case state.ID != at.Log:
		return &ReplacedError{Shard: s.n}
	case state.Last < at.Seq:
		return &WentBackError{Shard: s.n, Last: state.Last, Applied: at.Seq}
	case state.First > at.Seq+1:
		return &BehindError{Shard: s.n, First: state.First, Offset: s.store().Offset()}
	case state.First > at.Seq: // the next message has to follow what the copy has
		s.parts.Reset()
		s.move(cursor{at.Seq, at.Chain, at.Term})
		return nil
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
	return s.give(ctx, s.prepare([]port.Message{m}))
}

// toEnd reads the log to its end.
func (s *shard) toEnd(ctx context.Context) error {
	state, err := s.log.State(ctx, s.n)
	if errors.Is(err, port.ErrUnfit) {
		return err
	}
	if err != nil && !errors.Is(err, port.ErrNoLog) {
		s.log.Elsewhere(s.n)
		return nil // nobody answers: the next look may be luckier
	}
	s.noteQuorum(!state.NoQuorum)
	if err != nil || state.Last < s.seen.Load() {
		_, err := s.attach(ctx)
		return err
	}
	return s.fill(ctx, state.Last)
}

// noteQuorum notes whether the log's servers have a quorum.
func (s *shard) noteQuorum(have bool) {
	if have {
		s.poor.Store(0)
	} else {
		s.poor.CompareAndSwap(0, time.Now().UnixNano())
	}
}

// reach waits until the log was applied up to a sequence.
func (s *shard) reach(ctx context.Context, seq uint64) error {
	s.nudge()
	wait := time.Millisecond
	for s.seen.Load() < seq || s.troubled() != nil {
		select {
		case <-time.After(wait):
		case <-s.ending:
			return journal.ErrClosed
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), s.troubled())
		}
		wait = min(2*wait, 20*time.Millisecond)
	}
	return nil
}

// fill reads what is missing up to a sequence and applies it, and reads on
// meanwhile. A message that nobody has is not skipped.
func (s *shard) fill(ctx context.Context, upTo uint64) error {
	ahead := reader{shard: s}
	defer ahead.stop()
	tries, wait := 0, s.firstWait()
	for s.seen.Load() < upTo {
		from := s.seen.Load() + 1
		messages, err := ahead.read(ctx, from)
		if err == nil && len(messages) > 0 && messages[0].Seq <= from {
			if last := messages[len(messages)-1].Seq; last < upTo {
				ahead.begin(ctx, last+1)
			}
			if err := s.give(ctx, messages); err != nil {
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

// reader reads a shard's log, one read ahead of what is asked for, and prepares it.
type reader struct {
	shard  *shard
	from   uint64          // of the read that was begun
	got    chan readAnswer // nil: none was
	cancel context.CancelFunc
}

type readAnswer struct {
	messages []prepared
	err      error
}

// begin begins to read.
func (r *reader) begin(ctx context.Context, from uint64) {
	r.stop()
	ctx, r.cancel = context.WithCancel(ctx)
	got := make(chan readAnswer, 1)
	r.from, r.got = from, got
	go func() {
		messages, err := r.now(ctx, from)
		got <- readAnswer{messages, err}
	}()
}

func (r *reader) now(ctx context.Context, from uint64) ([]prepared, error) {
	messages, err := r.shard.log.Read(ctx, r.shard.n, from)
	return r.shard.prepare(messages), err
}

// read returns messages from a sequence on, as Log.Read does.
func (r *reader) read(ctx context.Context, from uint64) ([]prepared, error) {
	if r.got == nil || r.from != from {
		r.stop()
		return r.now(ctx, from)
	}
	answer := <-r.got
	r.cancel()
	r.got = nil
	return answer.messages, answer.err
}

// stop ends a read that nobody asks for any more.
func (r *reader) stop() {
	if r.got != nil {
		r.cancel()
		<-r.got
		r.got = nil
	}
}

// give applies consecutive messages; a hole among them ends them. Groups that follow
// each other are written together.
func (s *shard) give(ctx context.Context, messages []prepared) error {
	return s.store().Exclusively(ctx, func() (err error) {
		s.gathering = true
		for i := range messages {
			if messages[i].Seq > s.at.seq+1 {
				break
			}
			if err = s.receive(&messages[i]); err != nil {
				break
			}
		}
		s.gathering = false
		if flushed := s.store().Flush(); flushed != nil {
			return errors.Join(err, flushed)
		}
		s.move(s.at)
		return err
	})
}
