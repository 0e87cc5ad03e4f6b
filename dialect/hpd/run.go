package hpd

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"maps"
	"regexp"
	"slices"
	"sync"
	"time"

	adapter "github.com/parley-hub/parley/adapter/branch"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/view/branch"
)

// run is an active run of this process.
type run struct {
	id      string
	scope   *scope
	agentID string // as routes name it
	name    string // of the agent, for people
	agent   string // the identity that publishes
	turn    string
	trace   string
	span    string
	started time.Time
	remote  bool
	member  *member // set if the agent answers itself, in the dialect that it reads; nil: a producer answers

	rootOnce sync.Once
	root     *branch.Agent // never changed

	ctx    context.Context // ends when the run is interrupted or over
	cancel context.CancelFunc
	over   chan struct{} // closed when its end is stored

	// mu ensures that everything is published before the end.
	mu          sync.Mutex
	turnEnded   bool
	interrupted string // the reason; empty: not interrupted
	ended       bool
	asked       bool   // it has sent a request
	noted       bool   // the fields that its events have in common are in notes
	plainExt    []byte // ext of a stored event without fields of its own; never changed

	permitting sync.Mutex // one permission is asked for at a time

	keeping sync.Mutex // guards kept, and is held while the interruption is stored
	kept    bool       // the interruption survives a restart

	// Only set if the run's producer is another process:
	work     Work
	handed   bool            // a producer has had it before
	answers  []*wire.Event   // to its requests, for a producer that reconnects
	contents []string        // content ids of large answers
	keys     map[string]bool // idempotency keys of published events
}

// runs are the active runs of this process, by the channel of their branch.
type runs struct {
	mu  sync.Mutex
	all map[string]*run
}

func (r *runs) get(channelID string) *run {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[channelID]
}

func (r *runs) add(x *run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[string]*run{}
	}
	r.all[x.scope.channel] = x
}

// remove removes a run that is over.
func (r *runs) remove(x *run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all[x.scope.channel] == x {
		delete(r.all, x.scope.channel)
	}
}

// drop cancels a run whose branch is deleted. Nothing more of the run is written.
func (r *runs) drop(channelID string) {
	x := r.get(channelID)
	if x == nil {
		return
	}
	x.mu.Lock()
	ended := x.ended
	x.ended = true
	x.mu.Unlock()
	x.cancel()
	r.remove(x)
	if !ended {
		close(x.over)
	}
}

// list returns all runs.
func (r *runs) list() []*run {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.all))
}

// outcome is how a run ends. The zero value is success.
type outcome struct {
	cancelled bool
	errorType string
	message   string
	// reported is the digest of the end that a remote producer reported. It is
	// stored if an interruption replaced that end.
	reported string
}

// ends reports whether a run is ending, which clients may have seen, and waits
// until it has ended.
func (x *run) ends(ctx context.Context) bool {
	x.mu.Lock()
	ended := x.ended
	x.mu.Unlock()
	if !ended {
		return false
	}
	select {
	case <-x.over:
		return true
	case <-ctx.Done():
		return false
	}
}

// complete ends a run, once. It writes the end of the turn, if the producer
// did not, and BRANCH_RUN_COMPLETED in one batch. It returns how the run ended:
// an interrupted one is cancelled, whatever its producer reports, because the
// interruption was answered and shown.
func (s *Server) complete(ctx context.Context, x *run, how outcome) (outcome, error) {
	sender, err := s.user(ctx)
	if err != nil {
		return how, err
	}
	s.withdraw(ctx, x, "The run has ended.")
	x.mu.Lock()
	if x.ended {
		x.mu.Unlock()
		return how, errRunOver(x.id)
	}
	if x.interrupted == "" || how.cancelled {
		how.reported = ""
	} else { // perhaps while this waited for withdraw
		how = outcome{cancelled: true, reported: how.reported}
	}
	list, err := x.ending(sender, how, s.now())
	if err != nil {
		x.mu.Unlock()
		return how, err
	}
	x.ended = true
	s.counts.ended(how)
	for _, e := range list {
		s.notes.put(e, &wire.Base{TraceID: x.trace, SpanID: x.span})
	}
	pending := s.hub.AdmitAll(ctx, list, trusted)
	x.mu.Unlock()
	x.cancel()
	_, err = pending.Wait(ctx)
	if err != nil && !hub.Deleted(err) {
		s.log.Error("the end of a run was not stored", "run", x.id, "error", err)
	}
	s.runs.remove(x)
	s.release(x)
	close(x.over)
	s.dropContents(ctx, x)
	s.touch(ctx, x.scope.session)
	if err == nil {
		s.condenseSoon(x.scope)
	}
	return how, err
}

func errNoRun(branch string) error {
	return fault.New(fault.Conflict, "Branch '%s' has no active run.", branch).Because(fault.NoRun)
}

func errRunOver(id string) error {
	return fault.New(fault.Conflict, "Run '%s' is not active.", id).Because(fault.NoRun)
}

// ending returns the last events of a run.
func (x *run) ending(sender string, how outcome, now time.Time) ([]*envelope.Envelope, error) {
	var payloads []wire.Payload
	if !x.turnEnded {
		switch {
		case how.cancelled:
		case how.errorType != "":
			payloads = append(payloads, wire.MessageTurnError{
				Message: how.message, MessageTurnID: &x.turn, ConversationID: &x.scope.session.id,
				AgentID: &x.agentID, AgentName: &x.name, ErrorType: &how.errorType,
			})
		default:
			payloads = append(payloads, wire.MessageTurnFinished{
				MessageTurnID: x.turn, ConversationID: x.scope.session.id, AgentID: x.agentID, AgentName: x.name,
				Duration: wire.Duration(max(now.Sub(x.started), 0)),
			})
		}
	}
	end := wire.BranchRunCompleted{RuntimeRunID: x.id, AgentID: x.agentID, Cancelled: how.cancelled}
	if how.errorType != "" && !how.cancelled {
		end.ErrorType, end.ErrorMessage = &how.errorType, &how.message
	}
	list := make([]*envelope.Envelope, 0, 2)
	for _, p := range payloads {
		e, err := made(x.scope.channel, sender, x.turn, p, branch.Ext{})
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	e, err := made(x.scope.channel, sender, x.turn, end, branch.Ext{Reported: how.reported})
	return append(list, e), err
}

// interrupt interrupts a run. Its producer then has some time to end it.
func (s *Server) interrupt(ctx context.Context, x *run, request wire.InterruptionRequest, flow string) error {
	x.mu.Lock()
	if x.ended {
		x.mu.Unlock()
		return errRunOver(x.id)
	}
	again := x.interrupted != ""
	x.interrupted = deref(request.Reason)
	if again {
		x.mu.Unlock()
		return s.keepInterruption(ctx, x, deref(request.Reason))
	}
	whole := flow == "" || flow == x.turn
	if !whole {
		x.interrupted = ""
	} else {
		x.cancel()
	}
	handled := &wire.Event{Payload: wire.InterruptionHandled{Reason: deref(request.Reason), Source: request.Source}}
	handled.EventFlowID = flow
	err := s.show(ctx, x, handled)
	x.mu.Unlock()
	if err != nil {
		s.log.Warn("an interruption was not shown", "error", err)
	}
	if !whole {
		if x.remote {
			s.notify(x, "interrupt", wire.WorkInterrupt{RuntimeRunID: x.id, Reason: deref(request.Reason), EventFlowID: &flow})
		}
		return nil
	}
	s.withdraw(ctx, x, deref(request.Reason))
	if x.remote {
		told := wire.WorkInterrupt{RuntimeRunID: x.id, Reason: deref(request.Reason)}
		if flow != "" {
			told.EventFlowID = &flow
		}
		s.notify(x, "interrupt", told)
	}
	s.background.Go(func() { s.cutOffLate(x) })
	return s.keepInterruption(ctx, x, deref(request.Reason))
}

// cutOffLate ends an interrupted run whose producer does not end it in time.
func (s *Server) cutOffLate(x *run) {
	timer := time.NewTimer(s.cfg.InterruptGrace)
	defer timer.Stop()
	select {
	case <-x.over:
	case <-s.ctx.Done():
	case <-timer.C:
		_, _ = s.complete(s.ctx, x, outcome{cancelled: true}) // the producer may have ended it first
	}
}

// keptReason is how much of an interruption's reason is stored.
const keptReason = 1 << 10

// keepInterruption stores the interruption of a run that survives a restart, so
// that the next process can finish it. A caller that interrupts again waits for
// this, too.
func (s *Server) keepInterruption(ctx context.Context, x *run, reason string) error {
	if !x.remote && x.member == nil {
		return nil
	}
	x.keeping.Lock()
	defer x.keeping.Unlock()
	if x.kept {
		return nil
	}
	sender, err := s.user(ctx)
	if err == nil {
		told := adapter.Interrupted{Run: x.id, Reason: cut(reason, keptReason)}
		err = s.note(ctx, x.scope.channel, sender, adapter.TypeInterrupted, told, branch.Ext{})
	}
	x.kept = err == nil
	select {
	case <-x.over: // the run has ended in the meantime
		return nil
	default:
	}
	return err
}

// withdraw cancels a run's open requests.
func (s *Server) withdraw(ctx context.Context, x *run, reason string) {
	x.mu.Lock()
	asked := x.asked && !x.ended
	x.mu.Unlock()
	if !asked {
		return
	}
	open := s.asks.of(x)
	if err := s.hub.CancelRequests(ctx, x.scope.channel, x.id, reason); err != nil && !hub.Deleted(err) {
		s.log.Warn("requests not cancelled", "run", x.id, "error", err)
		return
	}
	for _, a := range open {
		select {
		case <-a.told:
		case <-s.ctx.Done():
		}
	}
}

// locks has one lock for each branch that is being changed.
type locks struct {
	mu       sync.Mutex
	byBranch map[string]*branchLock
}

type branchLock struct {
	mu   sync.Mutex
	uses int
}

// lock waits for a branch's lock. The caller must call unlock.
func (l *locks) lock(channelID string) (unlock func()) {
	l.mu.Lock()
	if l.byBranch == nil {
		l.byBranch = map[string]*branchLock{}
	}
	h := l.byBranch[channelID]
	if h == nil {
		h = &branchLock{}
		l.byBranch[channelID] = h
	}
	h.uses++
	l.mu.Unlock()
	h.mu.Lock()
	return func() {
		h.mu.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		if h.uses--; h.uses == 0 {
			delete(l.byBranch, channelID)
		}
	}
}

// mintedID matches the results of newID.
var mintedID = regexp.MustCompile(`^[0-9a-f]{32}$`)

// newID returns an id of 32 hex digits.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// newSpan returns the id of a span.
func newSpan() string { return newID()[:16] }
