package agh

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/jsonbuf"
	"github.com/parley-hub/parley/internal/jsonscan"
)

// mostWait is how long a request may wait for a message.
const mostWait = 60 * time.Second

func (c *call) mySession() (*peer, error) {
	sp, err := c.space()
	if err != nil {
		return nil, err
	}
	q := c.URL.Query()
	id := q.Get("session_id")
	if id == "" {
		id = q.Get("session")
	}
	if id == "" {
		return nil, fault.New(fault.Invalid, "`session_id` is missing; it says whose inbox is meant")
	}
	p, err := sp.session(id)
	if err != nil {
		return nil, err
	}
	return p, c.owns(p)
}

// inbox lists the messages that wait for a hosted peer, oldest first. It changes
// nothing.
func (c *call) inbox() error {
	p, err := c.mySession()
	if err != nil {
		return err
	}
	q := c.URL.Query()
	if only := q.Get("channel"); only != "" && only != p.room.channel {
		return c.answer(http.StatusOK, map[string]any{"messages": []any{}})
	}
	var patience time.Duration
	if q.Has("wait") {
		if patience, err = time.ParseDuration(q.Get("wait")); err != nil || patience < 0 || patience > mostWait {
			return fault.New(fault.Invalid, "`wait` is a duration of at most %s, such as 30s, not %.40q", mostWait, q.Get("wait"))
		}
	}
	c.share.EndTurn() // others may read while it waits
	list, err := p.awaitMessages(c.Context(), patience)
	if !c.s.cfg.Stands(c.Request) {
		return fault.New(fault.AuthFailed, "the key was revoked while the request waited")
	}
	if err == nil {
		err = c.share.Begin(c.Context(), c.s.cfg.Limits.Write)
	}
	if err != nil {
		return err
	}
	return c.list("messages", func(add func(any) error) error {
		for _, m := range list {
			e, data, err := c.s.read(c.Context(), m)
			if fault.CodeOf(err) == fault.NotFound {
				continue
			}
			if err != nil {
				return err
			}
			payload, err := payloadOf(data, trustOf(e, data))
			if err != nil {
				return err
			}
			if err := add(payload); err != nil {
				return err
			}
		}
		return nil
	})
}

// payloadShape is a waiting envelope as payloadOf returns it.
type payloadShape struct {
	Protocol    string         `json:"protocol"`
	ID          string         `json:"id"`
	WorkspaceID string         `json:"workspace_id"`
	Kind        wire.Kind      `json:"kind"`
	Channel     string         `json:"channel"`
	Surface     wire.Surface   `json:"surface,omitempty"`
	ThreadID    string         `json:"thread_id,omitempty"`
	DirectID    string         `json:"direct_id,omitempty"`
	From        string         `json:"from"`
	To          string         `json:"to,omitempty"`
	WorkID      string         `json:"work_id,omitempty"`
	ReplyTo     string         `json:"reply_to,omitempty"`
	TraceID     string         `json:"trace_id,omitempty"`
	CausationID string         `json:"causation_id,omitempty"`
	TS          int64          `json:"ts"`
	ExpiresAt   int64          `json:"expires_at,omitempty"`
	Body        jsontext.Value `json:"body"`
	Proof       jsontext.Value `json:"proof,omitempty"`
	Ext         jsontext.Value `json:"ext,omitempty"`
	Trust       wire.Trust     `json:"trust"`
}

// awaitMessages lists what waits, as soon as there is something or the time is over.
func (p *peer) awaitMessages(ctx context.Context, patience time.Duration) ([]*waiting, error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		list, wake := p.queue.snapshot()
		if len(list) > 0 || patience == 0 {
			return list, nil
		}
		select {
		case <-wake:
		case <-timer.C:
			return nil, nil
		case <-p.room.space.s.draining.Done():
			return nil, nil
		case <-ctx.Done():
			return nil, fault.Wrap(fault.Unavailable, ctx.Err(), "the request ended")
		}
	}
}

// payloadOf returns an envelope without null members, and with what is known of its
// sender.
func payloadOf(data []byte, trust wire.Trust) (jsontext.Value, error) {
	b := &jsonbuf.Buffer{Bytes: make([]byte, 0, len(data))}
	b.Open('{')
	for name, value := range jsonscan.Members(data) {
		if !jsonscan.IsNull(value) {
			b.Key(string(name)).Value(value)
		}
	}
	b.Key("trust").String(string(trust))
	text, err := b.Close('}').Result()
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "%v", err)
	}
	return text, nil
}

// done removes a message that a hosted peer has handled.
func (c *call) done() error {
	name, ok := strings.CutSuffix(c.PathValue("message_id"), "/done")
	if !ok {
		return fault.New(fault.NotFound, "there is nothing at %s; a message is finished with POST …/inbox/{message_id}/done", c.URL.Path)
	}
	p, err := c.mySession()
	if err != nil {
		return err
	}
	m := p.queue.done(name)
	if m == nil {
		return fault.New(fault.NotFound, "no message %.150q is waiting for %q", name, p.id)
	}
	p.settle(m)
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// Turn handles one message of a hosted peer. If it fails, the message returns to the
// head of the queue.
type Turn func(ctx context.Context, e *wire.Envelope) error

// Attend passes a hosted peer's messages to turn, one at a time, until ctx ends or
// the peer leaves. At most one call attends a peer.
func (s *Server) Attend(ctx context.Context, workspace, session string, turn Turn) error {
	sp, err := s.find(workspace)
	if err != nil {
		return err
	}
	p, err := sp.session(session)
	if err != nil {
		return err
	}
	if !p.queue.attend(true) {
		return fault.New(fault.Conflict, "the peer %q is attended already", p.id)
	}
	defer p.queue.attend(false)
	delay := firstDelay
	for {
		m, err := p.queue.take(ctx)
		if err != nil {
			return endOf(ctx, err)
		}
		if err := p.run(ctx, m, turn); err == nil {
			delay = firstDelay
			continue
		} else if ctx.Err() != nil {
			return ctx.Err()
		}
		timer := time.NewTimer(delay)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
		delay = min(2*delay, mostDelay)
	}
}

// run takes one turn.
func (p *peer) run(ctx context.Context, m *waiting, turn Turn) error {
	e, _, err := p.room.space.s.read(ctx, m)
	if fault.CodeOf(err) == fault.NotFound { // its conversation was deleted, so there is nothing to do
		p.queue.finish(m, true)
		p.queue.passed(m.order)
		return nil
	}
	if err == nil {
		err = turn(ctx, e)
	}
	if err == nil && ctx.Err() != nil {
		err = ctx.Err() // cancelled, so it may not have finished
	}
	p.queue.finish(m, err == nil)
	if err == nil {
		p.settle(m)
	}
	return err
}

func endOf(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, context.Canceled) {
		return ctx.Err()
	}
	return err
}
