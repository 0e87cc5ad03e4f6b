package plan

import (
	"slices"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/provider"
	"github.com/parley-hub/parley/message/value"
)

// order makes the entries. Each result directly follows the group of calls
// that its own call belongs to.
func (p *planner) order() []Entry {
	var entries []Entry
	for i := 0; i < len(p.list); {
		s := &p.list[i]
		if s.dropped || s.Type == message.TypeToolResult {
			i++
			continue
		}
		entry := p.entry(i)
		if entry.Side != Assistant {
			entries = append(entries, entry)
			i++
			continue
		}
		group, next := p.group(i, entry)
		entries = append(entries, group...)
		entries = append(entries, p.results(i, next)...)
		i = next
	}
	return entries
}

// group gathers an assistant's message: the entries up to where somebody else
// speaks, or, if messages split, up to the next text.
func (p *planner) group(start int, first Entry) (group []Entry, next int) {
	group = []Entry{first}
	for next = start + 1; next < len(p.list); next++ {
		s := &p.list[next]
		if s.dropped {
			continue
		}
		if s.Type == message.TypeToolResult {
			break
		}
		entry := p.entry(next)
		if entry.Side != Assistant || (p.shape.Split && entry.HasText()) {
			break
		}
		group = append(group, entry)
	}
	return group, next
}

// results returns the answers of the calls in list[start:next], in their own order.
func (p *planner) results(start, next int) []Entry {
	var at []int
	for i := start; i < next; i++ {
		if s := &p.list[i]; !s.dropped && s.Type == message.TypeToolCall {
			at = append(at, s.partner)
		}
	}
	slices.Sort(at)
	entries := make([]Entry, 0, len(at))
	for _, i := range at {
		for between := next; between < i; between++ {
			if s := &p.list[between]; !s.dropped && s.Type != message.TypeToolResult {
				p.notes.Add(p.list[i].index, provider.Moved, provider.NoteOrder, "the result is moved directly behind its call")
				break
			}
		}
		entries = append(entries, p.entry(i))
	}
	return entries
}

// entry reads one envelope, once.
func (p *planner) entry(i int) Entry {
	s := &p.list[i]
	if s.made == nil {
		e := p.make(s)
		s.made = &e
	}
	return *s.made
}

func (p *planner) make(s *source) Entry {
	own, _ := s.Metadata.At(p.shape.Vendor).(*value.Map)
	e := Entry{Role: s.Role, Index: s.index, Own: own}
	e.Opaque, _ = own.At(OpaqueKey).([]any)
	e.Name, _ = s.Metadata.At("name").(string)
	switch s.Type {
	case message.TypeToolCall:
		e.Side = Assistant
		e.Call = &Call{
			ID: s.callID, Name: p.options.Aliases.Alias(s.ToolName()), Arguments: p.arguments(s),
		}
		if e.Call.Arguments.Len() == 0 {
			e.Call.Text = str(s.Payload, ArgumentsText)
		}
	case message.TypeToolResult:
		e.Side, e.Result = Tool, p.result(s)
		return e
	case message.TypeFinalResult:
		e.Side = Assistant
	default:
		e.Side = p.side(s)
	}
	if e.Side == Assistant {
		Unnamed(&e, p.notes)
		e.Name = ""
		p.foreign(s)
	}
	e.Blocks = p.blocks(s)
	return e
}

func (p *planner) side(s *source) Side {
	switch s.Role {
	case message.RoleAssistant, "model":
		return Assistant
	case message.RoleSystem, "developer":
		return System
	case message.RoleUser:
		return User
	}
	p.notes.Add(s.index, provider.Changed, provider.NoteRole, "the role %q becomes user", s.Role)
	return User
}

// OpaqueKey is the key, under a provider's name in metadata, of what it wants
// back.
const OpaqueKey = "opaque"

// vendors are the providers whose metadata is searched.
var vendors = []string{"openai", "openai_chat", "anthropic", "gemini"}

// foreign notes what another provider would want back and this one does not
// understand.
func (p *planner) foreign(s *source) {
	for _, vendor := range vendors {
		other, _ := s.Metadata.At(vendor).(*value.Map)
		if vendor != p.shape.Vendor && other.Has(OpaqueKey) {
			p.notes.Add(s.index, provider.Dropped, provider.NoteOpaque, "what %s wants back is not for %s", vendor, p.shape.Vendor)
		}
	}
	own, _ := s.Metadata.At(p.shape.Vendor).(*value.Map)
	if s.Metadata.At("reasoning") != nil && !own.Has(OpaqueKey) {
		p.notes.Add(s.index, provider.Dropped, provider.NoteReason, "reasoning is not sent back")
	}
}

// ArgumentsText is where a call's payload keeps arguments that are not an object.
const ArgumentsText = "arguments_text"

func (p *planner) arguments(s *source) *value.Map {
	switch parameters := s.Payload.At("parameters").(type) {
	case nil:
		return value.New()
	case *value.Map:
		return parameters
	case []any:
		if len(parameters) > 0 {
			p.notes.Add(s.index, provider.Changed, provider.NoteArgs, "the arguments are a list; they are sent under their positions")
		}
		return value.MapOrEmpty(parameters)
	default:
		p.notes.Add(s.index, provider.Dropped, provider.NoteArgs, "the arguments are not an object")
		return value.New()
	}
}
