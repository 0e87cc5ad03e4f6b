package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/provider"
	"github.com/parley-hub/parley/message/value"
)

// pair finds each call's result, lets requests that wait for a person answer
// the calls that are still open, and drops calls and results without a
// partner, which every provider refuses.
func (p *planner) pair() {
	p.match(message.Envelope.ToolCallID, message.Envelope.ToolName)
	// Ids that hosts keep in the payload count if the metadata has none that
	// match.
	p.match(anyCallID, nil)
	p.answerPending()
	for i := range p.list {
		s := &p.list[i]
		isCall, isResult := s.Type == message.TypeToolCall, s.Type == message.TypeToolResult
		switch {
		case s.dropped || s.partner >= 0:
		case isCall:
			s.dropped = true
			p.notes.Add(s.index, provider.Dropped, provider.NoteOrphan, "the call of %q has no result", s.ToolName())
		case isResult:
			s.dropped = true
			p.notes.Add(s.index, provider.Dropped, provider.NoteOrphan, "the result of %q has no call", s.ToolName())
		}
	}
	p.name()
}

// match pairs what has no partner yet: a result with an id with the oldest
// open call of that id; one without, if tools count, with the oldest open call
// of its tool that has no id.
func (p *planner) match(idOf, toolOf func(message.Envelope) string) {
	type partner struct{ id, tool string }
	open := map[partner][]int{}
	for i := range p.list {
		s := &p.list[i]
		if s.partner >= 0 || (s.Type != message.TypeToolCall && s.Type != message.TypeToolResult) {
			continue
		}
		k := partner{id: idOf(s.Envelope)}
		if k.id == "" {
			if toolOf == nil {
				continue
			}
			k.tool = toolOf(s.Envelope)
		}
		if s.Type == message.TypeToolCall {
			open[k] = append(open[k], i)
			continue
		}
		if calls := open[k]; len(calls) > 0 {
			p.list[calls[0]].partner, s.partner = i, calls[0]
			open[k] = calls[1:]
		}
	}
}

// anyCallID returns the call id, wherever a host keeps it.
func anyCallID(e message.Envelope) string {
	if id := e.ToolCallID(); id != "" {
		return id
	}
	id, _ := e.Payload.At("tool_call_id").(string)
	return id
}

// answerPending turns a request for input or approval into the answer of the
// open call it is about: the one it names, or, if it names none, the last one
// before it.
func (p *planner) answerPending() {
	for i := range p.list {
		s := &p.list[i]
		if s.Type != message.TypeInputRequired && s.Type != message.TypeApprovalRequired {
			continue
		}
		call := p.openCall(i, anyCallID(s.Envelope))
		if call < 0 {
			s.dropped = true
			p.notes.Add(s.index, provider.Dropped, provider.NotePending, "%s is about no open call", s.Type)
			continue
		}
		waiting := "input"
		if s.Type == message.TypeApprovalRequired {
			waiting = "approval"
		}
		text := "Pending: waiting for " + waiting + "."
		if said, _ := s.Text(); said != "" {
			text += " " + said
		}
		p.notes.Add(s.index, provider.Changed, provider.NotePending, "%s answers the open call as pending", s.Type)
		s.Envelope = message.Envelope{
			Type: message.TypeToolResult, Role: message.RoleUser, Content: text,
			Payload: value.New().Set("tool_name", p.list[call].ToolName()), Metadata: s.Metadata,
		}
		s.partner, p.list[call].partner = call, i
	}
}

func (p *planner) openCall(before int, id string) int {
	for i := before - 1; i >= 0; i-- {
		s := &p.list[i]
		if s.Type != message.TypeToolCall || (id != "" && anyCallID(s.Envelope) != id) {
			continue
		}
		if s.partner < 0 {
			return i
		}
		if id == "" {
			return -1
		}
	}
	return -1
}

// name sets the id of each pair.
func (p *planner) name() {
	p.ids = map[string]bool{}
	turn, position := 0, 0
	before := -2
	for i := range p.list {
		s := &p.list[i]
		if s.Type != message.TypeToolCall || s.partner < 0 {
			continue
		}
		if before != i-1 {
			turn, position = turn+1, 0
		}
		before = i
		position++
		result := &p.list[s.partner]
		id := anyCallID(s.Envelope)
		if id == "" {
			id = anyCallID(result.Envelope)
		}
		at := turn
		if told, ok := value.Integer(s.Payload.At("turn")); ok {
			at = int(told)
		}
		if id = message.CallID(value.New().Set("id", id), at, position); !legalID(id) {
			sum := sha256.Sum256([]byte(id))
			p.notes.Add(s.index, provider.Changed, provider.NoteID, "the call id %q has characters that providers refuse", id)
			id = "call_" + hex.EncodeToString(sum[:12])
		}
		s.callID = p.unique(id)
		result.callID = s.callID
	}
}

func (p *planner) unique(id string) string {
	free := id
	for n := 2; p.ids[free]; n++ {
		free = id + "-" + strconv.Itoa(n)
	}
	p.ids[free] = true
	return free
}

// maxCallID is the longest call id every provider takes.
const maxCallID = 64

func legalID(id string) bool {
	for i := range len(id) {
		c := id[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return len(id) <= maxCallID
}
