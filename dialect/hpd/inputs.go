package hpd

import (
	"context"
	"errors"
	"net/http"

	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/view/branch"
)

func (s *Server) wireLimits() wire.Limits { return wire.Limits{Bytes: s.cfg.Limits.Event} }

// target is the agent or producer that answers the inputs for an agent id.
type target struct {
	agentID    string   // as the route names it
	producer   Producer // nil: none in this process
	name       string   // of the identity, or of the definition
	definition bool     // a definition, which runs only if there is a producer
}

func errNoAgent(id string) error {
	return fault.New(fault.NotFound, "Agent '%.200s' was not found. Register a producer under this name, or set hpd.default_agent.", id).Because(fault.NoAgent)
}

// target finds what answers for an agent id: a producer of this process, a
// registered identity or a definition. An unknown id goes to the default agent.
func (s *Server) target(ctx context.Context, agentID string) (target, error) {
	for _, id := range []string{agentID, s.cfg.DefaultAgent} {
		if id == "" {
			continue
		}
		if p := s.cfg.Producers[id]; p != nil {
			return target{agentID: agentID, producer: p, name: id}, nil
		}
		if _, ok := s.hub.FindAgent(id); ok {
			return target{agentID: agentID, name: id}, nil
		}
		if a, _, err := s.definition(ctx, id); err == nil {
			to := target{agentID: agentID, name: a.Name, definition: true}
			if s.cfg.Hosted != nil {
				to.producer = s.cfg.Hosted(a)
			}
			return to, nil
		} else if fault.CodeOf(err) != fault.NotFound {
			return target{}, err
		}
	}
	return target{}, errNoAgent(agentID)
}

func (s *Server) readInput(c *call) (*wire.Input, error) {
	data, err := c.body()
	if err != nil {
		return nil, err
	}
	return s.cfg.Registry.ParseInput(data, s.wireLimits())
}

func (s *Server) postInput(c *call) error {
	in, err := s.readInput(c)
	if err != nil {
		return err
	}
	x, err := s.scope(c)
	if err != nil {
		return err
	}
	run, err := s.startRun(c.Context(), x, c.agent, in, c.who)
	if err != nil {
		return err
	}
	s.locationOfRun(c, x.session.id, x.branch, run.id)
	return c.write(http.StatusAccepted, wire.InputAccepted{RuntimeRunID: run.id, StartedAt: run.started})
}

// startRun stores the beginning of a run with its messages, and passes it to its
// producer. If it returns no error, the run is durable.
func (s *Server) startRun(ctx context.Context, at *scope, agentID string, in *wire.Input, who Who) (*run, error) {
	// The run begins even if the client disconnects before the answer.
	ctx = context.WithoutCancel(ctx)
	to, err := s.target(ctx, agentID)
	if err != nil {
		return nil, err
	}
	by, err := s.actor(ctx, who)
	if err != nil {
		return nil, err
	}
	unlock := s.locks.lock(at.channel)
	defer unlock()
	x, err := s.beginRun(ctx, at, to, in, by)
	if hub.Deleted(err) { // it was deleted while this waited for the lock
		return nil, errNoBranch(at.branch, at.session.id)
	}
	if err != nil {
		return nil, err
	}
	switch {
	case x.remote:
		s.give(x)
		return x, nil
	case x.member != nil:
		s.background.Go(func() { s.awaitMember(x) })
		return x, nil
	case to.producer == nil:
		how := outcome{errorType: wire.NoProducer, message: "No producer is connected for agent '" + agentID + "'."}
		if _, err := s.complete(ctx, x, how); err != nil {
			return nil, err
		}
		return nil, &refusal{wire.NewProblem(wire.Branches, http.StatusInternalServerError, wire.NoProducer, how.message)}
	}
	s.background.Go(func() { s.produce(x, to.producer, Work{Messages: in.Messages, RunConfig: in.RunConfig}) })
	return x, nil
}

// beginRun writes BRANCH_RUN_STARTED, MESSAGE_TURN_STARTED and the messages as one
// batch. The adapter refuses the batch if a run is active.
func (s *Server) beginRun(ctx context.Context, at *scope, to target, in *wire.Input, by string) (*run, error) {
	if active := s.runs.get(at.channel); active != nil && !active.ends(ctx) {
		return nil, fault.New(fault.Conflict, "Branch '%s' has an active run, %s; wait for its end or interrupt it.", at.branch, active.id).Because(fault.RunActive)
	}
	agent, err := s.user(ctx)
	if !to.definition {
		agent, err = s.ids.of(ctx, to.name, identity.Agent)
	}
	if err != nil {
		return nil, err
	}
	remote := false
	if to.producer == nil && !to.definition {
		if remote, err = s.present(ctx, to.name, agent); err != nil {
			return nil, err
		}
	}
	in.Complete(newID)
	x := &run{
		id: newID(), scope: at, agentID: to.agentID, name: to.name, agent: agent, turn: newID(), trace: newID(), span: newSpan(),
		started: s.now(), over: make(chan struct{}), remote: remote,
		work: Work{Messages: in.Messages, RunConfig: in.RunConfig},
	}
	if _, reads := s.hub.Bound(agent); reads && !remote && to.producer == nil && !to.definition {
		x.member = newMember()
	}
	list, err := x.beginning(by, in)
	if err != nil {
		return nil, err
	}
	if len(list) > hub.MaxAdmitAll {
		return nil, fault.New(fault.TooLarge, "the input becomes %d events; at most %d are taken at once. Send fewer messages or contents, or upload large ones by POST …/content", len(list), hub.MaxAdmitAll)
	}
	for _, e := range list {
		if limit := s.cfg.Limits.Event; len(e.Data) > limit {
			return nil, fault.New(fault.TooLarge, "a content has %d bytes; at most %d are kept in an event (limits.event). Upload it by POST …/content and send its uri", len(e.Data), limit)
		}
	}
	for _, e := range list[:2] {
		s.notes.put(e, &wire.Base{TraceID: x.trace, SpanID: x.span, Metadata: branch.RootAgent(x.agentID, x.name)})
	}
	if err := s.keepConfig(ctx, x); err != nil {
		return nil, err
	}
	stopBubbling := func() {}
	if parent := parentOf(at.state.Fields.Metadata); parent != nil {
		stopBubbling = s.bubble(ctx, x, *parent)
	}
	x.ctx, x.cancel = context.WithCancel(s.ctx)
	if _, err := s.hub.AdmitAll(ctx, list, trusted).Wait(ctx); err != nil {
		stopBubbling()
		x.cancel()
		close(x.over)
		if fault.CodeOf(err) == fault.TooLarge { // the events of the batch together
			err = fault.Wrap(fault.TooLarge, err, "%v. Upload large contents by POST …/content and send their uris", err)
		}
		return nil, err
	}
	s.runs.add(x)
	s.touch(ctx, at.session)
	return x, nil
}

// beginning returns the first events of a run.
func (x *run) beginning(by string, in *wire.Input) ([]*envelope.Envelope, error) {
	started, err := made(x.scope.channel, by, x.turn, wire.BranchRunStarted{RuntimeRunID: x.id, AgentID: x.agentID, StartedAt: x.started},
		branch.Ext{Agent: x.agent, Remote: x.remote, Asked: x.member != nil})
	if err != nil {
		return nil, err
	}
	count := int64(len(in.Messages))
	turn, err := made(x.scope.channel, by, x.turn, wire.MessageTurnStarted{
		MessageTurnID: x.turn, ConversationID: x.scope.session.id, AgentID: x.agentID, AgentName: x.name, InputMessageCount: &count,
	}, branch.Ext{})
	if err != nil {
		return nil, err
	}
	list := []*envelope.Envelope{started, turn}
	for i := range in.Messages {
		events, err := committed(x.scope.channel, by, x.turn, &in.Messages[i])
		if err != nil {
			return nil, err
		}
		list = append(list, events...)
	}
	return list, nil
}

// produce executes a run in this process, and ends it.
func (s *Server) produce(x *run, p Producer, work Work) {
	err := s.guarded(func() error { return p.OnInput(x.ctx, &Run{server: s, run: x}, work) })
	how := outcome{}
	switch {
	case s.ctx.Err() != nil && err != nil:
		how = outcome{errorType: wire.RuntimeLost, message: "The hub was stopped while the run was active."}
	case err != nil:
		how.errorType, how.message = failure(err)
	}
	// The run ends even while the server closes, and may have been cancelled
	// before.
	if _, err := s.complete(context.WithoutCancel(s.ctx), x, how); err != nil && fault.ReasonOf(err) != fault.NoRun {
		s.log.Warn("run not completed", "run", x.id, "error", err)
	}
}

// guarded turns a producer's panic into an error.
func (s *Server) guarded(do func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			s.log.Error("a producer panicked", "panic", v)
			err = &RunError{Type: "Panic", Message: "the producer panicked; the hub's log says where"}
		}
	}()
	return do()
}

func (s *Server) postInterrupt(c *call) error {
	data, err := c.body()
	if err != nil {
		return err
	}
	e, err := s.cfg.Registry.ParseInterrupt(data, s.wireLimits())
	if err != nil {
		return err
	}
	x, err := s.scope(c)
	if err != nil {
		return err
	}
	if err := s.interruptScope(c.Context(), x, e); err != nil {
		return err
	}
	return c.empty(http.StatusAccepted)
}

// interruptScope interrupts the active run of a branch.
func (s *Server) interruptScope(ctx context.Context, at *scope, e *wire.Event) error {
	request, ok := e.Payload.(wire.InterruptionRequest)
	if !ok {
		return errors.New("not an interruption")
	}
	unlock := s.locks.lock(at.channel)
	x := s.runs.get(at.channel)
	unlock()
	if x == nil {
		return errNoRun(at.branch)
	}
	return s.interrupt(context.WithoutCancel(ctx), x, request, e.EventFlowID)
}

// settle ends the runs of a session that a restart interrupted, and writes missing
// tree updates. It does so once, before any request for the session is answered.
func (s *Server) settle(ctx context.Context, x session) error {
	unlock := s.locks.lock("settle/" + x.home)
	defer unlock()
	if s.settled.has(x.home) {
		return nil
	}
	all, err := s.summaries(ctx, x)
	if err != nil {
		return err
	}
	for _, b := range all {
		if b.Run == "" {
			continue
		}
		if err := s.recover(ctx, x, b.Branch); err != nil && fault.CodeOf(err) != fault.NotFound {
			return err
		}
	}
	if err := s.tellRest(ctx, x, all); err != nil {
		return err
	}
	s.settled.add(x.home)
	return nil
}

// recover ends a run of an earlier process. It takes the run over instead if its
// producer is another process or an agent that answers in another dialect.
func (s *Server) recover(ctx context.Context, of session, branchID string) error {
	at, err := s.branch(ctx, of, branchID)
	if err != nil {
		return err
	}
	unlock := s.locks.lock(at.channel)
	defer unlock()
	if at.state, err = s.state(ctx, at.channel); err != nil {
		return err
	}
	active := at.state.Run
	if active == nil || s.runs.get(at.channel) != nil {
		return nil
	}
	if m, err := s.hub.Channel(ctx, at.channel); err != nil || m.State.Terminal() {
		return err // a closed branch accepts no end of its run; markLost reports the run as lost
	}
	x := &run{
		id: active.ID, scope: at, agentID: active.AgentID, name: s.hub.Name(active.Agent), agent: active.Agent, turn: active.Turn,
		trace: newID(), span: newSpan(), started: active.Started, remote: active.Remote, turnEnded: active.TurnEnded, over: make(chan struct{}),
	}
	x.ctx, x.cancel = context.WithCancel(s.ctx)
	if x.interrupted = active.Interrupted; x.interrupted != "" {
		x.cancel()
	}
	if x.remote {
		return s.adopt(ctx, x, active.Seq)
	}
	x.asked = true // the hub may have requests of it
	itself, err := s.askedItself(ctx, at.channel, active.Seq)
	if err != nil {
		return err
	}
	if itself {
		x.member = newMember()
		s.runs.add(x)
		s.background.Go(func() { s.awaitMember(x) })
		return nil
	}
	_, err = s.complete(ctx, x, outcome{errorType: wire.RuntimeLost, message: "The hub was restarted while the run was active."})
	return err
}

// adopt takes over a remote producer's run from an earlier process. It stays
// open until the producer reconnects, or its time is up.
func (s *Server) adopt(ctx context.Context, x *run, from uint64) error {
	messages, err := s.workOf(ctx, x.scope, x.turn, from)
	if err != nil {
		return err
	}
	x.work.Messages, x.handed, x.asked = messages, true, true
	if kept := x.scope.state.Waiting; kept != nil && kept.Run == x.id {
		x.work.RunConfig, x.handed = kept.RunConfig, false // no producer has received it
	}
	if err := s.adoptRequests(ctx, x); err != nil {
		return err
	}
	s.runs.add(x)
	s.give(x)
	if x.interrupted != "" {
		s.background.Go(func() { s.cutOffLate(x) })
	}
	return nil
}
