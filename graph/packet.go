package graph

import (
	"bytes"
	"fmt"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/envelope"
)

// Kinds of a packet's routing.
const (
	RoutingText    = "text"
	RoutingHandoff = "handoff"
	RoutingFinish  = "finish"
)

// Turn is a substantive envelope whose packet is read once for all conditions.
// It counts their cost, so it belongs to one evaluation and is not safe for
// concurrent use.
type Turn struct {
	*envelope.Envelope
	Packet Packet // zero for a plain text

	budget budget
}

// Steps returns how many steps the evaluation of the turn has taken, of MaxSteps.
func (t *Turn) Steps() int { return t.budget.spent }

// Packet is what routing needs to know of a packet's payload. What is missing,
// null or of another type counts as absent.
type Packet struct {
	Kind    string
	Tool    string
	HasTool bool // a tool is named, even if by the empty text
	Reason  string
	Target  string
	Updates Update
}

// NewTurn reads an envelope as a turn.
func NewTurn(e *envelope.Envelope) *Turn {
	t := &Turn{Envelope: e}
	if e.Type == envelope.TypePacket {
		t.Packet = ReadPacket(e.Data)
	}
	return t
}

// ReadPacket reads a packet's payload. It is total.
func ReadPacket(data []byte) Packet {
	p, _ := ParsePacket(data)
	return p
}

// ParsePacket reads a packet's payload, and names the first part that is
// neither absent, nor null, nor of its type: peers that fold the packet
// themselves would fail on it. As with ReadUpdate, admission refuses by the
// error.
func ParsePacket(data []byte) (Packet, error) {
	var p Packet
	var malformed error
	note := func(part string, err error) {
		if malformed == nil && err != nil {
			malformed = fmt.Errorf("%s: %w", part, err)
		}
	}
	err := eachMember(data, func(name []byte, value jsontext.Value) {
		switch part := string(name); part {
		case "routing":
			note(part, p.readRouting(value))
		case "context_updates":
			updates, err := ReadUpdate(value)
			p.Updates = updates
			note(part, err)
		}
	})
	note("packet", err)
	return p, malformed
}

func (p *Packet) readRouting(raw jsontext.Value) error {
	p.Kind, p.Tool, p.HasTool, p.Reason, p.Target = "", "", false, "", ""
	if raw.Kind() == jsontext.KindNull {
		return nil
	}
	var malformed error
	text := func(name []byte, value jsontext.Value) string {
		if k := value.Kind(); malformed == nil && k != jsontext.KindString && k != jsontext.KindNull {
			malformed = fmt.Errorf("graph: %s must be a string, not %s", name, kindOf(value))
		}
		return textOf(value)
	}
	err := eachMember(raw, func(name []byte, value jsontext.Value) {
		switch string(name) {
		case "kind":
			p.Kind = text(name, value)
		case "tool":
			p.Tool, p.HasTool = text(name, value), value.Kind() == jsontext.KindString
		case "reason":
			p.Reason = text(name, value)
		case "target":
			p.Target = text(name, value)
		}
	})
	if err != nil {
		return err
	}
	return malformed
}

// ReadUpdate reads {"set": {…}, "delete": […]}, the payload of a context set
// and of a packet's context_updates. It returns all that can be read, and an
// error that names the first part that cannot: a fold ignores the error, and
// admission refuses by it.
func ReadUpdate(data []byte) (Update, error) {
	var u Update
	var malformed error
	note := func(err error) {
		if malformed == nil {
			malformed = err
		}
	}
	v := jsontext.Value(data)
	if kind := v.Kind(); kind == jsontext.KindNull {
		return u, nil
	}
	err := eachMember(data, func(name []byte, value jsontext.Value) {
		switch string(name) {
		case "set":
			u.Set = nil
			note(u.readSet(value))
		case "delete":
			u.Delete = nil
			note(u.readDelete(value))
		}
	})
	note(err)
	return u, malformed
}

func (u *Update) readSet(raw jsontext.Value) error {
	switch raw.Kind() {
	case jsontext.KindNull:
		return nil
	case jsontext.KindBeginObject:
		return eachMember(raw, func(name []byte, value jsontext.Value) {
			u.Set = append(u.Set, Var{Key: string(name), Value: compact(value)})
		})
	}
	return fmt.Errorf("graph: set must be an object of keys and values, not %s", kindOf(raw))
}

func (u *Update) readDelete(raw jsontext.Value) error {
	switch raw.Kind() {
	case jsontext.KindNull:
		return nil
	case jsontext.KindBeginArray:
	default:
		return fmt.Errorf("graph: delete must be an array of keys, not %s", kindOf(raw))
	}
	var malformed error
	err := eachItem(raw, func(value jsontext.Value) {
		if value.Kind() == jsontext.KindString {
			u.Delete = append(u.Delete, textOf(value))
		} else if malformed == nil {
			malformed = fmt.Errorf("graph: delete must list keys as strings, not %s", kindOf(value))
		}
	})
	if err != nil {
		return err
	}
	return malformed
}

// compact copies a value without insignificant whitespace.
func compact(v jsontext.Value) string {
	if k := v.Kind(); k == jsontext.KindBeginObject || k == jsontext.KindBeginArray {
		v = v.Clone()
		_ = v.Compact()
	}
	return string(bytes.TrimSpace(v))
}

// textOf returns a JSON string's text, or "" if the value is not a string.
func textOf(v jsontext.Value) string {
	if v.Kind() != jsontext.KindString {
		return ""
	}
	return string(unquote(bytes.TrimSpace(v)))
}

// scanner is a decoder that reads straight from a slice, and can be reused.
type scanner struct {
	dec jsontext.Decoder
	buf bytes.Buffer
}

var scanners = sync.Pool{New: func() any { return new(scanner) }}

func scan(raw []byte, begin jsontext.Kind, each func(dec *jsontext.Decoder) error) error {
	s := scanners.Get().(*scanner)
	defer scanners.Put(s)
	s.buf = *bytes.NewBuffer(raw)
	s.dec.Reset(&s.buf, lenient)
	token, err := s.dec.ReadToken()
	if err != nil {
		return err
	}
	if token.Kind() != begin {
		return fmt.Errorf("graph: wanted %s, got %s", kindOf(jsontext.Value{byte(begin)}), kindOf(raw))
	}
	for {
		switch s.dec.PeekKind() {
		case jsontext.KindEndObject, jsontext.KindEndArray:
			return nil
		}
		if err := each(&s.dec); err != nil {
			return err
		}
	}
}

// eachMember visits an object's members in order. Name and value are slices of
// the object where they can be.
func eachMember(raw []byte, visit func(name []byte, value jsontext.Value)) error {
	return scan(raw, jsontext.KindBeginObject, func(dec *jsontext.Decoder) error {
		quoted, err := dec.ReadValue()
		if err != nil {
			return err
		}
		value, err := dec.ReadValue()
		if err != nil {
			return err
		}
		visit(unquote(quoted), value)
		return nil
	})
}

// unquote returns what a JSON string spells; it copies only where it must.
func unquote(quoted jsontext.Value) []byte {
	if inner := quoted[1 : len(quoted)-1]; !bytes.ContainsRune(inner, '\\') && utf8.Valid(inner) {
		return inner
	}
	text, _ := jsontext.AppendUnquote(nil, quoted)
	return text
}

// eachItem visits an array's elements in order.
func eachItem(raw []byte, visit func(value jsontext.Value)) error {
	return scan(raw, jsontext.KindBeginArray, func(dec *jsontext.Decoder) error {
		value, err := dec.ReadValue()
		if err != nil {
			return err
		}
		visit(value)
		return nil
	})
}
