package client

import (
	"context"

	"github.com/parley-hub/parley/dialect/ag2/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
)

// call is a request that waits for its response.
type call struct {
	number    uint64 // in the order of asking
	frame     []byte
	retryable bool // may be sent once more after a reconnect
	sent      bool
	// then runs before the next frame is read.
	then func(result []byte)

	done   chan struct{}
	result []byte
	err    error
}

func (k *call) end(result []byte, err error) {
	k.result, k.err = result, err
	close(k.done)
}

// once marks operations that the hub would run twice if they were sent twice.
var once = map[wire.Op]bool{
	wire.Register:          true,
	wire.CreateChannel:     true,
	wire.ReportTurnFailure: true,
	wire.FireTaskEvent:     true,
}

// ask calls an operation and returns its result as JSON.
func (c *Client) ask(ctx context.Context, op wire.Op, params any, then func(result []byte)) ([]byte, error) {
	raw, err := wire.EncodeParams(params)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "%s: %v", op, err)
	}
	return c.askRaw(ctx, op, raw, then)
}

func (c *Client) askRaw(ctx context.Context, op wire.Op, params []byte, then func(result []byte)) ([]byte, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.opts.Timeout)
		defer cancel()
	}
	id := envelope.NewID()
	k := &call{
		frame:     wire.AppendRequest(nil, &wire.Request{ID: id, Op: op, Params: params}),
		retryable: !once[op], then: then, done: make(chan struct{}),
	}
	if len(k.frame) > wire.MaxFrame {
		return nil, fault.New(fault.TooLarge, "%s makes a frame of %d bytes; a hub takes at most %d", op, len(k.frame), wire.MaxFrame)
	}
	if err := c.put(id, k); err != nil {
		return nil, err
	}
	select {
	case <-k.done:
		return k.result, k.err
	case <-ctx.Done():
		c.mu.Lock()
		delete(c.calls, id)
		c.mu.Unlock()
		return nil, fault.Wrap(fault.Unavailable, ctx.Err(), "%s was not answered in time; whether the hub did it is not known: %v", op, ctx.Err())
	}
}

// put sends a call now, or when there is a connection again.
func (c *Client) put(id string, k *call) error {
	c.mu.Lock()
	if c.ctx.Err() != nil {
		c.mu.Unlock()
		return errGone
	}
	c.asked++
	k.number = c.asked
	c.calls[id] = k
	conn := c.conn
	k.sent = conn != nil
	c.mu.Unlock()
	if conn != nil {
		c.write(conn, k.frame)
	}
	return nil
}

func (c *Client) answered(r *wire.Response) {
	c.mu.Lock()
	k, ok := c.calls[r.ID]
	delete(c.calls, r.ID)
	c.mu.Unlock()
	if !ok {
		return
	}
	if !r.OK {
		k.end(nil, wire.ErrorOf(r.Code, r.Message))
		return
	}
	if k.then != nil {
		k.then(r.Result)
	}
	k.end(r.Result, nil)
}

// fetch asks for something and reads it into result.
func (c *Client) fetch(ctx context.Context, op wire.Op, params, result any) error {
	raw, err := c.ask(ctx, op, params, nil)
	if err != nil || result == nil {
		return err
	}
	return wire.DecodeResult(raw, result)
}

// get fetches one record.
func get[T any](ctx context.Context, c *Client, op wire.Op, params any) (*T, error) {
	result := new(T)
	if err := c.fetch(ctx, op, params, result); err != nil {
		return nil, err
	}
	return result, nil
}
