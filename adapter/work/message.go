// Package work has what AGH's threads and direct rooms have in common: the fold of their
// messages and of the work that is done there. It is pure. It reads records of AGH
// envelopes: the body is the data, the id is the origin's, and the other members are in
// ext. Only AGH's dialect sets such an origin, and only Say an id in ext, so that other
// dialects cannot post such records.
package work

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/internal/jsonscan"
)

// Types of the records that a conversation is made of.
const (
	TypeSay        = "agh.say"
	TypeCapability = "agh.capability"
	TypeReceipt    = "agh.receipt"
	TypeTrace      = "agh.trace"
)

// Concerns reports whether a type belongs to a conversation.
func Concerns(eventType string) bool {
	switch eventType {
	case TypeSay, TypeCapability, TypeReceipt, TypeTrace:
		return true
	}
	return false
}

// Message has the parts of a record that a conversation needs.
type Message struct {
	Type     string
	ID       string
	From, To string // peer ids; To is empty in a broadcast
	Work     string
	TS       int64
	Status   string // of a receipt
	State    string // of a trace
	Preview  string // trimmed, not cut
}

// Opens reports whether a message may open a conversation or work.
func (m *Message) Opens() bool { return m.Type == TypeSay || m.Type == TypeCapability }

// maxDepth bounds the nesting of bodies; the dialect accepts less.
const maxDepth = 128

// Read reads a record; false if it is not one of a conversation.
func Read(e *envelope.Envelope) (Message, bool) {
	m, ok := readRules(e)
	if ok {
		m.readPreview(e.Data)
	}
	return m, ok
}

// readRules is Read without the preview, which rules do not need.
func readRules(e *envelope.Envelope) (Message, bool) {
	m, ok := ReadHead(e)
	if !ok || jsonscan.Check(e.Data, maxDepth) != nil {
		return m, false
	}
	m.readStep(e.Data)
	return m, true
}

// ReadHead is Read without the texts of the body.
func ReadHead(e *envelope.Envelope) (Message, bool) {
	m := Message{Type: e.Type}
	if e.Origin.Dialect == Dialect {
		m.ID = e.Origin.ID
	}
	if !Concerns(e.Type) || jsonscan.Check(e.Ext, maxDepth) != nil {
		return m, false
	}
	for name, value := range jsonscan.Members(e.Ext) {
		switch string(name) {
		case ownID:
			m.ID, _ = jsonscan.Text(value)
		case "from":
			m.From, _ = jsonscan.Text(value)
		case "to":
			m.To, _ = jsonscan.Text(value)
		case "work_id":
			m.Work, _ = jsonscan.Text(value)
		case "ts":
			m.TS = seconds(value)
		}
	}
	return m, m.From != "" && m.ID != ""
}

// ownID is the member of ext with the id of a message from another dialect, whose
// origin is not AGH's.
const ownID = "id"

// seconds reads Unix seconds, which strict senders may write as 7.0.
func seconds(value []byte) int64 {
	if n, err := strconv.ParseInt(string(value), 10, 64); err == nil {
		return max(n, 0)
	}
	f, err := strconv.ParseFloat(string(value), 64)
	if err != nil || !(f >= 0 && f < 1<<62) {
		return 0
	}
	return int64(f)
}

// readStep takes from the body what the rules of work need.
func (m *Message) readStep(body []byte) {
	switch m.Type {
	case TypeReceipt:
		m.Status = member(body, "status")
	case TypeTrace:
		m.State = member(body, "state")
	}
}

// readPreview takes from the body what previews need.
func (m *Message) readPreview(body []byte) {
	switch m.Type {
	case TypeSay:
		m.Preview = member(body, "text")
	case TypeCapability:
		doc := jsonscan.Member(body, "capability")
		m.Preview = cmp.Or(member(doc, "summary"), member(doc, "outcome"), member(doc, "id"))
	case TypeReceipt:
		m.Preview = member(body, "detail")
	case TypeTrace:
		m.Preview = member(body, "message")
	}
	m.Preview = strings.TrimSpace(m.Preview)
}

// member returns a string member of an object, or "".
func member(object []byte, name string) string {
	s, _ := jsonscan.Text(jsonscan.Member(object, name))
	return s
}

// Render returns the text of a record; false: it has none.
func Render(e *envelope.Envelope) (string, bool) {
	m, ok := Read(e)
	return m.Preview, ok && m.Preview != ""
}
