package agh

import (
	"context"
	"errors"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/adapter/direct"
	"github.com/parley-hub/parley/adapter/thread"
	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

// The document with the position up to which everything is published.
const (
	outboxKind = "agh-outbox"
	outboxName = "position"
)

// drainWithin bounds how long a stopping runtime waits for messages to be published.
const drainWithin = 3 * time.Second

// idle reports whether every message that was pushed is published or dropped.
func (o *outbox) idle() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.list) == 0 && len(o.deferred) == 0 && !o.busy
}

// drain waits until the outbox is idle, if there is a broker.
func (o *outbox) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, drainWithin)
	defer cancel()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for !o.idle() && o.s.broken.Load() == nil {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// outboxMark is a position of the hub, with the number of messages that had been
// pushed when it was read.
type outboxMark struct {
	at     hub.WidePosition
	pushed uint64
}

// farBehind bounds how many records of others may follow the written position: so many
// are read when the hub starts.
const farBehind = 10_000

// position returns the edit that stores the outbox's progress; false: there is none.
// Records that were durable at the previous call are in the outbox by now: if it is
// idle, everything up to that position is published. The last call of a stopping
// runtime needs no second one. Without new messages nothing is written, because
// writing moves the hub's position.
func (o *outbox) position(ctx context.Context, last bool) (hub.DocumentEdit, bool) {
	if !o.idle() {
		o.candidate = outboxMark{}
		return hub.DocumentEdit{}, false
	}
	o.mu.Lock()
	now := outboxMark{pushed: o.pushed}
	o.mu.Unlock()
	var err error
	if now.at, err = o.s.hub.Now(ctx); err != nil {
		return hub.DocumentEdit{}, false
	}
	done := o.candidate
	o.candidate = now
	if last {
		done = now
	}
	news := done.pushed != o.written.pushed || done.at.Epoch != o.written.at.Epoch || done.at.Offset > o.written.at.Offset+farBehind
	if done.at.IsZero() || !news && !last || done.at == o.written.at {
		return hub.DocumentEdit{}, false
	}
	text, err := json.Marshal(done.at.String())
	if err != nil {
		return hub.DocumentEdit{}, false // digits and dots
	}
	o.written = done
	return hub.DocumentEdit{Kind: outboxKind, Name: outboxName, Data: text}, true
}

// recoverOutbox queues the messages of hosted peers that a crash kept from being
// published. Those that are no longer fresh are dropped.
func (s *Server) recoverOutbox(ctx context.Context) error {
	doc, err := s.hub.Document(ctx, outboxKind, outboxName)
	if fault.CodeOf(err) == fault.NotFound {
		if s.outbox == nil {
			return nil
		}
		return s.beginOutbox(ctx)
	}
	if err != nil {
		return err
	}
	if s.outbox == nil { // without a broker nothing waits
		_, err := s.hub.EditDocuments(ctx, []hub.DocumentEdit{{Kind: outboxKind, Name: outboxName, Remove: true}})
		return err
	}
	var text string
	if err := json.Unmarshal(doc.Data, &text); err != nil {
		return fault.Wrap(fault.Internal, err, "the position of AGH's outbox cannot be read: %v", err)
	}
	after, err := hub.ParseWidePosition(text)
	if err != nil {
		return err
	}
	s.outbox.written.at = after
	return s.publishAfter(ctx, after)
}

// beginOutbox stores where the outbox begins, before anything is in it.
func (s *Server) beginOutbox(ctx context.Context) error {
	now, err := s.hub.Now(ctx)
	if err != nil {
		return err
	}
	text, err := json.Marshal(now.String())
	if err != nil {
		return fault.Wrap(fault.Internal, err, "%v", err) // digits and dots
	}
	s.outbox.written.at = now
	_, err = s.hub.EditDocuments(ctx, []hub.DocumentEdit{{Kind: outboxKind, Name: outboxName, Data: text}})
	return err
}

// publishAfter queues what was stored after a position.
func (s *Server) publishAfter(ctx context.Context, after hub.WidePosition) error {
	now, err := s.hub.Now(ctx)
	if err != nil {
		return err
	}
	f, err := s.hub.FollowAll(ctx, hub.WideOptions{After: after})
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		ev, ok, err := f.NextUntil(ctx, now)
		if _, ok := errors.AsType[*hub.WideGap](err); ok { // restored from a backup: what was published is unknown
			s.cfg.Log.Warn("AGH's outbox starts again: its position belongs to another history", "error", err)
			return nil
		}
		if err != nil || !ok {
			return err
		}
		if kind := ev.Channel.Manifest.Type; kind != thread.Type && kind != direct.Type {
			continue
		}
		s.mu.RLock()
		sp := s.homes[hub.HomeOf(ev.Channel.ID)]
		s.mu.RUnlock()
		e, data, err := wire.Message(ev.Envelope)
		if sp == nil || err != nil {
			continue
		}
		r, err := sp.find(e.Channel)
		if err != nil {
			continue
		}
		if p := r.hosted(e.From); p != nil && p.agent == ev.Envelope.Sender {
			s.outbox.push(outgoingOf(p, e, waitingOf(e, data, ev.Envelope)))
		}
	}
}
