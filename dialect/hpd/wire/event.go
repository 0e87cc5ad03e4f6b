package wire

import (
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/view/branch"
)

// Version is the version of every live envelope.
const Version = "1.0"

// Payload is the part of an event that its type defines.
type Payload interface{ EventType() string }

// Event is one event: its base fields and its payload.
type Event struct {
	Base
	Payload Payload
}

// Scope is the session and branch of an event.
type Scope struct {
	Session string
	Branch  string
}

// Base holds the fields that any event may have besides its payload; none of them
// is guaranteed. The zero value of a label stands for the label of the type's row.
type Base struct {
	EventID             string
	Scope               Scope
	EventFlowID         string
	TraceID             string
	SpanID              string
	ParentSpanID        string
	Metadata            *AgentMetadata
	Channel             branch.Channel
	Kind                branch.Kind
	Direction           branch.Direction
	SequenceNumber      uint64
	MustSurvive         bool // canInterrupt: false
	Timestamp           string
	ExchangeTimestampNs int64

	// RunID is the run that a producer publishes for. It is read only, and only for
	// types that have no such member of their own.
	RunID string
	// TimeoutSeconds is how long a producer's request waits. It is also read only.
	TimeoutSeconds *float64
}

// Opaque is an event of an unregistered type, as a producer sent it. It can be
// shown live, but never stored.
type Opaque struct {
	Type string
	Data Raw // a JSON object
}

// EventType returns the name on the wire.
func (o Opaque) EventType() string { return o.Type }

// Data returns the payload in the form of the log: an object without base fields.
func (e *Event) Data() ([]byte, error) {
	if e.Payload == nil {
		return nil, fault.New(fault.Invalid, "an event needs a payload")
	}
	if opaque, ok := e.Payload.(Opaque); ok {
		return opaque.Data, nil
	}
	if delta, ok := e.Payload.(TextDelta); ok {
		if data := delta.quick(); data != nil {
			return data, nil
		}
	}
	payload := e.Payload
	if p, ok := payload.(interface{ complete() Payload }); ok {
		payload = p.complete()
	}
	data, err := json.Marshal(payload, json.Deterministic(true))
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "%s cannot be written: %v", e.Payload.EventType(), err)
	}
	if len(data) == 0 || data[0] != '{' {
		return nil, fault.New(fault.Invalid, "%s does not write as an object; an event is one", e.Payload.EventType())
	}
	return data, nil
}

// Store sets type, payload and ext of the envelope that stores the event. The hub
// sets the other fields. Trace, span, labels and metadata are not stored.
func (e *Event) Store(into *envelope.Envelope, ext branch.Ext) error {
	data, err := e.Data()
	if err != nil {
		return err
	}
	ext.Flow, ext.Time = e.EventFlowID, e.Timestamp
	into.Type, into.Data, into.Ext = branch.LogType(e.Payload.EventType()), data, ext.Bytes()
	return nil
}

// Stored returns the name and the base of a stored event; false for an envelope of
// another dialect.
func Stored(e *envelope.Envelope, scope Scope) (name string, base Base, ok bool) {
	if name, ok = branch.WireType(e.Type); !ok {
		return "", Base{}, false
	}
	ext := branch.ParseExt(e.Ext)
	base = Base{EventID: e.ID, Scope: scope, EventFlowID: ext.Flow, SequenceNumber: e.Seq, Timestamp: ext.Time}
	if base.Timestamp == "" && !e.CreatedAt.IsZero() {
		base.Timestamp = FormatTime(e.CreatedAt)
	}
	return name, base, true
}

// WithLive adds to a stored event's base the fields that only its producer had.
// Live readers see them, the history does not have them.
func (b Base) WithLive(live *Base) Base {
	if live == nil {
		return b
	}
	b.TraceID, b.SpanID, b.ParentSpanID, b.Metadata = live.TraceID, live.SpanID, live.ParentSpanID, live.Metadata
	b.Channel, b.Kind, b.Direction = live.Channel, live.Kind, live.Direction
	b.MustSurvive, b.ExchangeTimestampNs = live.MustSurvive, live.ExchangeTimestampNs
	return b
}

// FormatTime formats a time for events and bodies.
func FormatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.9999999Z") }

// Projected returns an event in the form that projections read.
func (e *Event) Projected() (branch.Event, error) {
	data, err := e.Data()
	if err != nil {
		return branch.Event{}, err
	}
	out := branch.Event{
		Type: e.Payload.EventType(), ID: e.EventID, Seq: e.SequenceNumber, Flow: e.EventFlowID, Data: data,
		Trace: e.TraceID, Span: e.SpanID, ParentSpan: e.ParentSpanID, Agent: e.Metadata,
	}
	if at, err := time.Parse(time.RFC3339, e.Timestamp); err == nil {
		out.Time = at
	}
	return out, nil
}
