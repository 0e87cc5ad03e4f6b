package cluster

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/cluster/internal/frame"
	"github.com/parley-hub/parley/journal/cluster/port"
)

// Bounds of following a log.
const (
	tailQueue    = 256 // messages waiting to be applied; further ones are read from the log later
	missingTries = 10  // reads of a message before it counts as missing
)

// pushPause is the least time between two writes of pushed messages. Several groups
// that are written together cost half as much processor time as the same groups alone.
// A message that is pushed after a longer time is written at once.
const pushPause = 10 * time.Millisecond

// firstWait returns how long to wait after a read that found nothing.
func (s *shard) firstWait() time.Duration { return s.opts.Poll / 20 }

// longestWait returns the bound of that wait, and the wait after an error.
func (s *shard) longestWait() time.Duration { return s.opts.Poll / 2 }

// run follows the log until ctx ends. An error fails the shard closed; run tries again
// later, because the log can be repaired.
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
	case s.replacing(): // the copy was closed, and could not be opened again
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

// follow attaches to the log, catches up, and applies new messages.
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
			err = s.pushed(ctx, pushes.waiting(ctx, m))
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

// tail is the subscription to new messages of the log. A leader does not subscribe,
// because it would receive everything that it writes. It learns that another node leads
// from the next slot, from beats, and from reads of the end of the log.
type tail struct {
	shard *shard
	queue chan port.Message
	stop  func() // nil: nothing is pushed
	taken time.Time
}

// begin subscribes to new messages, and requests a read of the end of the log, because
// some messages may have arrived before.
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

// waiting returns a message and those that were pushed after it, when pushPause has
// passed since it last returned.
func (t *tail) waiting(ctx context.Context, m port.Message) []port.Message {
	if d := pushPause - time.Since(t.taken); d > 0 {
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
	}
	t.taken = time.Now()
	all := []port.Message{m}
	for {
		select {
		case m := <-t.queue:
			all = append(all, m)
		default:
			return all
		}
	}
}

func (t *tail) end() {
	if t.stop != nil {
		t.stop()
		t.stop = nil
	}
}

// attach checks that the copy is a copy of this log.
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

// retried repeats look while it returns damage, because the answer may come from a
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

// compare compares the log with the copy's place, and moves the cursor there. It runs
// on the committer.
func (s *shard) compare(ctx context.Context, state port.State) error {
	at := s.store().At()
	if state.Shards != s.opts.Shards {
		return errors.New("the cluster has another number of shards than this node was told")
	}
	if state.Epoch != at.Epoch {
		return &EpochError{Shard: s.n, Log: state.Epoch, Copy: at.Epoch}
	}
	if s.term != nil && state.ID == at.Log {
		return nil // the leader's own cursor is newer than state
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

// pushed applies messages that were just stored. If this node leads, it wrote them
// itself, except fences. The messages before a gap among them are written together.
func (s *shard) pushed(ctx context.Context, messages []port.Message) error {
	mine, _, _ := s.leader()
	messages = slices.DeleteFunc(messages, func(m port.Message) bool {
		// If a message in the slot of a leader is foreign, the next read of the end finds it.
		return m.Seq <= s.seen.Load() || mine && frame.KindOf(m.Data) != frame.Fence
	})
	for len(messages) > 0 {
		n := 1
		for n < len(messages) && messages[n].Seq == messages[n-1].Seq+1 {
			n++
		}
		if err := s.fill(ctx, messages[0].Seq-1); err != nil {
			return err
		}
		if err := s.give(ctx, s.prepare(messages[:n])); err != nil {
			return err
		}
		messages = messages[n:]
	}
	return nil
}

// toEnd reads the log to its end.
func (s *shard) toEnd(ctx context.Context) error {
	state, err := s.log.State(ctx, s.n)
	if errors.Is(err, port.ErrUnfit) {
		return err
	}
	if err != nil && !errors.Is(err, port.ErrNoLog) {
		s.log.Elsewhere(s.n)
		s.noteQuorum(err)
		return nil // no answer: the next read may succeed
	}
	if state.NoQuorum {
		s.noteQuorum(errNoQuorum)
	} else {
		s.noteQuorum(nil)
	}
	if err != nil || state.Last < s.seen.Load() {
		_, err := s.attach(ctx)
		return err
	}
	return s.fill(ctx, state.Last)
}

// reach waits until the log is applied up to a sequence.
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

// fill reads and applies the messages up to a sequence, and reads ahead while it
// applies. It returns an error for a missing message, and does not skip it.
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
		if err == nil { // a server answered, and does not have the message
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

// reader reads and prepares messages of a shard's log, one read ahead.
type reader struct {
	shard  *shard
	from   uint64          // first sequence of the read that was begun
	got    chan readAnswer // nil: no read was begun
	cancel context.CancelFunc
}

type readAnswer struct {
	messages []prepared
	err      error
}

// begin begins to read messages from a sequence on in the background.
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

// stop ends a read whose result is not needed.
func (r *reader) stop() {
	if r.got != nil {
		r.cancel()
		<-r.got
		r.got = nil
	}
}

// give applies messages up to the first gap. Consecutive groups are written together.
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
