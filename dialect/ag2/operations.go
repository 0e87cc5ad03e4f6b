package ag2

import (
	"context"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/dialect/ag2/wire"
	"github.com/parley-hub/parley/fault"
)

// operation runs one request and returns its result as JSON; nil is null.
type operation func(c *conn, ctx context.Context, params []byte) ([]byte, error)

// operations are all operations except register, post_envelope and create_channel,
// which answer later or continue after their answer.
var operations = map[wire.Op]operation{
	wire.GetAgent:    looking((*conn).getAgent),
	wire.GetResume:   looking((*conn).getResume),
	wire.GetSkill:    looking((*conn).getSkill),
	wire.GetRule:     looking((*conn).getRule),
	wire.FindAgentID: looking((*conn).findAgentID),
	wire.NamesFor:    looking((*conn).namesFor),
	wire.ListAgents:  listing(looking((*conn).listAgents)),
	wire.SetResume:   with((*conn).setResume),
	wire.SetSkill:    with((*conn).setSkill),
	wire.SetRule:     with((*conn).setRule),
	wire.Unregister:  with((*conn).unregister),

	wire.GetChannel:              with((*conn).getChannel),
	wire.ListChannels:            listing(with((*conn).listChannels)),
	wire.CloseChannel:            with((*conn).closeChannel),
	wire.ReadWAL:                 reading(with((*conn).readWAL)),
	wire.FindEnvelopeByCausation: with((*conn).findByCausation),
	wire.CanSend:                 with((*conn).canSend),
	wire.PendingTurnsFor:         with((*conn).pendingTurns),
	wire.ReportTurnFailure:       with((*conn).turnFailed),

	wire.GetTask:            with((*conn).getTask),
	wire.ListTasks:          listing(with((*conn).listTasks)),
	wire.ObserveTask:        with((*conn).observeTask),
	wire.UpdateTask:         with((*conn).updateTask),
	wire.RecordObservation:  with((*conn).recordObservation),
	wire.FireTaskEvent:      with((*conn).fireTaskEvent),
	wire.CheckpointTask:     with((*conn).checkpointTask),
	wire.ReadTaskCheckpoint: with((*conn).readCheckpoint),
}

// with returns an operation that decodes its parameters and calls run.
func with[P any](run func(*conn, context.Context, P) ([]byte, error)) operation {
	return func(c *conn, ctx context.Context, raw []byte) ([]byte, error) {
		var params P
		if err := wire.DecodeParams(raw, &params); err != nil {
			return nil, err
		}
		return run(c, ctx, params)
	}
}

// looking does the same as with, for operations that read the directory.
func looking[P any](run func(*conn, context.Context, P) ([]byte, error)) operation {
	return with(func(c *conn, ctx context.Context, params P) ([]byte, error) {
		if err := c.mayLook(); err != nil {
			return nil, err
		}
		return run(c, ctx, params)
	})
}

// listing bounds how often lists are made, because they are the most expensive
// operations.
func listing(run operation) operation {
	return func(c *conn, ctx context.Context, raw []byte) ([]byte, error) {
		if c.isOperator() {
			return run(c, ctx, raw)
		}
		h, who := c.server.cfg.Hub, "ag2/"+c.ws.ID()
		if err := h.MayList(who); err != nil {
			return nil, err
		}
		list, err := run(c, ctx, raw)
		h.Listed(who, len(list))
		return list, err
	}
}

// reading bounds how fast logs are read: a caller that exceeds its share waits.
func reading(run operation) operation {
	return func(c *conn, ctx context.Context, raw []byte) ([]byte, error) {
		if c.isOperator() {
			return run(c, ctx, raw)
		}
		turn := c.server.cfg.Hub.Reading("ag2/" + c.ws.ID())
		if err := turn.Wait(ctx, c.server.cfg.Limits.Write); err != nil {
			return nil, err
		}
		log, err := run(c, ctx, raw)
		turn.Done(max(len(log), leastRead))
		return log, err
	}
}

// leastRead is the minimum cost of a read.
const leastRead = 4 << 10

// actsFor returns an error if an identity was not proved on this connection. An
// unknown id is reported as not found first.
func (c *conn) actsFor(agent string) error {
	if _, err := c.server.cfg.Hub.AgentByID(agent); err != nil {
		return err
	}
	return c.bound(agent)
}

func (c *conn) bound(agent string) error {
	if c.callerFor(agent).MayActFor(agent) {
		return nil
	}
	if agent == "" {
		return fault.New(fault.AccessDenied, "connection is not bound to any agent: register one or say hello as one first")
	}
	return fault.New(fault.AccessDenied, "connection is not bound to agent '%.100s': register it or say hello as it first", agent)
}

// channel returns a channel that this connection may read.
func (c *conn) channel(ctx context.Context, id string) (*channel.Metadata, error) {
	m, err := c.server.cfg.Hub.Channel(ctx, id)
	if err != nil {
		return nil, err
	}
	err = c.server.cfg.Hub.As(c.callerIn(m)).Sees(ctx, m)
	if fault.CodeOf(err) != fault.AccessDenied {
		return m, err
	}
	return nil, fault.New(fault.AccessDenied, "no participant in channel '%.100s' is bound to this connection", id)
}
