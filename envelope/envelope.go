// Package envelope is the record that every conversation is made of: its
// fields, ids, times, priorities and event types, and its binary form. It
// knows nothing of logs, hubs or dialects, and never interprets a payload.
package envelope

import (
	"slices"
	"time"
)

// Envelope is one entry of a channel's log.
type Envelope struct {
	ID  string // minted by the hub: 32 lowercase hex digits
	Seq uint64 // place in the channel's log, from 1; the log's key, so not part of the record

	Channel string
	Sender  string
	Type    string

	// Audience restricts who is notified and who may read: nil is everyone in
	// the channel, an empty list is nobody.
	Audience []string
	// To directs an envelope without hiding it from the others.
	To string

	Causation string // the envelope that this one answers
	Task      string
	Key       string // the sender's idempotency key
	Trace     string // W3C traceparent
	Priority  Priority
	Depth     int    // delegation hops
	TTL       *int64 // seconds from CreatedAt; nil lives for ever
	CreatedAt time.Time

	Origin  Origin
	Ext     []byte // a JSON object of a dialect's own, or nil
	Data    []byte // the payload, a JSON object, exactly as sent
	Foreign []byte // the foreign envelope's bytes, where a signature must survive
}

// Origin says where an envelope came from if it was not first sent to this hub.
type Origin struct {
	Dialect string
	ID      string
	Hops    int
}

// OriginHub is the dialect of envelopes that a hub wrote itself. No surface can set it.
const OriginHub = "hub"

// VisibleTo reports whether an agent may read the envelope by AG2's rule: the
// agent is the sender, there is no audience, or the audience lists the agent.
func (e *Envelope) VisibleTo(agent string) bool {
	return e.Sender == agent || e.Audience == nil || slices.Contains(e.Audience, agent)
}

// ExpiredAt reports whether the envelope's time to live has run out at now.
func (e *Envelope) ExpiredAt(now time.Time) bool {
	if e.TTL == nil {
		return false
	}
	// Compared in seconds: a Duration would overflow on a hostile TTL.
	return now.Sub(e.CreatedAt).Seconds() >= float64(*e.TTL)
}

// Clone returns a copy that shares no memory with e.
func (e *Envelope) Clone() *Envelope {
	c := *e
	c.Audience = slices.Clone(e.Audience)
	c.Ext = slices.Clone(e.Ext)
	c.Data = slices.Clone(e.Data)
	c.Foreign = slices.Clone(e.Foreign)
	if e.TTL != nil {
		ttl := *e.TTL
		c.TTL = &ttl
	}
	return &c
}
