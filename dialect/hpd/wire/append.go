package wire

import (
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/view/branch"
)

// Append writes the event as a live envelope of a surface: one line.
func (e *Event) Append(dst []byte, surface Surface) ([]byte, error) {
	data, err := e.Data()
	if err != nil {
		return dst, err
	}
	return AppendLive(dst, surface, e.Payload.EventType(), data, &e.Base), nil
}

// AppendLive writes a live envelope from a name, a payload in the form of the log,
// and base fields. The payload is a JSON object of one line; it is copied, not
// parsed, unless the surface has other names for its members.
func AppendLive(dst []byte, surface Surface, name string, payload []byte, base *Base) []byte {
	row := labels[name]
	if surface == Threads {
		payload = renameMembers(name, payload)
		name = branch.ThreadType(name)
	}
	dst = append(dst, `{"version":"`+Version+`","type":"`...)
	dst = append(dst, name...)
	dst = append(dst, '"')
	if inner := members(payload); len(inner) > 0 {
		dst = append(dst, ',')
		dst = append(dst, inner...)
	}
	w := baseWriter{dst}
	w.text("eventId", base.EventID)
	w.text("sessionId", base.Scope.Session)
	w.text(surface.branchID(), base.Scope.Branch)
	w.text("eventFlowId", base.EventFlowID)
	w.text("traceId", base.TraceID)
	w.text("spanId", base.SpanID)
	w.text("parentSpanId", base.ParentSpanID)
	w.metadata(base.Metadata)
	w.label("channel", base.Channel.String(), row.Channel.String(), row.Channel <= branch.Synchronous)
	w.label("kind", base.Kind.String(), row.Kind.String(), row.Kind <= branch.ContentKind)
	w.label("direction", base.Direction.String(), row.Direction.String(), row.Direction <= branch.Downstream)
	w.number("sequenceNumber", int64(base.SequenceNumber))
	if base.MustSurvive || name == branch.InterruptionHandled {
		w.dst = append(w.dst, `,"canInterrupt":false`...)
	}
	w.text("timestamp", base.Timestamp)
	w.number("exchangeTimestampNs", base.ExchangeTimestampNs)
	return append(w.dst, '}')
}

// labels are the rows of the built-in types; custom types have the default labels,
// which are not written.
var labels = func() map[string]branch.Row {
	found := map[string]branch.Row{}
	for _, row := range branch.Rows() {
		found[row.Type] = row
	}
	return found
}()

// members returns the text between an object's braces.
func members(object []byte) []byte {
	if len(object) < 2 {
		return nil
	}
	return object[1 : len(object)-1]
}

type baseWriter struct{ dst []byte }

func (w *baseWriter) key(name string) {
	w.dst = append(w.dst, ',', '"')
	w.dst = append(w.dst, name...)
	w.dst = append(w.dst, '"', ':')
}

func (w *baseWriter) text(name, value string) {
	if value == "" {
		return
	}
	w.key(name)
	// An invalid byte, which our parsers refuse, is replaced.
	w.dst, _ = jsontext.AppendQuote(w.dst, value)
}

func (w *baseWriter) number(name string, value int64) {
	if value != 0 {
		w.key(name)
		w.dst = strconv.AppendInt(w.dst, value, 10)
	}
}

// label writes the event's own label, or that of its type, unless it is the default
// of all types.
func (w *baseWriter) label(name, own, ofType string, isDefault bool) {
	switch {
	case own != "":
		w.text(name, own)
	case !isDefault:
		w.text(name, ofType)
	}
}

func (w *baseWriter) metadata(m *AgentMetadata) {
	if m == nil {
		return
	}
	if m.AgentChain == nil {
		withChain := *m
		withChain.AgentChain = []string{m.AgentName}
		m = &withChain
	}
	if data, err := json.Marshal(m); err == nil { // only text that is not UTF-8 fails
		w.key("metadata")
		w.dst = append(w.dst, data...)
	}
}
