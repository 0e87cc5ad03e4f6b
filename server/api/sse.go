package api

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/sse"
	"github.com/parley-hub/parley/server/access"
)

// stream is one follower's connection.
type stream struct {
	*sse.Stream
	api  *API
	call *call
}

// Run writes as sse.Stream.Run does. It counts and logs readers that are cut off
// because they are slow.
func (s stream) Run(ctx context.Context, next func() (<-chan struct{}, error)) error {
	err := s.Stream.Run(ctx, next)
	if errors.Is(err, sse.ErrSlow) || fault.CodeOf(err) == fault.SlowReader {
		s.api.slow.Add(1)
		s.api.slowReaders.Warn(s.api.log, time.Now(), "slow reader cut off", "peer", s.call.RemoteAddr, "path", s.call.URL.Path, "error", err)
	}
	return err
}

var errRevoked = fault.New(fault.AuthFailed, "the key was revoked, or its agent removed")

// wantsStream reports whether the caller requests a stream.
func (c *call) wantsStream() (bool, error) {
	if c.Method == http.MethodHead {
		return false, nil // a stream without a body would never end
	}
	if sse.Wanted(c.Request) {
		return true, nil
	}
	return c.flag("follow")
}

// resume returns the position to continue from: a reconnecting browser sends it in
// the header, other clients as a parameter.
func (c *call) resume() string {
	if id := sse.LastEventID(c.Request); id != "" {
		return id
	}
	return c.URL.Query().Get("after")
}

// stream begins the answer. The context ends when the caller disconnects or the
// server drains; done must be called.
func (a *API) stream(c *call) (s stream, ctx context.Context, done func(), err error) {
	select {
	case a.followers <- struct{}{}:
	default:
		err := fault.New(fault.Unavailable, "%d streams are open, which is the limit (limits.followers); try again", cap(a.followers))
		err.RetryAfter = time.Second
		return stream{}, nil, nil, err
	}
	ctx, cancel := context.WithCancelCause(c.Context())
	var watching sync.WaitGroup
	watching.Go(func() { cancel(a.ends(ctx, c)) })
	s = stream{api: a, call: c, Stream: sse.Start(c.ResponseWriter, c.Request, sse.Config{
		Write: a.cfg.Limits.Write, KeepAlive: a.cfg.Limits.KeepAlive,
		Before: func(ctx context.Context, size int) (func(), error) { return a.mayWrite(ctx, c, size) },
	})}
	leave := func() {}
	if c.who.id != "" {
		leave = a.hub.Attend(c.who.id, "v1", c.Request.RemoteAddr)
	}
	return s, ctx, func() { leave(); cancel(nil); watching.Wait(); s.End(); <-a.followers }, nil
}

// errDraining is why a stream ends when the server drains.
var errDraining = fault.New(fault.Unavailable, "the hub is shutting down")

// ends waits until a stream must end and returns why: the server drains, the caller
// lost its access, or ctx ended.
func (a *API) ends(ctx context.Context, c *call) error {
	stopping := a.cfg.Stopping(ctx)
	for {
		changed := a.changed()
		if !a.stands(c.who) {
			return errRevoked
		}
		select {
		case <-changed:
		case <-stopping:
			return errDraining
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// changed returns a channel that is closed when keys or sessions change next.
func (a *API) changed() <-chan struct{} {
	bell := <-a.rechecks
	a.rechecks <- bell
	return bell
}

// recheck makes every stream check its caller's access again.
func (a *API) recheck() {
	bell := <-a.rechecks
	a.rechecks <- make(chan struct{})
	close(bell)
}

// mayWrite waits until the caller's share of all answers has room for a write. It
// refuses a caller that lost its access, and one that reads none of its answers
// meanwhile.
func (a *API) mayWrite(ctx context.Context, c *call, size int) (release func(), err error) {
	if !a.stands(c.who) {
		return nil, errRevoked
	}
	if err := c.answer.Wait(ctx, int64(size), a.cfg.Limits.Write); err != nil {
		return nil, fault.Wrap(fault.SlowReader, err, "%v", err)
	}
	return c.answer.Release, nil
}

// stands reports whether a caller still has access: its key is valid, and the agent
// of an agent's key is still registered.
func (a *API) stands(who caller) bool {
	if who.Role == access.Agent {
		if _, err := a.hub.AgentByID(who.id); err != nil {
			return false
		}
	}
	return a.cfg.Stands(who.Principal)
}

// json adds an event whose data is a value.
func (s stream) json(id, name string, value any) error {
	data, err := json.Marshal(value)
	if err == nil {
		s.Event(id, name, data)
	}
	return err
}
