package wire

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/jsonscan"
	"github.com/parley-hub/parley/view/branch"
)

// Limits bound what is parsed. The zero value of a field is its default.
type Limits struct {
	Bytes int // of one envelope; DefaultEventBytes
	Depth int // of nested objects and arrays; DefaultDepth
}

// Defaults of Limits.
const (
	DefaultEventBytes = 1 << 20
	DefaultDepth      = 64
)

func (l Limits) withDefaults() Limits {
	if l.Bytes <= 0 {
		l.Bytes = DefaultEventBytes
	}
	if l.Depth <= 0 {
		l.Depth = DefaultDepth
	}
	return l
}

// Parse reads one envelope of a registered type. `version` is neither needed
// nor checked, and the type's case does not matter.
func (r *Registry) Parse(data []byte, limits Limits) (*Event, error) {
	e, err := r.parse(data, limits)
	if err != nil {
		return nil, err
	}
	if _, known := r.codecs[e.Payload.EventType()]; !known {
		return nil, fault.New(fault.Invalid, "event type %.60q is not registered; register it, or correct `type`", e.Payload.EventType())
	}
	return e, nil
}

// ParseAny does the same as Parse, and also accepts unregistered types, which
// producers may show live.
func (r *Registry) ParseAny(data []byte, limits Limits) (*Event, error) { return r.parse(data, limits) }

func (r *Registry) parse(data []byte, limits Limits) (*Event, error) {
	limits = limits.withDefaults()
	if err := limits.check(data, "event"); err != nil {
		return nil, err
	}
	s, err := split(data)
	if err != nil {
		return nil, err
	}
	e := &Event{Base: s.base}
	c, known := r.codecs[s.name]
	if !known {
		if !branch.ValidType(s.name) {
			return nil, fault.New(fault.Invalid, "`type` is %.60q; an event type has capital letters, digits and underscores", s.name)
		}
		e.Payload = Opaque{s.name, s.payload}
		return e, nil
	}
	for _, name := range c.need {
		if s.kinds[name] == 0 {
			return nil, fault.New(fault.Invalid, "%s lacks `%s`", s.name, name)
		}
	}
	for _, name := range c.objects {
		if kind := s.kinds[name]; kind != 0 && kind != '{' {
			return nil, fault.New(fault.Invalid, "%s is not valid: `%s` is %s; it is an object", s.name, name, KindName(kind))
		}
	}
	if e.Payload, err = c.read(s.payload); err != nil {
		return nil, invalid(s.name, err)
	}
	return e, nil
}

// atLeast returns the limits with a bound of at least a number of bytes.
func (l Limits) atLeast(size int) Limits {
	l = l.withDefaults()
	l.Bytes = max(l.Bytes, size)
	return l
}

// check bounds the text before it is parsed.
func (l Limits) check(data []byte, what string) error {
	if len(data) > l.Bytes {
		return fault.New(fault.TooLarge, "the %s has %d bytes; at most %d are taken (limits.event). Upload large contents by POST …/content and send their uri", what, len(data), l.Bytes)
	}
	if jsonscan.Deeper(data, l.Depth) {
		return fault.New(fault.Invalid, "the %s is nested more than %d deep", what, l.Depth)
	}
	return nil
}

// parts is a parsed envelope.
type parts struct {
	name    string
	base    Base
	payload []byte                   // an object of the members that are not base fields
	kinds   map[string]jsontext.Kind // of their values, by their names
}

// member is one member of an envelope; its value is part of the text.
type member struct {
	name  string
	value Raw
}

// split separates base fields from payload, drops nulls, and gives members of
// built-in types their canonical names.
func split(data []byte) (*parts, error) {
	list, err := membersOf(data)
	if err != nil {
		return nil, err
	}
	p := &parts{kinds: map[string]jsontext.Kind{}, payload: append(make([]byte, 0, len(data)), '{')}
	for _, m := range list {
		if m.name == "type" {
			if p.name, err = typeOf(m.value); err != nil {
				return nil, err
			}
		}
	}
	if p.name == "" {
		return nil, fault.New(fault.Invalid, "the event has no `type`; it is a string such as %q", branch.UserTextInput)
	}
	_, isBuiltin := labels[p.name]
	for _, m := range list {
		if canonical, ok := memberAliases[m.name]; ok && (isBuiltin || baseAliases[m.name]) {
			m.name = canonical
		}
		if err := p.put(m); err != nil {
			return nil, err
		}
	}
	p.payload = append(p.payload, '}')
	return p, nil
}

// membersOf reads the members of one object, and refuses any other value.
func membersOf(data []byte) ([]member, error) {
	d := jsontext.NewDecoder(bytes.NewReader(data))
	if token, err := d.ReadToken(); err != nil {
		return nil, invalid("the event", err)
	} else if token.Kind() != '{' {
		return nil, fault.New(fault.Invalid, "an event is a JSON object with a string `type`, not %s", KindName(token.Kind()))
	}
	list := make([]member, 0, 16)
	for d.PeekKind() != '}' {
		token, err := d.ReadToken()
		if err != nil {
			return nil, invalid("the event", err)
		}
		name := token.String()
		value, err := d.ReadValue()
		if err != nil {
			return nil, invalid("the event", err)
		}
		end := int(d.InputOffset())
		list = append(list, member{name, Raw(data[end-len(value) : end])})
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, invalid("the event", err)
	}
	if rest := bytes.TrimLeft(data[d.InputOffset():], " \t\r\n"); len(rest) > 0 {
		return nil, fault.New(fault.Invalid, "something follows the event; send one JSON object")
	}
	return list, nil
}

func typeOf(value Raw) (string, error) {
	if value.Kind() != '"' {
		return "", fault.New(fault.Invalid, "`type` is %s; it is a string such as %q", KindName(value.Kind()), branch.UserTextInput)
	}
	var text string
	if err := json.Unmarshal(value, &text); err != nil {
		return "", invalid("`type`", err)
	}
	return branch.Canonical(text), nil
}

// put adds a member to the base or the payload. Nulls count as absent, and if a
// member has two names the first one is used.
func (p *parts) put(m member) error {
	if m.name == "version" || m.name == "type" || m.value.Kind() == 'n' {
		return nil
	}
	if isBase, err := p.base.set(m.name, m.value); isBase || err != nil {
		return err
	}
	row := labels[p.name]
	if m.name == "runtimeRunId" && row.Source != branch.Server && row.Source != branch.Client {
		return wrong(m.name, json.Unmarshal(m.value, &p.base.RunID))
	}
	if m.name == "timeoutSeconds" && row.Source == branch.Asker {
		if err := json.Unmarshal(m.value, &p.base.TimeoutSeconds); err != nil {
			return wrong(m.name, err)
		}
		if *p.base.TimeoutSeconds < 0 {
			return fault.New(fault.Invalid, "`timeoutSeconds` is %s; give a number above 0, or leave it out", m.value)
		}
		return nil
	}
	if p.kinds[m.name] != 0 {
		return nil
	}
	p.kinds[m.name] = m.value.Kind()
	if len(p.payload) > 1 {
		p.payload = append(p.payload, ',')
	}
	var err error
	if p.payload, err = jsontext.AppendQuote(p.payload, m.name); err != nil {
		return invalid("a member's name", err)
	}
	p.payload = append(p.payload, ':')
	if below := renamedPayloads[p.name]; below == m.name && m.value.Kind() == '{' {
		m.value = rename(m.value, memberAliases, "")
	}
	p.payload, err = appendLine(p.payload, m.value)
	return err
}

// appendLine adds a value on one line, with its strings and numbers as sent.
func appendLine(dst []byte, value Raw) ([]byte, error) {
	if k := value.Kind(); k != '{' && k != '[' {
		return append(dst, value...), nil
	}
	dst, err := jsontext.AppendFormat(dst, value, jsontext.PreserveRawStrings(true))
	if err != nil {
		return nil, invalid("a value", err)
	}
	return dst, nil
}

// set reads a base field; it returns false for other members.
func (b *Base) set(name string, value Raw) (bool, error) {
	var into any
	switch name {
	case "eventId":
		into = &b.EventID
	case "sessionId":
		into = &b.Scope.Session
	case "branchId":
		into = &b.Scope.Branch
	case "eventFlowId":
		into = &b.EventFlowID
	case "traceId":
		into = &b.TraceID
	case "spanId":
		into = &b.SpanID
	case "parentSpanId":
		into = &b.ParentSpanID
	case "metadata":
		b.Metadata = &AgentMetadata{}
		into = b.Metadata
	case "sequenceNumber":
		into = &b.SequenceNumber
	case "exchangeTimestampNs":
		into = &b.ExchangeTimestampNs
	case "canInterrupt":
		can := true
		err := json.Unmarshal(value, &can)
		b.MustSurvive = !can
		return true, wrong(name, err)
	case "timestamp":
		if err := json.Unmarshal(value, &b.Timestamp); err != nil {
			return true, wrong(name, err)
		}
		_, err := time.Parse(time.RFC3339, b.Timestamp)
		return true, wrong(name, err)
	case "channel":
		err := readLabel(&b.Channel, value, branch.ParseChannel, branch.ControlChannel)
		return true, wrong(name, err)
	case "kind":
		err := readLabel(&b.Kind, value, branch.ParseKind, branch.DiagnosticKind)
		return true, wrong(name, err)
	case "direction":
		err := readLabel(&b.Direction, value, branch.ParseDirection, branch.Upstream)
		return true, wrong(name, err)
	default:
		return false, nil
	}
	return true, wrong(name, json.Unmarshal(value, into))
}

// readLabel reads a label by name or by upstream's number.
func readLabel[T ~uint8](into *T, value Raw, parse func(string) (T, bool), last T) error {
	if value.Kind() == '"' {
		var text string
		if err := json.Unmarshal(value, &text); err != nil {
			return err
		}
		label, ok := parse(text)
		if !ok {
			return fault.New(fault.Invalid, "%.40q is not one of its names", text)
		}
		*into = label
		return nil
	}
	n, err := strconv.Atoi(string(value))
	if err != nil || n < 0 || n >= int(last) {
		return fault.New(fault.Invalid, "%.40s is not one of its numbers, 0 to %d", value, int(last)-1)
	}
	*into = T(n + 1)
	return nil
}

func wrong(name string, err error) error {
	if err == nil {
		return nil
	}
	return invalid("`"+name+"`", err)
}

// invalid wraps the cause of a refusal and says where it is. The text of an error
// about JSON types names Go types, which clients do not know.
func invalid(where string, err error) error {
	text := err.Error()
	if kind, ok := errors.AsType[*json.SemanticError](err); ok {
		switch {
		case kind.Err != nil:
			text = kind.Err.Error()
		case kind.JSONPointer == "":
			text = "it is " + KindName(kind.JSONKind) + ", which is the wrong JSON type"
		default:
			text = fmt.Sprintf("%q is %s, which is the wrong JSON type", kind.JSONPointer, KindName(kind.JSONKind))
		}
	}
	return fault.Wrap(fault.Invalid, err, "%s is not valid: %s", where, text)
}

// KindName returns the name of a kind of JSON value for errors.
func KindName(k jsontext.Kind) string {
	switch k {
	case 'n':
		return "null"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case 't', 'f':
		return "a boolean"
	case '[':
		return "an array"
	}
	return "an object"
}
