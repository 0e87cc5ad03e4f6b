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
		workspace: clone(e.Workspace), kind: clone(string(e.Kind)), channel: clone(e.Channel), surface: clone(string(e.Surface)),
		thread: clone(e.Thread), direct: clone(e.Direct), work: clone(e.Work), from: clone(e.From), to: clone(e.To), id: clone(e.ID), trace: clone(e.Trace), size: size,
	}
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

// bounded is the same with long members cut.
func (a *auditOf) bounded() *auditOf {
	if max(len(a.workspace), len(a.kind), len(a.channel), len(a.surface), len(a.thread), len(a.direct), len(a.work), len(a.from), len(a.to), len(a.id), len(a.trace)) <= mostText {
		return a
	}
	b := *a
	for _, s := range []*string{&b.workspace, &b.kind, &b.channel, &b.surface, &b.thread, &b.direct, &b.work, &b.from, &b.to, &b.id, &b.trace} {
		*s = cut(*s)
	}
	return &b
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
