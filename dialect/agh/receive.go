package agh

import (
	"context"
	"errors"

	"github.com/parley-hub/parley/adapter/direct"
	"github.com/parley-hub/parley/adapter/thread"
	"github.com/parley-hub/parley/adapter/work"
	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

// Reasons of the audit that are not in the protocol.
const (
	reasonSpoofed  = "spoofed"
	reasonSubject  = "subject_mismatch"
	reasonPersist  = "conversation_persist_failed"
	reasonPublish  = "publish_failed"
	reasonHops     = "too_many_hops"
	reasonOverflow = "queue_overflow"
)

// receiver returns the handler of one subscription. Each has its own budget, because a
// broker does not say who published.
func (r *netChannel) receiver(subject string) func(data []byte) {
	s := r.space.s
	limit := newBudget(s.cfg.Limits.SubscriptionRate)
	parsed, ok := wire.ParseSubject(subject)
	return func(data []byte) {
		if !ok || s.ctx.Err() != nil {
			return
		}
		if !limit.take(s.cfg.Now()) {
			s.counts.dropped.Add(1)
			return
		}
		if s.gate.Ask(s.ctx) != nil { // the serving node receives it too, or its sender retries
			s.counts.dropped.Add(1)
			return
		}
		r.receive(parsed, data)
	}
}

// incoming is an envelope that is being received.
type incoming struct {
	room *netChannel
	*wire.Envelope
	data    []byte
	options wire.Options
	trust   wire.Trust
}

// receive checks one message and handles it.
func (r *netChannel) receive(subject wire.Subject, data []byte) {
	s := r.space.s
	o := s.cfg.validation(false)
	policy := r.space.policy()
	o.V1 = subject.Version == 1
	o.PrivilegedNeedsProof = policy.Policy != TrustOff
	e, err := wire.Decode(data, o)
	if e == nil {
		s.reject(&auditOf{workspace: r.space.name, channel: r.channel, size: len(data)}, "", wire.Malformed)
		return
	}
	if !s.spend(e.From) {
		return
	}
	in := &incoming{room: r, Envelope: e, data: data, options: o}
	if r.hosted(e.From) != nil {
		r.echo(in)
		return
	}
	if !carries(subject, e) {
		why := wire.Reason(reasonSubject)
		if invalid, ok := errors.AsType[*wire.Rejection](err); ok {
			why = invalid.Reason
		}
		s.reject(in.audit(), r.sessionOf(e.To), why) // no receipt: it did not come on the peer's subject
		return
	}
	if err != nil {
		in.malformed(err, policy)
		return
	}
	var why *wire.Rejection
	if in.trust, why = policy.judge(e, data); why != nil {
		s.reject(in.audit(), r.sessionOf(e.To), why.Reason) // no receipt: a forged sender must not end the work of another
		return
	}
	if e.Kind.Discovery() && !s.received.add(e.Workspace, e.From, e.ID) {
		s.reject(in.audit(), r.sessionOf(e.To), wire.Duplicate)
		return
	}
	switch content := e.Content.(type) {
	case *wire.GreetBody:
		r.seen(&content.Card, e, in.trust)
		s.audit(in.audit(), received, "", "")
	case *wire.WhoisBody:
		in.whois(content)
	default:
		in.converse()
	}
}

// spend takes one message from a sender's budget, and counts one that exceeds it.
func (s *Server) spend(sender string) bool {
	now := s.cfg.Now()
	if s.senders.of(sender, s.cfg.Limits.SenderRate, now).take(now) {
		return true
	}
	s.counts.dropped.Add(1)
	return false
}

// carries reports whether an envelope came on its own subject. Another protocol on a
// subject of v0 is malformed, and answered like other malformed ones.
func carries(subject wire.Subject, e *wire.Envelope) bool {
	if subject.Version == 0 && e.Version() != 0 {
		other := *e
		other.Protocol = wire.Protocol
		return subject.Carries(&other)
	}
	return subject.Carries(e)
}

func (in *incoming) audit() *auditOf { return about(in.Envelope, len(in.data)) }

// echo handles a message with the name of a hosted peer: our own, which the broker
// sends back, or one of somebody who uses the name.
func (r *netChannel) echo(in *incoming) {
	s := r.space.s
	if s.published.has(in.From, in.ID) {
		return
	}
	if in.Kind.Conversation() {
		for _, kind := range []string{thread.Type, direct.Type} {
			if _, known, err := r.space.entry(s.ctx, kind, work.IDKey(in.ID, in.From)); known || err != nil {
				return
			}
		}
	}
	s.reject(in.audit(), r.sessionOf(in.From), reasonSpoofed)
}

// malformed rejects an invalid message, and answers directed work. If the trust policy
// would refuse it, there is no answer: a receipt can end the work of the claimed sender.
func (in *incoming) malformed(err error, policy *trustPolicy) {
	s := in.room.space.s
	var why *wire.Rejection
	if !errors.As(err, &why) {
		return
	}
	s.reject(in.audit(), in.room.sessionOf(in.To), why.Reason)
	if !why.Answerable && why.Reason != wire.Expired {
		return
	}
	if _, unproved := policy.judge(in.Envelope, in.data); unproved == nil {
		in.answer(why.Reason)
	}
}

// whois answers a question, or stores an answer.
func (in *incoming) whois(body *wire.WhoisBody) {
	r, s := in.room, in.room.space.s
	s.audit(in.audit(), received, "", "")
	if body.Response {
		r.seen(body.Card, in.Envelope, in.trust)
		if p := r.hosted(in.To); p != nil {
			p.tell(&waiting{id: clone(in.ID), from: clone(in.From), data: in.data, meta: in.audit()})
		}
		return
	}
	for _, p := range r.asked(in.Envelope) {
		e, data, err := p.introduce(in.Envelope)
		if err == nil {
			err = s.publish(e, data, p.session)
		}
		if err != nil {
			s.cfg.Log.Debug("a whois was not answered", "peer_id", p.id, "error", err)
		}
	}
}

// converse stores a message for a hosted peer, and answers it if an answer is due.
func (in *incoming) converse() {
	r, sp := in.room, in.room.space
	if in.To != "" && r.hosted(in.To) == nil {
		sp.s.counts.notTarget.Add(1)
		return
	}
	if tooManyHops(in.ID, wire.Hops(in.Ext), sp.s.cfg.MaxHops+1) != nil {
		sp.s.reject(in.audit(), r.sessionOf(in.To), reasonHops)
		return
	}
	told := r.told(in.Envelope)
	to := actor{}
	switch {
	case in.To == "" && !in.opens():
		if !in.concerns(sp.s.ctx) {
			return
		}
	case len(told) == 0:
		return // for nobody here, or another room: no answer, and the work is not bound
	case in.To != "" || in.Surface == wire.Direct:
		to = actor{told[0].id, told[0].agent}
	}
	from, err := sp.adopt(clone(in.From))
	if err != nil {
		sp.s.reject(in.audit(), r.sessionOf(in.To), reasonPersist)
		return
	}
	p, record, err := sp.submit(sp.s.ctx, r, in.Envelope, in.data, from, to)
	if err != nil {
		in.settle(nil, err)
		return
	}
	in.await(p, record)
}

// await settles a message once it is durable. Meanwhile the next one is admitted.
func (in *incoming) await(p *hub.Pending, record *envelope.Envelope) {
	s := in.room.space.s
	s.waiting <- struct{}{}
	s.work.Add(1)
	settle := func() {
		defer s.work.Done()
		defer func() { <-s.waiting }()
		_, err := p.Wait(s.ctx)
		s.submitted.remove(record)
		in.settle(p, in.room.space.explain(s.ctx, in.Envelope, err))
	}
	ended := p.OnEnd(func() {
		if _, err := p.Wait(s.ctx); err != nil || p.Repeated() {
			go settle() // an answer may be due, and sending it blocks
			return
		}
		s.submitted.remove(record)
		<-s.waiting
		s.work.Done()
	})
	if !ended {
		go settle()
	}
}

func (in *incoming) opens() bool { return in.Kind == wire.Say || in.Kind == wire.Capability }

// concerns reports whether a message without addressee is about work of a hosted peer.
func (in *incoming) concerns(ctx context.Context) bool {
	row, ok, err := in.room.space.workRow(ctx, in.Work)
	return err == nil && ok && row.container() == in.Container() &&
		(in.room.hosted(row.Work.Opener) != nil || in.room.hosted(row.Work.Target) != nil)
}

// settle handles the result of storing a message.
func (in *incoming) settle(p *hub.Pending, err error) {
	s := in.room.space.s
	session := in.room.sessionOf(in.To)
	switch why := fault.ReasonOf(err); {
	case err == nil && !p.Repeated():
	case err == nil, errors.Is(err, errSeen):
		s.reject(in.audit(), session, wire.Duplicate)
		in.answer(wire.Duplicate)
	case why == fault.WorkClosed:
		s.reject(in.audit(), session, wire.WorkClosed)
		in.answer(wire.WorkClosed)
	case why == fault.Taken:
		s.reject(in.audit(), session, wire.WorkContainerMismatch)
		in.answer(wire.WorkContainerMismatch)
	case why == fault.WorkStep:
		s.reject(in.audit(), session, wire.Internal)
	case why == fault.WorkActor || why == fault.WorkUnknown:
		s.counts.ignored.Add(1)
	case fault.CodeOf(err) == fault.Invalid:
		s.reject(in.audit(), session, wire.Malformed)
	default:
		s.reject(in.audit(), session, reasonPersist)
	}
}

// answer sends the receipt for a rejected message, from the peer that it was addressed
// to. A receipt that the lifecycle accepts is stored first.
func (in *incoming) answer(why wire.Reason) {
	r, sp := in.room, in.room.space
	s := sp.s
	p := r.hosted(in.To)
	if p == nil || in.Work == "" {
		return
	}
	row, known, err := sp.workRow(s.ctx, in.Work)
	if err != nil {
		return
	}
	o := in.options
	o.Now = s.cfg.Now().Unix()
	receipt, ok := wire.Answer(in.Envelope, why, row.container(), o)
	if !ok {
		return
	}
	if !s.spend(in.From) { // an answer counts against the sender's budget too
		return
	}
	data, err := p.seal(receipt)
	if err != nil {
		return
	}
	o.SkipFreshness, o.Secrets, o.V1, o.Strict, o.Storable = true, nil, true, true, false // as wire.Answer
	if receipt, err = wire.Decode(data, o); err != nil {
		return
	}
	// An answer to a sender outside the work must not change the work.
	if known && (row.Work.Opener == in.From || row.Work.Target == in.From) && row.container() == receipt.Container() {
		if to, err := sp.adopt(clone(in.From)); err == nil {
			if _, err := sp.admit(s.ctx, r, receipt, data, actor{p.id, p.agent}, to); err == nil {
				return // the outbox publishes it
			}
		}
	}
	if err := s.publish(receipt, data, p.session); err != nil {
		s.reject(about(receipt, len(data)), p.session, reasonPublish)
	}
}
