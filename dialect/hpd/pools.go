package hpd

import (
	"context"
	"slices"
	"sync"
	"time"

	adapter "github.com/parley-hub/parley/adapter/branch"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/view/branch"
)

// pool holds all producers of one agent.
type pool struct {
	workers []*worker
	next    int
	seen    time.Time // when the last one left
	timer   *time.Timer
	runs    map[*run]*worker // nil: no producer has the run now
}

// pools holds the remote producers, by the identity of their agent.
type pools struct {
	mu       sync.Mutex
	all      map[string]*pool
	arriving map[string]int // number of connecting producers, by name
}

// arrive records that a producer is connecting, until done is called.
func (c *pools) arrive(name string) (done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.arriving == nil {
		c.arriving = map[string]int{}
	}
	c.arriving[name]++
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.arriving[name]--; c.arriving[name] == 0 {
			delete(c.arriving, name)
		}
	})
}

// of returns the pool of an agent, which may be empty. The caller holds the lock.
func (c *pools) of(agent string) *pool {
	if c.all == nil {
		c.all = map[string]*pool{}
	}
	k := c.all[agent]
	if k == nil {
		k = &pool{runs: map[*run]*worker{}}
		c.all[agent] = k
	}
	return k
}

// stop stops waiting for producers. Their runs stay open for the next process.
func (c *pools) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.all {
		if k.timer != nil {
			k.timer.Stop()
		}
	}
}

// present reports whether an agent has a producer, had one recently, or has one
// that is connecting.
func (s *Server) present(ctx context.Context, name, agent string) (bool, error) {
	s.pools.mu.Lock()
	k := s.pools.all[agent]
	there := s.pools.arriving[name] > 0 || k != nil && (len(k.workers) > 0 || !k.seen.IsZero() && s.now().Sub(k.seen) < s.cfg.ProducerGrace)
	s.pools.mu.Unlock()
	if there || s.now().Sub(s.began) >= s.cfg.ProducerGrace {
		return there, nil
	}
	// For some time after a restart, producers may not have reconnected yet.
	_, err := s.hub.Document(ctx, producerKind, agent)
	if fault.CodeOf(err) == fault.NotFound {
		return false, nil
	}
	return err == nil, err
}

// producerKind is the kind of the documents that name agents with a remote
// producer.
const producerKind = "hpd-producer"

// remember stores that an agent has a remote producer.
func (s *Server) remember(ctx context.Context, agent string) error {
	if s.remote.has(agent) {
		return nil
	}
	_, err := s.hub.PutDocument(ctx, producerKind, agent, []byte("{}"), new(uint64(0)))
	if err != nil && fault.CodeOf(err) != fault.Conflict { // otherwise it is stored already
		return err
	}
	s.remote.add(agent)
	return nil
}

// absent reports whether an agent has no producer at the moment.
func (s *Server) absent(agent string) bool {
	s.pools.mu.Lock()
	defer s.pools.mu.Unlock()
	k := s.pools.all[agent]
	return k == nil || len(k.workers) == 0
}

// keepConfig stores the configuration of a run that will wait for its producer,
// without its secrets, so that a restart does not lose it. It is written before the
// run begins, and has no effect without the run.
func (s *Server) keepConfig(ctx context.Context, x *run) error {
	if !x.remote || x.work.RunConfig == nil || !s.absent(x.agent) {
		return nil
	}
	sender, err := s.user(ctx)
	if err != nil {
		return err
	}
	ext := branch.Ext{RunConfig: wire.WithoutSecrets(x.work.RunConfig)}
	return s.note(ctx, x.scope.channel, sender, adapter.TypeWaiting, adapter.Waiting{Run: x.id}, ext)
}

// give hands a run to one of its agent's producers, or keeps it until one connects.
func (s *Server) give(x *run) {
	s.pools.mu.Lock()
	defer s.pools.mu.Unlock()
	k := s.pools.of(x.agent)
	k.runs[x] = nil
	if len(k.workers) > 0 {
		k.next++
		s.hand(k, x, k.workers[k.next%len(k.workers)])
		return
	}
	s.expect(x.agent, k)
}

// hand gives a run to a worker. The caller holds the lock.
func (s *Server) hand(k *pool, x *run, w *worker) {
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

// responseFrame returns a response's envelope with the id of its run.
func responseFrame(x *run, e *wire.Event) wire.Raw {
	data, err := e.Append(nil, wire.Branches)
	if err != nil {
		return wire.Raw("{}")
	}
	return append(data[:len(data)-1], `,"runtimeRunId":"`+x.id+`"}`...)
}

// expect waits for a producer of an agent that has runs and no producer. The caller
// holds the lock.
func (s *Server) expect(agent string, k *pool) {
	if k.timer != nil || s.ctx.Err() != nil {
		return
	}
	k.timer = time.AfterFunc(s.cfg.ProducerGrace, func() {
		if s.ctx.Err() == nil {
			s.background.Go(func() { s.giveUp(agent) })
		}
	})
}

// giveUp ends the runs of an agent whose producers did not come back.
func (s *Server) giveUp(agent string) {
	s.pools.mu.Lock()
	k := s.pools.of(agent)
	k.timer = nil
	var lost []*run
	for x, w := range k.runs {
		if w == nil && len(k.workers) == 0 {
			lost = append(lost, x)
		}
	}
	s.pools.mu.Unlock()
	for _, x := range lost {
		how := outcome{errorType: wire.RuntimeLost, message: "The producer of agent '" + x.agentID + "' went away."}
		if _, err := s.complete(context.WithoutCancel(s.ctx), x, how); err != nil && fault.ReasonOf(err) != fault.NoRun {
			s.log.Warn("run not completed", "run", x.id, "error", err)
		}
	}
}

// join adds a worker, which first gets every open run that has no worker.
func (s *Server) join(agent string, w *worker) {
	s.pools.mu.Lock()
	defer s.pools.mu.Unlock()
	k := s.pools.of(agent)
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
	w.joined = true
}

// leave removes a worker. Its runs go to another one, or wait.
func (s *Server) leave(agent string, w *worker) {
	s.pools.mu.Lock()
	defer s.pools.mu.Unlock()
	k := s.pools.of(agent)
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

// release removes a run that is over.
func (s *Server) release(x *run) {
	s.pools.mu.Lock()
	defer s.pools.mu.Unlock()
	if k := s.pools.all[x.agent]; k != nil {
		delete(k.runs, x)
	}
}

// notify sends a frame to the worker of a run.
func (s *Server) notify(x *run, name string, body any) {
	s.pools.mu.Lock()
	defer s.pools.mu.Unlock()
	if k := s.pools.all[x.agent]; k != nil && k.runs[x] != nil {
		k.runs[x].send(name, body)
	}
}
