package ag2

import (
	"context"
	"errors"

	"github.com/parley-hub/parley/dialect/ag2/wire"
	"github.com/parley-hub/parley/fault"
)

// work handles the received messages, in order, until none is queued.
func (c *conn) work() {
	var failed error
	defer func() {
		if failed != nil {
			c.ws.End(failed)
		}
	}()
	defer c.ws.Recover(&failed)
	var batch []received
	for {
		if batch = c.inbox.take(batch); batch == nil {
			return
		}
		for _, message := range batch {
			c.handle(c.ctx, message)
		}
	}
}

// handle handles one message.
func (c *conn) handle(ctx context.Context, message received) {
	if err := message.err; err != nil {
		if bad, ok := errors.AsType[*wire.Malformed](err); ok && bad.RequestID != "" {
			_ = c.ws.SendText(wire.AppendFailure(nil, bad.RequestID, bad.Err))
			return
		}
		c.malformed(err)
		return
	}
	switch f := message.frame.(type) {
	case *wire.Post:
		c.post(ctx, f)
	case *wire.Request:
		c.request(ctx, f)
	case *wire.Receipt:
		c.receipt(ctx, f)
	case *wire.Hello:
		c.hello(ctx, f)
	case *wire.Ping:
		_ = c.ws.SendText([]byte(wire.PongFrame))
	}
	// Frames of other kinds are sent by hubs only, and are ignored.
}

// hello binds an existing identity, and replays what it missed. Exactly one welcome
// or error is the answer.
func (c *conn) hello(ctx context.Context, h *wire.Hello) {
	hub := c.server.cfg.Hub
	profile, err := hub.Authenticate(ctx, h.Name, h.Scheme, h.Claim)
	if err == nil {
		err = c.adopt(profile.Passport, h.Scheme, h.Claim)
	}
	if err == nil && h.Since == nil {
		err = hub.Bind(profile.ID(), c)
	}
	if err != nil {
		c.failed(h.Name, err)
		_ = c.ws.SendText(wire.AppendRefusal(nil, err))
		return
	}
	_ = c.ws.SendText(wire.AppendWelcome(nil, c.ID(), c.server.cfg.Now()))
	if h.Since == nil {
		return
	}
	// The identity is bound only now, so that nothing new is sent before what it
	// missed.
	if err := hub.BindReplaying(ctx, profile.ID(), c, *h.Since); err != nil {
		c.server.cfg.Log.Warn("replay stopped", "endpoint_id", c.ID(), "agent_id", profile.ID(), "error", err)
		c.CutOff(err) // the client reconnects and gets a replay of what it missed
		return
	}
	c.replayForeign(ctx, profile.ID(), *h.Since)
}

// receipt moves the cursor of an identity of this connection. Once the identity
// reads on another connection, only that connection's receipts count: it may still
// handle what was replayed to it.
func (c *conn) receipt(ctx context.Context, r *wire.Receipt) {
	if r.Recipient == "" || r.Channel == "" || !c.callerFor(r.Recipient).MayActFor(r.Recipient) {
		return
	}
	hub := c.server.cfg.Hub
	if at, bound := hub.Bound(r.Recipient); bound && at != c.ID() && !c.server.cfg.TrustClients {
		return
	}
	switch r.Status {
	case wire.Ack:
		if err := hub.Ack(ctx, r.Recipient, r.Channel, r.Envelope); err != nil {
			c.server.cfg.Log.Warn("receipt not stored", "agent_id", r.Recipient, "channel_id", r.Channel, "envelope_id", r.Envelope, "error", err)
		}
	case wire.Nack:
		hub.Nack(r.Recipient, r.Channel, r.Envelope, r.Reason)
	}
}

// request runs an operation other than a post, and answers it.
func (c *conn) request(ctx context.Context, r *wire.Request) {
	switch r.Op {
	case wire.CreateChannel:
		c.open(ctx, r)
	case wire.Register:
		c.register(ctx, r)
	default:
		run, ok := operations[r.Op]
		if !ok {
			_ = c.ws.SendText(wire.AppendFailure(nil, r.ID, fault.New(fault.Protocol, "unknown control-plane op %.100q", r.Op)))
			return
		}
		result, err := run(c, ctx, r.Params)
		c.respond(r.ID, result, err)
	}
}

// open runs create_channel concurrently with the other work, because the invitees
// may answer over the same connection.
func (c *conn) open(ctx context.Context, r *wire.Request) {
	if open := c.openings.Add(1); open > int64(c.server.cfg.Limits.Openings) {
		c.openings.Add(-1)
		c.respond(r.ID, nil, fault.New(fault.TooLarge, "%d channels are being opened by this connection, which is the limit (ag2.limits.openings); wait for some", open-1))
		return
	}
	started := c.ws.Go(func() {
		defer c.openings.Add(-1)
		var failed error
		defer func() {
			if failed != nil {
				c.respond(r.ID, nil, fault.New(fault.Internal, "internal error"))
			}
		}()
		defer c.ws.Recover(&failed)
		result, err := c.createChannel(ctx, r.Params)
		c.respond(r.ID, result, err)
	})
	if !started {
		c.openings.Add(-1)
	}
}

func (c *conn) respond(requestID string, result []byte, err error) {
	if err != nil {
		_ = c.ws.SendText(wire.AppendFailure(nil, requestID, err))
		return
	}
	_ = c.ws.SendText(wire.AppendResult(make([]byte, 0, len(result)+128), requestID, result))
}
