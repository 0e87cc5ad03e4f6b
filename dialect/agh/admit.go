package agh

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/parley-hub/parley/adapter/direct"
	"github.com/parley-hub/parley/adapter/thread"
	"github.com/parley-hub/parley/adapter/work"
	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

// actor is the identity of a peer id in a channel.
type actor struct {
	peer  string
	agent string // the identity's id; empty: it is not hosted here
}

// knobs are what a channel of the workspace is opened with.
func (sp *space) knobs(channel string, k work.Knobs) ([]byte, error) {
	k.Workspace, k.Channel = sp.name, channel
	text, err := k.AppendJSON(nil)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "%v", err)
	}
	return text, nil
}

// threadName names a thread in its workspace.
func threadName(channel, id string) string { return channel + "/" + id }

// opening returns the channel that a conversation's first message opens.
func (sp *space) opening(r *netChannel, c wire.Container, from, to actor) (hub.Opening, error) {
	o := hub.Opening{Home: sp.home.ID, Creator: from.agent, Dialect: wire.Dialect}
	var k work.Knobs
	if c.Surface == wire.Thread {
		o.Type, o.Name, o.MembersOf = thread.Type, threadName(c.Channel, c.ID), r.id
		k.Thread = c.ID
	} else {
		o.Type, o.Name = direct.Type, c.ID
		o.Participants = []string{from.agent}
		if to.agent != from.agent {
			o.Participants = append(o.Participants, to.agent)
		}
		k.Direct, k.Peers = c.ID, []string{from.peer, to.peer}
		slices.Sort(k.Peers)
	}
	var err error
	o.Knobs, err = sp.knobs(c.Channel, k)
	return o, err
}

// admit stores a message, and waits until it is durable and queued.
func (sp *space) admit(ctx context.Context, r *netChannel, e *wire.Envelope, data []byte, from, to actor) (*hub.Pending, error) {
	p, record, err := sp.submit(ctx, r, e, data, from, to)
	if err != nil {
		return nil, err
	}
	defer sp.s.submitted.remove(record)
	_, err = p.Wait(ctx)
	return p, sp.explain(ctx, e, err)
}

// submit is admit without waiting; messages are stored in the order in which
// they are submitted. The caller removes the record from the submitted ones when the
// message is stored or refused.
func (sp *space) submit(ctx context.Context, r *netChannel, e *wire.Envelope, data []byte, from, to actor) (*hub.Pending, *envelope.Envelope, error) {
	record, err := wire.Record(e, data)
	if err != nil {
		return nil, nil, err
	}
	record.Sender, record.To, record.Causation = from.agent, to.agent, sp.cause(ctx, e)
	if len(e.Trace) <= envelope.MaxField { // else it is in ext only
		record.Trace = e.Trace
	}
	o, err := sp.opening(r, e.Container(), from, to)
	if err != nil {
		return nil, nil, err
	}
	sp.s.submitted.add(record, e)
	return sp.s.hub.AdmitNamed(traced(ctx, e), o, record, nil), record, nil
}

// submitted are the messages that are being stored, by their records, so that the
// listener does not decode them again.
type submitted struct {
	mu      sync.Mutex
	decoded map[*envelope.Envelope]*wire.Envelope
}

func (s *submitted) add(record *envelope.Envelope, e *wire.Envelope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.decoded == nil {
		s.decoded = map[*envelope.Envelope]*wire.Envelope{}
	}
	s.decoded[record] = e
}

func (s *submitted) remove(record *envelope.Envelope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.decoded, record)
}

// message is wire.Message of a record that was submitted or not.
func (s *submitted) message(record *envelope.Envelope) (*wire.Envelope, []byte, error) {
	s.mu.Lock()
	e := s.decoded[record]
	s.mu.Unlock()
	if e == nil {
		return wire.Message(record)
	}
	data, err := wire.Bytes(record)
	return e, data, err
}

// lifecycle maps the lifecycle's refusals to reasons of the protocol.
var lifecycle = map[fault.Reason]wire.Reason{
	fault.WorkClosed: wire.WorkClosed,
	fault.Taken:      wire.WorkContainerMismatch,
	fault.WorkStep:   wire.Internal,
}

// errSeen refuses a message that its sender posted in the conversation before under
// another id.
var errSeen = errors.New("it was said here before")

// explain adds to a refusal whether the work belongs to another conversation, or the
// message is a copy of one that was posted elsewhere first.
func (sp *space) explain(ctx context.Context, e *wire.Envelope, err error) error {
	switch fault.ReasonOf(err) {
	case fault.Taken:
		if wire.Hops(e.Ext) == 0 {
			break
		}
		row, ok, lookErr := sp.workRow(ctx, e.Work)
		if lookErr != nil {
			return lookErr
		}
		if e.Work == "" || !ok || row.container() == e.Container() {
			return fault.Wrap(fault.Conflict, errSeen, "%v", err).Because(fault.Taken)
		}
	case fault.WorkUnknown:
		if row, ok, lookErr := sp.workRow(ctx, e.Work); lookErr != nil || !ok || row.container() == e.Container() {
			return cmp.Or(lookErr, err)
		}
	default:
		return err
	}
	return fault.Wrap(fault.Conflict, err, "the work %.150q belongs to another conversation; continue it there, or open new work", e.Work).Because(fault.Taken)
}
