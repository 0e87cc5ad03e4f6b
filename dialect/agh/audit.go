package agh

import (
	"strings"
	"sync/atomic"
	"time"

	"github.com/parley-hub/parley/dialect/agh/wire"
)

// direction is what an audit record tells of an envelope.
type direction string

const (
	sent      direction = "sent"      // published
	received  direction = "received"  // accepted, for one hosted peer
	rejected  direction = "rejected"  // with a reason
	delivered direction = "delivered" // its turn is finished
)

// auditKind is the kind of the runtime's audit records.
const auditKind = "agh_message"

// auditOf is what audit records say of an envelope. It does not change: every
// peer that is told shares it.
type auditOf struct {
	workspace, kind, channel, surface, thread, direct, work string
	from, to, id, trace                                     string
	size                                                    int
	workflow, handoff                                       bool  // tagged in ext
	unaudited                                               int64 // rejections before this one that were only counted
}

// about reads what audit records say of an envelope. It keeps no memory of it.
func about(e *wire.Envelope, size int) *auditOf {
	a := &auditOf{
		workspace: e.Workspace, kind: string(e.Kind), channel: e.Channel, surface: string(e.Surface),
		thread: e.Thread, direct: e.Direct, work: e.Work, from: e.From, to: e.To, id: e.ID, trace: e.Trace, size: size,
	}
	a.own()
	a.workflow, a.handoff = tags(e.Ext)
	return a
}

// audit counts what became of an envelope and, of conversations, writes it to
// the audit. Greetings and questions who is there are only counted.
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

// fields is the record as the audit keeps it.
func (n *auditNote) fields() map[string]any {
	a := n.of
	f := map[string]any{
		"direction": string(n.direction), "workspace_id": a.workspace, "channel": a.channel, "peer_from": a.from,
		"message_id": a.id, "size": a.size, "timestamp": n.at.UTC().Format(time.RFC3339Nano),
	}
	for _, member := range [...]struct{ name, value string }{
		{"message_kind", a.kind},
		{"session_id", n.session},
		{"surface", a.surface},
		{"thread_id", a.thread},
		{"direct_id", a.direct},
		{"work_id", a.work},
		{"peer_to", a.to},
		{"reason", n.reason},
		{"trace_id", a.trace},
	} {
		if member.value != "" {
			f[member.name] = member.value
		}
	}
	if a.unaudited > 0 {
		f["unaudited"] = a.unaudited
	}
	return f
}

// mostText is how much of a member an audit record keeps: what is rejected may
// have any length.
const mostText = 256

// texts are the members that an envelope gave.
func (a *auditOf) texts() [11]*string {
	return [...]*string{&a.workspace, &a.kind, &a.channel, &a.surface, &a.thread, &a.direct, &a.work, &a.from, &a.to, &a.id, &a.trace}
}

// own copies the members out of the envelope that they share memory with, all into
// one piece.
func (a *auditOf) own() {
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

// bounded is the same with long members cut.
func (a *auditOf) bounded() *auditOf {
	b := a
	for i, s := range a.texts() {
		if len(*s) <= mostText {
			continue
		}
		if b == a {
			b = new(*a)
		}
		*b.texts()[i] = cut(*s)
	}
	return b
}

func cut(s string) string {
	if len(s) <= mostText {
		return s
	}
	return strings.Clone(strings.ToValidUTF8(s[:mostText], ""))
}

// countRemote counts what a remote peer that is present sent, or was sent.
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
	kinds             [7]kindCounters // of wire.Kinds, and of what has no known kind
	workflow, handoff atomic.Int64
	unaudited         atomic.Int64
	slow              atomic.Int64 // readers that were cut off
	dropped           atomic.Int64 // over a budget or limit, before they were read
	notTarget         atomic.Int64
	ignored           atomic.Int64 // about work of others
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

// total is how many envelopes went in a direction.
func (c *counters) total(d direction) (n int64) {
	for i := range c.kinds {
		n += c.kinds[i].of(d).Load()
	}
	return n
}

// peerCounters count the envelopes of one hosted peer.
type peerCounters struct{ kindCounters }
