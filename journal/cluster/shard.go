package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/cluster/internal/frame"
	"github.com/parley-hub/parley/journal/cluster/port"
	"github.com/parley-hub/parley/journal/disk"
)

// shard is one log and this node's copy of it.
type shard struct {
	n      int
	engine *Engine
	opts   *Options
	log    port.Log
	copy   atomic.Pointer[disk.Copy]
	ctx    context.Context // ends when nothing more must be shipped

	// Used on the copy's committer.
	at        cursor
	gathering bool // messages before at may not be written yet
	parts     frame.Parts
	term      *term  // nil while another process leads
	voided    uint64 // the last foreign message that was counted
	gone      int    // consecutive answers that there is no log
	short     int    // consecutive answers in which the log ends before what was stored

	asked bool // of run: other nodes were asked for a copy

	seen   atomic.Uint64 // at.seq, for other goroutines
	voids  atomic.Uint64 // foreign messages that were skipped
	since  atomic.Int64  // when the current publish began, in nanoseconds; 0: none
	poor   atomic.Int64  // since when the log's servers report no quorum or do not answer, in nanoseconds; 0: they have one
	nudged chan struct{} // requests a read of the end of the log
	giving chan struct{} // the copy is being written for another node

	mu      sync.Mutex
	leads   bool
	node    string // of the last fence
	fence   uint64 // its slot
	changed chan struct{}
	trouble error // why the log is not followed
	silence error // why the log's servers cannot store anything
	closed  bool
	ending  chan struct{} // closed with closed
	taking  bool          // the copy is being replaced by another node's
	led     time.Time     // when leads, node and fence changed
}

// cursor is how far a log was read. It is ahead of the copy's place by foreign
// messages and by parts of a group.
type cursor struct {
	seq   uint64
	chain frame.Chain
	term  uint64
}

func newShard(ctx context.Context, n int, e *Engine) *shard {
	return &shard{
		ctx: ctx, n: n, engine: e, opts: &e.opts, log: e.opts.Log, changed: make(chan struct{}), nudged: make(chan struct{}, 1), giving: make(chan struct{}, 1), ending: make(chan struct{}),
		trouble: fmt.Errorf("shard %d: the log has not been looked at yet", n),
	}
}

// move moves the cursor. It updates seen only if everything before the cursor was
// applied.
func (s *shard) move(to cursor) {
	s.at = to
	if !s.gathering {
		s.seen.Store(to.seq)
	}
}

// place returns the place that is stored with the group applied at a cursor.
func (s *shard) place(at cursor) disk.Place {
	p := s.store().At()
	p.Seq, p.Chain, p.Term = at.seq, at.chain, at.term
	return p
}

// lead records which node leads.
func (s *shard) lead(mine bool, node string, fence uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leads == mine && s.node == node && s.fence == fence {
		return
	}
	s.leads, s.node, s.fence, s.led = mine, node, fence, time.Now()
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *shard) leader() (mine bool, node string, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leads, s.node, s.changed
}

func (s *shard) setTrouble(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trouble = err
}

func (s *shard) troubled() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.trouble
}

// resign ends the term of this process, if it has one. It runs on the committer.
func (s *shard) resign(node string) {
	if s.term == nil {
		return
	}
	s.term = nil
	s.opts.Logger.Warn("this node no longer leads a shard", "shard", s.n, "leader", node)
	s.lead(false, node, s.at.term)
	s.store().Yield(node)
}

var errLives = errors.New("the node that leads has just written to the log")

// take makes this node lead the shard: it fences the log after the last message that
// the copy has applied. It fails if the log has moved on, or if may returns false.
func (s *shard) take(ctx context.Context, may func() bool) error {
	state, err := s.log.State(ctx, s.n)
	if err != nil {
		return err
	}
	if err := s.reach(ctx, state.Last); err != nil {
		return err
	}
	return s.store().Exclusively(ctx, func() error {
		if s.term != nil {
			return nil
		}
		if !may() {
			return fmt.Errorf("shard %d: %w", s.n, errLives)
		}
		if s.at.seq != state.Last {
			return fmt.Errorf("shard %d: the log moved on while it was to be fenced", s.n)
		}
		at := s.store().At()
		body := frame.FenceBody{Epoch: at.Epoch, Format: frame.Format, Base: s.store().Offset(), Node: s.opts.Node}
		t, err := acquire(ctx, s.log, s.n, s.at.seq, s.at.chain, body)
		if err != nil {
			return err
		}
		s.parts.Reset()
		at = s.place(cursor{t.last, t.chain, t.number})
		if err := s.store().Move(at); err != nil {
			return err
		}
		s.move(cursor{t.last, t.chain, t.number})
		if err := s.store().TakeOver(t.number); err != nil {
			return err
		}
		s.term = t
		s.lead(true, s.opts.Node, t.number)
		return nil
	})
}

// ship publishes a group; it runs on the committer.
func (s *shard) ship(g disk.Group) (disk.Place, journal.Outcome, error) {
	if s.term == nil {
		return disk.Place{}, journal.Failed, &journal.NotMineError{Shard: s.n}
	}
	s.since.Store(time.Now().UnixNano())
	defer s.since.Store(0)
	err := s.publish(g)
	if err == nil {
		s.move(cursor{s.term.last, s.term.chain, s.term.number})
		return s.place(s.at), journal.Durable, nil
	}
	s.term = nil
	s.lead(false, "", s.at.term)
	s.nudge()
	if errors.Is(err, errOver) || errors.Is(err, errTooLarge) {
		s.opts.Logger.Warn("this node no longer leads a shard", "shard", s.n, "reason", err)
		return disk.Place{}, journal.Failed, fmt.Errorf("%w: %w", &journal.NotMineError{Shard: s.n}, err)
	}
	return disk.Place{}, journal.Unknown, err
}

var errTooLarge = errors.New("a group cannot be published")

// publish publishes a group as one message, or as several when it is too large.
func (s *shard) publish(g disk.Group) error {
	if g.Empty() {
		return s.term.append(s.ctx, frame.Barrier, nil, s.check)
	}
	whole := frame.GroupBody{First: g.First, Count: g.Count, Hints: g.Hints, Batch: g.Batch}
	body := whole.Encode()
	for {
		err := s.publishBody(body)
		if !errors.Is(err, errResize) {
			return err
		}
		s.opts.Logger.Warn("the servers take smaller messages than before (max_payload)", "shard", s.n, "bytes", s.log.MaxBytes())
	}
}

func (s *shard) publishBody(body []byte) error {
	most := s.log.MaxBytes() - frame.Overhead
	if len(body) <= most {
		return s.term.append(s.ctx, frame.Group, body, s.check)
	}
	most -= 8 // numbers of the part
	of := (len(body) + max(most, 1) - 1) / max(most, 1)
	if most <= 0 || of > frame.MaxParts || len(body) > frame.MaxGroup {
		return fmt.Errorf("%w: it has %d bytes, the servers take %d at once (max_payload)", errTooLarge, len(body), s.log.MaxBytes())
	}
	for i := range of {
		piece := body[i*most : min((i+1)*most, len(body))]
		part := frame.PartBody{Index: uint64(i + 1), Of: uint64(of), Piece: piece}
		if err := s.term.append(s.ctx, frame.Part, part.Encode(), s.check); err != nil {
			return err
		}
	}
	return nil
}

// check returns an error if the log is no longer the one that the copy was made from.
func (s *shard) check(ctx context.Context) error {
	state, err := s.log.State(ctx, s.n)
	if s.gone++; !errors.Is(err, port.ErrNoLog) {
		s.gone = 0
	}
	if s.gone == missingTries {
		s.gone = 0
		return &GoneError{Shard: s.n}
	}
	if err != nil {
		return nil //nolint:nilerr // nobody answers: it says nothing about the log
	}
	if at := s.store().At(); state.ID != at.Log || state.Epoch != at.Epoch {
		return &ReplacedError{Shard: s.n}
	}
	if s.short++; state.Last >= s.term.last {
		s.short = 0
	}
	if s.short == missingTries {
		return &WentBackError{Shard: s.n, Last: state.Last, Applied: s.term.last}
	}
	return nil
}

// receive applies a message of the log if it is the next one. It runs on the committer.
func (s *shard) receive(m *prepared) error {
	if m.Seq <= s.at.seq {
		return nil
	}
	if m.Seq != s.at.seq+1 {
		return &MissingError{Shard: s.n, Seq: s.at.seq + 1}
	}
	s.resign("") // this process did not write it
	s.engine.nodes.live(frame.KindOf(m.Data) == frame.Fence)
	f, err := m.frame, m.err
	if _, ok := errors.AsType[*frame.VersionError](err); ok {
		return &GroupError{Shard: s.n, Seq: m.Seq, Err: err}
	}
	if err != nil {
		if m.Seq > s.voided {
			s.voided = m.Seq
			s.voids.Add(1)
			s.opts.Logger.Error("the log holds a message that no node wrote; it is skipped", "shard", s.n, "sequence", m.Seq, "reason", err)
		}
		s.move(cursor{m.Seq, s.at.chain, s.at.term})
		return nil
	}
	if !m.follows(s.at.chain) {
		return &ChainError{Shard: s.n, Seq: m.Seq}
	}
	if f.Kind == frame.Fence {
		return s.receiveFence(m.Seq, f)
	}
	if f.Term != s.at.term {
		return &TermError{Shard: s.n, Seq: m.Seq, Term: f.Term, Want: s.at.term}
	}
	return s.receiveGroup(m.Seq, f, m.group)
}

func (s *shard) receiveFence(seq uint64, f frame.Message) error {
	if f.Term != seq {
		return &TermError{Shard: s.n, Seq: seq, Term: f.Term, Want: seq}
	}
	body, err := frame.DecodeFence(f.Body)
	if err == nil && body.Format > frame.Format {
		err = fmt.Errorf("it begins format %d, this version knows formats up to %d; use a newer one", body.Format, frame.Format)
	}
	if err != nil {
		return &GroupError{Shard: s.n, Seq: seq, Err: err}
	}
	if at := s.store().At(); body.Epoch != at.Epoch {
		return &EpochError{Shard: s.n, Log: body.Epoch, Copy: at.Epoch}
	}
	if err := s.store().Flush(); err != nil {
		return err
	}
	if body.Base != s.store().Offset() {
		return &BehindError{Shard: s.n, First: seq, Offset: s.store().Offset()}
	}
	s.parts.Reset()
	to := cursor{seq, f.Chain, seq}
	s.store().Yield(body.Node)
	if err := s.store().Move(s.place(to)); err != nil {
		return err
	}
	s.move(to)
	s.lead(false, body.Node, seq)
	return nil
}

// receiveGroup gathers a group; whole is the group if it was checked before, or nil.
func (s *shard) receiveGroup(seq uint64, f frame.Message, whole *disk.Group) error {
	to, body := cursor{seq, f.Chain, f.Term}, f.Body
	switch f.Kind {
	case frame.Part:
		part, err := frame.DecodePart(body)
		if err == nil {
			body, err = s.parts.Add(part)
		}
		if err != nil {
			return &GroupError{Shard: s.n, Seq: seq, Err: err}
		}
		if body == nil {
			s.move(to)
			return nil
		}
	case frame.Barrier:
		s.move(to)
		if s.parts.Empty() {
			return s.store().Move(s.place(to))
		}
		return nil
	}
	if f.Kind == frame.Group {
		s.parts.Reset()
	}
	if whole == nil {
		b, err := frame.DecodeGroup(body)
		if err != nil {
			return &GroupError{Shard: s.n, Seq: seq, Err: err}
		}
		whole = new(groupOf(b))
	}
	if err := s.store().Gather(*whole, s.place(to)); err != nil {
		return &GroupError{Shard: s.n, Seq: seq, Err: err}
	}
	s.move(to)
	return nil
}

func (s *shard) nudge() {
	select {
	case s.nudged <- struct{}{}:
	default:
	}
}
