package hpd

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"

	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/internal/wsconn"
)

// socket is a client's WebSocket. Its first valid frame subscribes the client,
// before the frame is executed.
type socket struct {
	server  *Server
	ws      *wsconn.Conn
	request *http.Request
	surface wire.Surface
	agent   string
	who     Who
	with    conversation

	ctx        context.Context
	cancel     context.CancelFunc
	subscribed sync.Once
	failed     error // of the subscription
}

// conversation is what a socket serves: a branch, or a channel of another
// dialect.
type conversation interface {
	// execute executes a frame.
	execute(k *socket, e *wire.Event) error
	// open follows the conversation from now on.
	open(k *socket) (feed, error)
}

func (s *Server) websocket(c *call) error {
	if !strings.EqualFold(c.Header.Get("Upgrade"), "websocket") {
		return c.refuse(http.StatusBadRequest, wire.InvalidRequest, "This route takes WebSocket upgrades only.")
	}
	x, err := s.scope(c)
	if err != nil {
		return err
	}
	if _, err := s.target(c.Context(), c.agent); err != nil {
		return err
	}
	return s.upgrade(c, x)
}

// upgrade opens a socket.
func (s *Server) upgrade(c *call, with conversation) error {
	k := &socket{server: s, request: c.Request, with: with, surface: c.surface, agent: c.agent, who: c.who}
	k.ctx, k.cancel = context.WithCancel(s.draining)
	if s.sockets.Accept(c.w, c.Request, newID(), c.RemoteAddr, func(ws *wsconn.Conn) wsconn.Handler {
		k.ws = ws
		return k
	}) {
		k.recheck() // the key may have been revoked before Recheck saw the socket
	}
	return nil
}

func closing(code wsconn.Code, reason string) error {
	return &wsconn.CloseError{Code: code, Reason: reason}
}

// Recheck closes the sockets whose key is no longer valid. The server calls it
// after keys were made or revoked.
func (s *Server) Recheck() {
	for _, ws := range s.sockets.All() {
		if k, ok := ws.Handler().(*socket); ok {
			k.recheck()
		}
	}
}

func (k *socket) recheck() {
	if !k.server.cfg.Stands(k.request) {
		k.ws.End(&wsconn.CloseError{Code: wsconn.Policy, Reason: string(fault.AuthFailed)})
	}
}

// Message handles a frame: an input, an interruption or a response.
func (k *socket) Message(payload []byte, binary bool) error {
	s := k.server
	if !s.cfg.Stands(k.request) {
		return closing(wsconn.Policy, string(fault.AuthFailed))
	}
	if binary {
		return closing(wsconn.NotUTF8, wire.CloseInvalid)
	}
	e, err := s.cfg.Registry.ParseFrame(wire.WellFormed(payload), s.wireLimits())
	if fault.CodeOf(err) == fault.TooLarge {
		return closing(wsconn.TooLarge, "the event is too large (limits.event)")
	}
	if err != nil {
		return closing(wsconn.NotUTF8, wire.CloseInvalid)
	}
	k.subscribed.Do(k.subscribe)
	if k.failed != nil {
		return k.closeFor(k.failed)
	}
	if err := k.with.execute(k, e); err != nil {
		return k.closeFor(err)
	}
	return nil
}

func (at *scope) execute(k *socket, e *wire.Event) error {
	s := k.server
	x, err := s.branch(k.ctx, at.session, at.branch)
	if err != nil {
		return err
	}
	if x.channel != at.channel {
		return errNoBranch(x.branch, x.session.id) // a new branch with the same name
	}
	if _, isResponse := wire.ResponseOf(e); isResponse {
		if k.who.Role == Reader {
			return nil // the caller only watches
		}
		_, err := s.respond(k.ctx, x, e, k.who)
		if _, ok := errors.AsType[*refusal](err); ok {
			return nil // no caller waits for the result
		}
		return err
	}
	if err := mayCall(k.who, toWrite); err != nil {
		return err
	}
	if _, ok := e.Payload.(wire.InterruptionRequest); ok {
		return s.interruptScope(k.ctx, x, e)
	}
	in, err := wire.InputOf(e)
	if err != nil {
		return err
	}
	_, err = s.startRun(k.ctx, x, k.agent, in, k.who)
	if _, ok := errors.AsType[*refusal](err); ok {
		return nil // its end is in the history, and was shown
	}
	return err
}

// closeFor returns the error that closes the socket with the code for err.
func (k *socket) closeFor(err error) error {
	switch fault.ReasonOf(err) {
	case fault.RunActive:
		return closing(wsconn.Policy, k.surface.Code(wire.BranchRunActive))
	case fault.NoRun:
		return closing(wsconn.Policy, k.surface.Code(wire.BranchRunNotActive))
	case fault.OutOfTurn:
		return closing(wsconn.Policy, wire.OutOfTurn)
	case fault.ChannelEnded:
		return closing(wsconn.Policy, string(fault.ChannelEnded))
	}
	switch fault.CodeOf(err) {
	case fault.NotFound:
		return closing(wsconn.NotUTF8, k.surface.CloseGone())
	case fault.Invalid, fault.Protocol:
		return closing(wsconn.NotUTF8, wire.CloseInvalid)
	case fault.TooLarge:
		return closing(wsconn.TooLarge, "the input is too large")
	case fault.AccessDenied, fault.AuthFailed:
		return closing(wsconn.Policy, string(fault.CodeOf(err)))
	}
	k.server.log.Error("a socket's frame failed", "error", err)
	return closing(wsconn.Internal, "the hub could not do this")
}

func (at *scope) open(k *socket) (feed, error) {
	w, err := k.server.watch(k.ctx, at, k.surface, "")
	if err != nil {
		return feed{}, err
	}
	return feed{func() (string, []byte, <-chan struct{}, error) { return k.server.next(k.ctx, w) }, w.follower.Close}, nil
}

// subscribe starts to show the conversation's events.
func (k *socket) subscribe() {
	from, err := k.with.open(k)
	if err != nil {
		k.failed = err
		return
	}
	if !k.ws.Go(func() { k.show(from) }) {
		from.close()
	}
}

// show sends events until the socket ends. A reader that falls too far behind
// is disconnected.
func (k *socket) show(from feed) {
	defer from.close()
	s := k.server
	defer s.attend(k.who, k.request.RemoteAddr)()
	for {
		_, data, wake, err := from.next()
		switch {
		case hub.Deleted(err):
			k.ws.End(&wsconn.CloseError{Code: wsconn.NotUTF8, Reason: k.surface.CloseGone()})
			return
		case fault.CodeOf(err) == fault.SlowReader:
			k.ws.CutOff(err) // CutOff counts and logs the error
			return
		case err != nil:
			return // the socket or the server ends
		case data != nil && !s.cfg.Stands(k.request):
			k.ws.End(&wsconn.CloseError{Code: wsconn.Policy, Reason: string(fault.AuthFailed)})
			return
		case data != nil:
			if k.ws.SendWaiting(k.ctx, wsconn.Text(data)) != nil {
				return
			}
		case wake != nil:
			select {
			case <-wake:
			case <-k.ctx.Done():
				return
			}
		}
	}
}

// Farewell answers a client's own close frame.
func (k *socket) Farewell() (wsconn.Code, string) { return wsconn.Normal, wire.CloseCompleted }

// ReadingEnded ends the subscription. Runs continue.
func (k *socket) ReadingEnded() { k.cancel() }

// Closed has nothing left to do.
func (k *socket) Closed() {}

// LogAttrs returns nil, because ids are chosen by clients.
func (k *socket) LogAttrs() []any { return nil }
