package branch

import (
	"time"

	"github.com/parley-hub/parley/envelope"
)

// Event is one event as projections read it, from the log or from a stream.
// Only Type is always there.
type Event struct {
	Type string // the canonical wire name
	ID   string // set once the event is durable
	Seq  uint64 // place in the branch's log; 0 if it is in none
	Time time.Time
	Flow string
	Data []byte // the payload, a JSON object without base fields

	Trace      string
	Span       string
	ParentSpan string
	Agent      *Agent
}

// FromEnvelope reads a log's envelope; it returns false if it is not an event
// of this dialect.
func FromEnvelope(e *envelope.Envelope) (Event, bool) {
	name, ok := WireType(e.Type)
	if !ok {
		return Event{}, false
	}
	ext := ParseExt(e.Ext)
	at := e.CreatedAt
	if ext.Time != "" {
		if own, err := time.Parse(time.RFC3339, ext.Time); err == nil {
			at = own
		}
	}
	return Event{Type: name, ID: e.ID, Seq: e.Seq, Time: at, Flow: ext.Flow, Data: e.Data}, true
}
