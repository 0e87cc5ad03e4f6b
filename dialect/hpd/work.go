package hpd

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/internal/sse"
	"github.com/parley-hub/parley/view/branch"
)

// worker is one connection of a remote producer.
type worker struct {
	frames chan workFrame
	gone   chan struct{} // closed when it is cut off
	once   sync.Once
}

type workFrame struct {
	name string
	data []byte
}

// workQueue is how many frames wait for a producer that does not read.
const workQueue = 1024

func (w *worker) cutOff() { w.once.Do(func() { close(w.gone) }) }

// send queues a frame. A producer that does not read is cut off, and is told
// again when it is back.
func (w *worker) send(name string, body any) {
	data, err := marshal(body)
	if err != nil {
		return
	}
	select {
	case w.frames <- workFrame{name, data}:
	case <-w.gone:
	default:
		w.cutOff()
	}
}

// crew is everybody who produces for one agent.
type crew struct {
	workers []*worker
	next    int
	seen    time.Time // when the last one left
	timer   *time.Timer
	runs    map[*run]*worker // nil: nobody has it now
}

// crews are the remote producers, by the identity of their agent.
type crews struct {
	mu  sync.Mutex
	all map[string]*crew
}

// of returns the crew of an agent, which may be empty. The lock is held.
func (c *crews) of(agent string) *crew {
	if c.all == nil {
		c.all = map[string]*crew{}
	}
	k := c.all[agent]
	if k == nil {
		k = &crew{runs: map[*run]*worker{}}
		c.all[agent] = k
	}
	return k
}

// stop ends the waiting for producers; their runs stay open for the next process.
func (c *crews) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.all {
		if k.timer != nil {
			k.timer.Stop()
		}
	}
}

// present reports whether an agent has a producer, or had one not long ago.
func (s *Server) present(agent string) bool {
	s.crews.mu.Lock()
	defer s.crews.mu.Unlock()
	k := s.crews.all[agent]
	return k != nil && (len(k.workers) > 0 || !k.seen.IsZero() && s.now().Sub(k.seen) < s.cfg.ProducerGrace)
}

// give hands a run to one of its agent's producers, or keeps it until one comes.
func (s *Server) give(x *run) {
	s.crews.mu.Lock()
	defer s.crews.mu.Unlock()
	k := s.crews.of(x.agent)
	k.runs[x] = nil
	if len(k.workers) > 0 {
		k.next++
		s.hand(k, x, k.workers[k.next%len(k.workers)])
		return
	}
	s.expect(x.agent, k)
}

// hand gives a run to a worker. The lock is held.
func (s *Server) hand(k *crew, x *run, w *worker) {
	x.mu.Lock()
	again, interrupted := x.handed, x.interrupted
	x.handed = true
	answers := slices.Clone(x.answers)
	x.mu.Unlock()
	k.runs[x] = w
	scope := x.scope.wire()
	w.send("input", wire.WorkInput{
		RuntimeRunID: x.id, SessionID: scope.Session, BranchID: scope.Branch, MessageTurnID: x.turn,
		Messages: x.work.Messages, RunConfig: x.work.RunConfig, Resumed: again,
	})
	for _, e := range answers {
		w.send("response", responseFrame(x, e))
	}
	if interrupted != "" {
		w.send("interrupt", wire.WorkInterrupt{RuntimeRunID: x.id, Reason: interrupted})
	}
}

// responseFrame is a response's envelope with the run that it is for.
func responseFrame(x *run, e *wire.Event) wire.Raw {
	data, err := e.Append(nil, wire.Branches)
	if err != nil {
		return wire.Raw("{}")
	}
	return append(data[:len(data)-1], `,"runtimeRunId":"`+x.id+`"}`...)
}

// expect waits for a producer of an agent that has runs and nobody to do them.
// The lock is held.
func (s *Server) expect(agent string, k *crew) {
	if k.timer != nil || s.ctx.Err() != nil {
		return
	}
	k.timer = time.AfterFunc(s.cfg.ProducerGrace, func() {
		if s.ctx.Err() == nil {
			s.background.Go(func() { s.giveUp(agent) })
		}
	})
}

// giveUp ends the runs of an agent whose producers stayed away.
func (s *Server) giveUp(agent string) {
	s.crews.mu.Lock()
	k := s.crews.of(agent)
	k.timer = nil
	var lost []*run
	for x, w := range k.runs {
		if w == nil && len(k.workers) == 0 {
			lost = append(lost, x)
		}
	}
	s.crews.mu.Unlock()
	for _, x := range lost {
		how := outcome{errorType: wire.RuntimeLost, message: "The producer of agent '" + x.agentID + "' went away."}
		if err := s.complete(context.WithoutCancel(s.ctx), x, how); err != nil && fault.ReasonOf(err) != fault.NoRun {
			s.log.Warn("run not completed", "run", x.id, "error", err)
		}
	}
}

// join adds a worker, which first gets every open run that nobody has.
func (s *Server) join(agent string, w *worker) {
	s.crews.mu.Lock()
	defer s.crews.mu.Unlock()
	k := s.crews.of(agent)
	k.workers = append(k.workers, w)
	if k.timer != nil {
		k.timer.Stop()
		k.timer = nil
	}
	for x, has := range k.runs {
		if has == nil {
			s.hand(k, x, w)
		}
	}
}

// leave removes a worker. Its runs go to another one, or wait.
func (s *Server) leave(agent string, w *worker) {
	s.crews.mu.Lock()
	defer s.crews.mu.Unlock()
	k := s.crews.of(agent)
	k.workers = slices.DeleteFunc(k.workers, func(o *worker) bool { return o == w })
	for x, has := range k.runs {
		if has != w {
			continue
		}
		if k.runs[x] = nil; len(k.workers) > 0 {
			k.next++
			s.hand(k, x, k.workers[k.next%len(k.workers)])
		}
	}
	if len(k.workers) > 0 {
		return
	}
	if k.seen = s.now(); len(k.runs) > 0 {
		s.expect(agent, k)
	}
}

// release forgets a run that is over.
func (s *Server) release(x *run) {
	s.crews.mu.Lock()
	defer s.crews.mu.Unlock()
	if k := s.crews.all[x.agent]; k != nil {
		delete(k.runs, x)
	}
}

// notify tells the worker of a run something.
func (s *Server) notify(x *run, name string, body any) {
	s.crews.mu.Lock()
	defer s.crews.mu.Unlock()
	if k := s.crews.all[x.agent]; k != nil && k.runs[x] != nil {
		k.runs[x].send(name, body)
	}
}

// mayProduce refuses whoever may not act for an agent.
func mayProduce(who Who, agent string) error {
	if who.Role == Operator || who.Role == Agent && who.Agent == agent {
		return nil
	}
	return fault.New(fault.AccessDenied, "this needs the key of agent '%.100s', or an operator's", agent)
}

// getWork streams the work of an agent to one of its producers, as long as it
// stays.
func (s *Server) getWork(c *call) error {
	if err := mayProduce(c.who, c.agent); err != nil {
		return err
	}
	if s.cfg.Producers[c.agent] != nil {
		return fault.New(fault.Conflict, "agent '%s' runs in the hub itself", c.agent)
	}
	agent, err := s.ids.of(c.Context(), c.agent, identity.Agent)
	if err != nil {
		return err
	}
	select {
	case <-s.recovered:
	case <-c.Context().Done():
		return nil
	}
	release, err := s.seat()
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel := s.during(c.Context())
	defer cancel()
	// It is there before it is told so: an input that follows finds it.
	w := &worker{frames: make(chan workFrame, workQueue), gone: make(chan struct{})}
	s.join(agent, w)
	defer s.leave(agent, w)
	defer w.cutOff()
	c.w.Header().Set("Cache-Control", "no-cache")
	stream := sse.Start(c.w, c.Request, sse.Config{Write: s.cfg.Limits.Write, KeepAlive: s.cfg.Limits.KeepAlive, KeepConnection: true})
	defer stream.End()
	var pump sync.WaitGroup
	defer pump.Wait()
	defer cancel()
	pending := make(chan workFrame)
	pump.Go(func() {
		for {
			select {
			case f := <-w.frames:
				select {
				case pending <- f:
				case <-ctx.Done():
					return
				}
			case <-w.gone:
				cancel()
				return
			case <-ctx.Done():
				return
			}
		}
	})
	err = s.pumpWork(ctx, c, stream, pending)
	if c.Context().Err() == nil && err != nil {
		panic(http.ErrAbortHandler)
	}
	return nil
}

// pumpWork writes frames as they come.
func (s *Server) pumpWork(ctx context.Context, c *call, stream *sse.Stream, frames <-chan workFrame) error {
	silence := time.NewTicker(s.cfg.Limits.KeepAlive)
	defer silence.Stop()
	for {
		select {
		case f := <-frames:
			if !s.cfg.Stands(c.Request) {
				return fault.New(fault.AuthFailed, "the key was revoked")
			}
			stream.Event("", f.name, f.data)
		case <-silence.C:
			if !s.cfg.Stands(c.Request) {
				return fault.New(fault.AuthFailed, "the key was revoked")
			}
			stream.Comment("keepalive")
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := stream.Flush(ctx); err != nil {
			return err
		}
	}
}

// remoteRun finds the active run of a branch that a remote producer names.
func (s *Server) remoteRun(c *call, x *scope, id string) (*run, error) {
	active := s.runs.get(x.channel)
	switch {
	case active == nil:
		return nil, fault.New(fault.Conflict, "Branch '%s' has no active run.", x.branch).Because(fault.NoRun)
	case id == "":
		return nil, fault.New(fault.Invalid, "the run is not named; say ?runtimeRunId=, or `runtimeRunId` in the first event")
	case id != active.id || !active.remote:
		return nil, fault.New(fault.Conflict, "Run '%.100s' is not active on branch '%s'.", id, x.branch).Because(fault.NoRun)
	}
	return active, mayProduce(c.who, active.name)
}

func (s *Server) postEvents(c *call) error {
	data, err := c.body()
	if err != nil {
		return err
	}
	events, err := s.cfg.Registry.ParsePublished(data, s.wireLimits())
	if err != nil {
		return err
	}
	x, err := s.scope(c)
	if err != nil {
		return err
	}
	id := c.URL.Query().Get("runtimeRunId")
	for i, e := range events {
		switch {
		case i == 0 && id == "":
			id = e.RunID
		case e.RunID != "" && e.RunID != id:
			return fault.New(fault.Conflict, "event %d is of run '%.100s', the others of '%.100s'", i, e.RunID, id).Because(fault.NoRun)
		}
	}
	active, err := s.remoteRun(c, x, id)
	if err != nil {
		return err
	}
	if err := s.publishKeyed(context.WithoutCancel(c.Context()), active, events, c.Header.Get("Idempotency-Key")); err != nil {
		return err
	}
	return c.write(http.StatusAccepted, wire.Published{Accepted: len(events)})
}

func (s *Server) postRequest(c *call) error {
	data, err := c.body()
	if err != nil {
		return err
	}
	e, _, err := s.cfg.Registry.ParseAsked(data, s.wireLimits())
	if err != nil {
		return err
	}
	x, err := s.scope(c)
	if err != nil {
		return err
	}
	id := c.URL.Query().Get("runtimeRunId")
	if id == "" {
		id = e.RunID
	}
	active, err := s.remoteRun(c, x, id)
	if err != nil {
		return err
	}
	var timeout time.Duration
	if e.TimeoutSeconds != nil {
		timeout = time.Duration(min(*e.TimeoutSeconds, int64(maxTimeout/time.Second))) * time.Second
	}
	a, err := s.ask(context.WithoutCancel(c.Context()), active, e, timeout, func(response *wire.Event, _ hub.Request) { s.answered(active, response) })
	if err != nil {
		return err
	}
	return c.write(http.StatusAccepted, wire.Asked{RequestID: a.request.RequestID})
}

// answered hands an answer to a remote producer, also to one that comes back.
func (s *Server) answered(x *run, response *wire.Event) {
	if response == nil {
		return
	}
	x.mu.Lock()
	x.answers = append(x.answers, response)
	x.mu.Unlock()
	s.notify(x, "response", responseFrame(x, response))
}

func (s *Server) postComplete(c *call) error {
	var in wire.CompleteRun
	if err := c.read(&in); err != nil {
		return err
	}
	how := outcome{}
	switch in.Status {
	case wire.RunCompleted:
	case wire.RunCancelled:
		how.cancelled = true
	case wire.RunFailed:
		how.errorType, how.message = "ProducerFailed", "The producer gave the run up."
		if in.Error != nil {
			how.message = in.Error.Message
			if in.Error.Code != "" {
				how.errorType = in.Error.Code
			}
		}
	default:
		return fault.New(fault.Invalid, "`status` is %.40q; it is completed, failed or cancelled", in.Status)
	}
	x, err := s.scope(c)
	if err != nil {
		return err
	}
	active := s.runs.get(x.channel)
	if active == nil || active.id != c.item {
		return s.completedBefore(c, x, how)
	}
	if err := mayProduce(c.who, active.name); err != nil {
		return err
	}
	if !active.remote {
		return fault.New(fault.Conflict, "run '%s' is done in the hub itself", active.id)
	}
	active.mu.Lock()
	interrupted := active.interrupted != ""
	active.mu.Unlock()
	if interrupted {
		how = outcome{cancelled: true}
	}
	err = s.complete(context.WithoutCancel(c.Context()), active, how)
	if fault.ReasonOf(err) == fault.NoRun {
		<-active.over
		return s.completedBefore(c, x, how)
	}
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, object{"status": how.status()})
}

// object is a small body.
type object = map[string]any

func (o outcome) status() string {
	switch {
	case o.cancelled:
		return wire.RunCancelled
	case o.errorType != "":
		return wire.RunFailed
	}
	return wire.RunCompleted
}

// completedBefore answers for a run that has ended: the same end again is well.
func (s *Server) completedBefore(c *call, x *scope, how outcome) error {
	all, err := s.runsOf(c, x)
	if err != nil {
		return err
	}
	for _, run := range all {
		if run.RuntimeRunID != c.item {
			continue
		}
		if err := mayProduce(c.who, run.AgentID); err != nil {
			return err
		}
		same := run.Status == how.status()
		if same && run.Error != nil {
			same = deref(run.Error.Type) == how.errorType && deref(run.Error.Message) == how.message
		}
		if !same {
			return fault.New(fault.Conflict, "Run '%s' has ended as %s.", run.RuntimeRunID, run.Status).Because(fault.NoRun)
		}
		return c.write(http.StatusOK, object{"status": run.Status})
	}
	return fault.New(fault.NotFound, "Run '%.100s' was not found on branch '%s'.", c.item, x.branch)
}

// workOf reads the messages of a run again, from its beginning in the log.
func (s *Server) workOf(ctx context.Context, x *scope, turn string, from uint64) ([]wire.ChatMessage, error) {
	var h branch.History
	for e, err := range s.hub.Log(ctx, x.channel, from, from+hub.MaxAdmitAll) {
		if err != nil {
			return nil, err
		}
		if ext := branch.ParseExt(e.Ext); !ext.Server || ext.Flow != turn {
			continue
		}
		if event, ok := branch.FromEnvelope(e); ok && whole[event.Type] {
			h.Apply(event)
		}
	}
	return h.Messages(), nil
}
