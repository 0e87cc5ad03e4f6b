package agh

import (
	"strings"
	"sync/atomic"
	"time"

	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/hub"
)

// direction says what happened to an envelope in an audit record.
type direction string

const (
	sent      direction = "sent"      // published
	received  direction = "received"  // accepted, for one hosted peer
	rejected  direction = "rejected"  // with a reason
	delivered direction = "delivered" // its turn is finished
)

// auditKind is the kind of the runtime's audit records.
const auditKind = "agh_message"

// auditOf has the fields of an envelope that audit records contain. It is immutable
// and shared by the peers that receive the envelope.
type auditOf struct {
	workspace, kind, channel, surface, thread, direct, work string
	from, to, id, trace                                     string
	size                                                    int
	workflow, handoff                                       bool  // tagged in ext
	unaudited                                               int64 // earlier rejections that were only counted
}

// about returns the fields for the audit. It shares memory with the envelope.
func about(e *wire.Envelope, size int) *auditOf {
	a := &auditOf{
		workspace: e.Workspace, kind: string(e.Kind), channel: e.Channel, surface: string(e.Surface),
		thread: e.Thread, direct: e.Direct, work: e.Work, from: e.From, to: e.To, id: e.ID, trace: e.Trace, size: size,
	}
	a.copyTexts()
	a.workflow, a.handoff = tags(e.Ext)
	return a
}

// audit counts what happened to an envelope and, for conversations, writes an audit
// record. Greetings and whois questions are only counted.
func (s *Server) audit(a *auditOf, d direction, session, reason string) {
	s.counts.count(a, d)
	s.measure(a, d, reason)
	s.countRemote(a, d)
	if k := wire.Kind(a.kind); d != rejected && k.Discovery() {
		return
	}
	s.ledger.note(auditNote{a.bounded(), d, session, reason, s.cfg.Now()})
}

// auditNote is an audit record that is not written yet.
type auditNote struct {
	of              *auditOf
	direction       direction
	session, reason string
	at              time.Time
}

// fields returns the record's fields, ordered by name.
func (n *auditNote) fields() []hub.AuditField {
	a := n.of
	all := make([]hub.AuditField, 0, 17)
	text := func(name, value string) { // empty ones are left out
		if value != "" {
			all = append(all, hub.AuditField{Name: name, Text: value})
		}
	}
	// These are present even if empty: a rejected envelope may lack them.
	always := func(name, value string) { all = append(all, hub.AuditField{Name: name, Text: value}) }
	number := func(name string, n int64) {
		all = append(all, hub.AuditField{Name: name, IsNumber: true, Number: n})
	}
	always("channel", a.channel)
	text("direct_id", a.direct)
	text("direction", string(n.direction))
	always("message_id", a.id)
	text("message_kind", a.kind)
	always("peer_from", a.from)
	text("peer_to", a.to)
	text("reason", n.reason)
	text("session_id", n.session)
	number("size", int64(a.size))
	text("surface", a.surface)
	text("thread_id", a.thread)
	text("timestamp", n.at.UTC().Format(time.RFC3339Nano))
	text("trace_id", a.trace)
	if a.unaudited > 0 {
		number("unaudited", a.unaudited)
	}
	text("work_id", a.work)
	always("workspace_id", a.workspace)
	return all
}

// mostText bounds a field of an audit record: those of a rejected envelope may have
// any length.
const mostText = 256

// texts returns the fields that come from the envelope.
func (a *auditOf) texts() [11]*string {
	return [...]*string{&a.workspace, &a.kind, &a.channel, &a.surface, &a.thread, &a.direct, &a.work, &a.from, &a.to, &a.id, &a.trace}
}

// copyTexts copies the members out of the envelope that they share memory with, all into
// one piece.
func (a *auditOf) copyTexts() {
	texts, size := a.texts(), 0
	for _, s := range texts {
		size += len(*s)
	}
	var all strings.Builder
	all.Grow(size)
	for _, s := range texts {
		all.WriteString(*s)
	}
	rest := all.String()
	for _, s := range texts {
		*s, rest = rest[:len(*s)], rest[len(*s):]
	}
}

// masked replaces a field that looks like a secret: only body, proof and ext are
// scanned, and a rejected envelope may have anything anywhere.
const masked = "[secret]"

// bounded returns a copy with long fields truncated and secrets masked.
func (a *auditOf) bounded() *auditOf {
	b := a
	for i, s := range a.texts() {
		kept := cut(*s)
		if wire.LooksSecret(kept) {
			kept = masked
		}
		if kept == *s {
			continue
		}
		if b == a {
			b = new(*a)
		}
		*b.texts()[i] = kept
	}
	return b
}

func cut(s string) string {
	if len(s) <= mostText {
		return s
	}
	return strings.Clone(strings.ToValidUTF8(s[:mostText], ""))
}

// countRemote counts an envelope from or to a present remote peer.
func (s *Server) countRemote(a *auditOf, d direction) {
	sp, err := s.find(a.workspace)
	if err != nil {
		return
	}
	r, err := sp.find(a.channel)
	if err != nil {
		return
	}
	who := a.from
	if d == sent {
		who = a.to
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	if p := r.remotes[who]; p != nil {
		p.counts.of(d).Add(1)
	}
}

// kindCounters count the envelopes of one kind.
type kindCounters struct{ sent, received, rejected, delivered atomic.Int64 }

func (k *kindCounters) of(d direction) *atomic.Int64 {
	switch d {
	case sent:
		return &k.sent
	case received:
		return &k.received
	case rejected:
		return &k.rejected
	}
	return &k.delivered
}

// counters of the whole runtime.
type counters struct {
	kinds             [7]kindCounters // of wire.Kinds, and of unknown kinds
	workflow, handoff atomic.Int64
	unaudited         atomic.Int64
	slow              atomic.Int64 // readers that were cut off
	dropped           atomic.Int64 // over a budget or limit, before they were decoded
	notTarget         atomic.Int64
	ignored           atomic.Int64 // about work of other runtimes
	transitions       atomic.Int64 // of work
	resolves          atomic.Int64 // of direct rooms
}

func (c *counters) count(a *auditOf, d direction) {
	i := len(wire.Kinds())
	for n, k := range wire.Kinds() {
		if string(k) == a.kind {
			i = n
		}
	}
	c.kinds[i].of(d).Add(1)
	if a.workflow {
		c.workflow.Add(1)
	}
	if a.handoff {
		c.handoff.Add(1)
	}
}

// total returns how many envelopes went in a direction.
func (c *counters) total(d direction) (n int64) {
	for i := range c.kinds {
		n += c.kinds[i].of(d).Load()
	}
	return n
}

// peerCounters count the envelopes of one hosted peer.
type peerCounters struct{ kindCounters }
