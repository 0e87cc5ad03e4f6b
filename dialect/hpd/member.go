package hpd

import (
	"context"
	"time"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/view/branch"
)

// An agent without a producer that reads the hub in another dialect is asked
// directly: it is a member of the branch, its own dialect shows it the branch, and
// its text there is the run's answer.

// member notifies a run of the actions of its agent.
type member struct {
	answered chan struct{} // has an entry once the agent has said something
	failed   chan string   // the reason why the agent failed the turn
}

func newMember() *member {
	return &member{answered: make(chan struct{}, 1), failed: make(chan string, 1)}
}

// memberListener notifies runs of the actions of their agents. The hub calls it on
// its delivery path, so it never waits.
type memberListener struct {
	hub.NoopListener
	server *Server
}

var textEnded = branch.LogType(branch.TextMessageEnd)

// EnvelopePosted handles what agents post through another dialect.
func (l memberListener) EnvelopePosted(e *envelope.Envelope, _ *channel.Metadata) {
	if e.Origin.Hops == 0 || e.Type != textEnded {
		return
	}
	if x := l.server.runs.get(e.Channel); x != nil {
		x.hear(e)
	}
}

// TurnFailed handles a turn that an agent failed.
func (l memberListener) TurnFailed(channelID, agent, _, message string) {
	x := l.server.runs.get(channelID)
	if x == nil || x.member == nil || x.agent != agent {
		return
	}
	select {
	case x.member.failed <- message:
	default:
	}
}

// ChannelEvent handles the end of a branch, which another surface of the hub can
// cause too. The branch's run then accepts nothing more, and is not given to a
// producer again.
func (l memberListener) ChannelEvent(ev hub.ChannelEvent) {
	if ev.Kind != "closed" && ev.Kind != "deleted" || l.server.runs.get(ev.Channel) == nil {
		return
	}
	l.server.background.Go(func() { l.server.drop(ev.Channel, "The branch was closed.") })
}

// hear takes an envelope as the run's answer, if it is one.
func (x *run) hear(e *envelope.Envelope) {
	if x.member == nil || e.Sender != x.agent || e.Type != textEnded || branch.ParseExt(e.Ext).Flow != x.turn {
		return
	}
	select {
	case x.member.answered <- struct{}{}:
	default:
	}
}

// awaitMember waits for a run's agent to answer, and ends the run.
func (s *Server) awaitMember(x *run) {
	how, ended := s.memberOutcome(x)
	if !ended {
		return
	}
	if _, err := s.complete(context.WithoutCancel(s.ctx), x, how); err != nil && fault.ReasonOf(err) != fault.NoRun {
		s.log.Warn("run not completed", "run", x.id, "error", err)
	}
}

// memberOutcome returns how a run ends; false if something else has ended it.
func (s *Server) memberOutcome(x *run) (how outcome, ended bool) {
	invited, cancel := context.WithTimeout(x.ctx, s.cfg.InviteTimeout)
	err := s.hub.AwaitAck(invited, x.agent, x.scope.channel)
	cancel()
	switch {
	case x.ctx.Err() != nil:
		return s.memberCut(x)
	case err != nil:
		return outcome{errorType: wire.NoProducer, message: "Agent '" + x.agentID + "' did not answer its invitation in time."}, true
	}
	// It may have answered before the run was registered here.
	if err := s.rereadLog(x); err != nil && x.ctx.Err() == nil {
		return outcome{errorType: wire.RuntimeLost, message: err.Error()}, true
	}
	away := time.NewTicker(s.cfg.ProducerGrace)
	defer away.Stop()
	gone := false
	for {
		select {
		case <-x.member.answered:
			return outcome{}, true
		case message := <-x.member.failed:
			return outcome{errorType: "ProducerFailed", message: message}, true
		case <-x.ctx.Done():
			return s.memberCut(x)
		case <-away.C:
			_, reads := s.hub.Bound(x.agent)
			if !reads && gone {
				return outcome{errorType: wire.RuntimeLost, message: "Agent '" + x.agentID + "' went away."}, true
			}
			gone = !reads
		}
	}
}

// memberCut returns the end of a run that was interrupted. A run that is
// interrupted by the server's shutdown continues at the next start: its agent is
// still asked.
func (s *Server) memberCut(x *run) (outcome, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended || x.interrupted == "" && s.ctx.Err() != nil {
		return outcome{}, false
	}
	return outcome{cancelled: true}, true
}

// askedItself reports whether the run that began at a sequence asks its agent
// directly instead of a producer.
func (s *Server) askedItself(ctx context.Context, channelID string, seq uint64) (bool, error) {
	for e, err := range s.hub.Log(ctx, channelID, seq, seq) {
		if err != nil {
			return false, err
		}
		return branch.ParseExt(e.Ext).Asked, nil
	}
	return false, nil
}

// rereadLog reads the run's envelopes from the log.
func (s *Server) rereadLog(x *run) error {
	state, err := s.state(x.ctx, x.scope.channel)
	if err != nil || state.Run == nil || state.Run.ID != x.id {
		return err
	}
	for e, err := range s.hub.Log(x.ctx, x.scope.channel, state.Run.Seq, 0) {
		if err != nil {
			return err
		}
		x.hear(e)
	}
	return nil
}
