// Package plan brings a conversation into the order that every provider
// requires, before one of them writes it: parts unfolded, calls paired with
// their results, results directly after the calls, and what no provider
// accepts left out with a note. It knows roles and blocks, and no provider's
// JSON.
package plan

import (
	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/provider"
	"github.com/parley-hub/parley/message/value"
)

// Side is who speaks.
type Side int

// The sides. Results are a side of their own, because each provider puts them
// elsewhere.
const (
	System Side = iota
	User
	Assistant
	Tool
)

// Entry is one message in the order of a request.
type Entry struct {
	Side   Side
	Role   string // as in the envelope
	Index  int    // of the message in the list that was given
	Name   string // of the speaker, if known
	Blocks []Block
	Call   *Call
	Result *Result
	Opaque []any      // what this provider wants back before the entry, verbatim
	Own    *value.Map // what the entry's metadata hold under the provider's name
}

// HasText reports whether the entry has content besides a call.
func (e *Entry) HasText() bool { return JoinText(e.Blocks) != "" }

// Call is a tool call.
type Call struct {
	ID        string
	Name      string // the alias
	Arguments *value.Map
	Text      string // the arguments as they were written, if they are not an object
}

// Said returns the arguments as text.
func (c *Call) Said() string {
	if c.Text != "" {
		return c.Text
	}
	return JSON(c.Arguments)
}

// Object returns the arguments as an object; a note is added if they are not one.
func (c *Call) Object(index int, notes *provider.Notes) *value.Map {
	if c.Text != "" {
		notes.Add(index, provider.Dropped, provider.NoteArgs, "the arguments are not an object")
	}
	return c.Arguments
}

// Result is a tool's answer.
type Result struct {
	ID     string
	Name   string // the alias
	Failed bool
	Text   string  // the answer, or the error
	Value  any     // the answer as a value; nil if there is only text
	Blocks []Block // the same as blocks, with media; of a failure they may be empty
}

// Shape describes a provider.
type Shape struct {
	Vendor string // the key of its own fields in metadata
	// Split ends an assistant's message at each text, as chat completions do.
	Split bool
	// Values says that results are sent as values, where they have one.
	Values bool
}

// Make plans a request.
func Make(messages []message.Envelope, shape Shape, o provider.Options, notes *provider.Notes) []Entry {
	p := planner{shape: shape, options: o, notes: notes}
	for i, e := range messages {
		p.unfold(i, e, 0)
	}
	p.settle()
	p.pair()
	return p.order()
}

// source is an envelope that is still a candidate.
type source struct {
	index int
	message.Envelope
	dropped bool
	partner int // the position of a call's result and the other way round; -1
	callID  string
	made    *Entry
}

type planner struct {
	shape   Shape
	options provider.Options
	notes   *provider.Notes
	list    []source
	ids     map[string]bool
}

// maxParts bounds how deep parts may nest.
const maxParts = 32

// unfold replaces a multimodal part by its parts.
func (p *planner) unfold(index int, e message.Envelope, depth int) {
	parts, ok := value.Values(e.Payload.At("parts"))
	if e.Type != message.TypeMultimodalPart || !ok || len(parts) == 0 || depth >= maxParts {
		p.list = append(p.list, source{index: index, Envelope: e, partner: -1})
		return
	}
	for _, part := range parts {
		m, isMap := part.(*value.Map)
		if isMap && m.At("role") == nil {
			m = m.Clone().Set("role", e.Role)
		}
		inner, err := message.Normalize(m)
		if !isMap || err != nil {
			p.notes.Add(index, provider.Dropped, provider.NotePart, "a part is not a message")
			continue
		}
		p.unfold(index, inner, depth+1)
	}
}

// settle handles what is never sent unchanged.
func (p *planner) settle() {
	for i := range p.list {
		s := &p.list[i]
		switch s.Type {
		case message.TypeError:
			s.dropped = true
			p.notes.Add(s.index, provider.Dropped, provider.NoteError, "an error message is not for the model")
		case message.TypeDelta:
			s.dropped = true
			p.notes.Add(s.index, provider.Dropped, provider.NoteDelta, "a fragment is never replayed; aggregate it into its message first")
		}
	}
}
