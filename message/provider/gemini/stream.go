package gemini

import (
	"strings"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/provider"
	"github.com/parley-hub/parley/message/provider/internal/plan"
	"github.com/parley-hub/parley/message/value"
)

// Stream reads a streamed response: each chunk is one, with what is new in it.
type Stream struct {
	options provider.ReadOptions
	budget  provider.Budget
	body    *value.Map
	finish  any
	parts   []*streamPart
	begun   bool
	choices bool // others than the first were seen
}

type streamPart struct {
	raw  *value.Map
	text *strings.Builder // nil: the part is whole
}

// NewStream returns an empty stream.
func NewStream(o provider.ReadOptions) *Stream {
	return &Stream{options: o, budget: provider.NewBudget(o), body: value.New()}
}

// Add takes one chunk.
func (s *Stream) Add(chunk []byte) ([]message.Envelope, error) {
	if err := s.budget.Take(len(chunk)); err != nil {
		return nil, err
	}
	m, err := plan.Object(chunk)
	if err != nil {
		return nil, err
	}
	for key, v := range m.All() {
		if key != "candidates" && v != nil {
			s.body.Set(key, v)
		}
	}
	var deltas []message.Envelope
	for i, candidate := range plan.Maps(m, "candidates") {
		if i > 0 || plan.Count(candidate, "index") > 0 {
			s.choices = true
			continue
		}
		s.begun = true
		if reason := candidate.At("finishReason"); reason != nil {
			s.finish = reason
		}
		for _, part := range plan.Maps(plan.Map(candidate, "content"), "parts") {
			deltas = append(deltas, s.add(part)...)
		}
	}
	return deltas, nil
}

func (s *Stream) add(part *value.Map) []message.Envelope {
	if call := plan.Map(part, "functionCall"); call != nil {
		s.parts = append(s.parts, &streamPart{raw: part})
		name := s.options.Aliases.Name(plan.Str(call, "name"))
		arguments := plan.JSON(value.MapOrEmpty(call.At("args")))
		return []message.Envelope{provider.Delta(provider.DeltaToolCall, len(s.parts)-1, arguments, name, plan.Str(call, "id"))}
	}
	text, isText := part.At("text").(string)
	if !isText {
		s.parts = append(s.parts, &streamPart{raw: part})
		return nil
	}
	thought := part.At("thought") == true
	last := s.last()
	if last == nil || thought != (last.raw.At("thought") == true) || (text == "" && part.Len() > 1) {
		last = &streamPart{raw: value.New(), text: &strings.Builder{}}
		s.parts = append(s.parts, last)
	}
	last.text.WriteString(text)
	for key, v := range part.All() {
		last.raw.Set(key, v)
	}
	if text == "" {
		return nil
	}
	kind := provider.DeltaText
	if thought {
		kind = provider.DeltaReasoning
	}
	return []message.Envelope{provider.Delta(kind, len(s.parts)-1, text, "", "")}
}

// last returns the part that further text belongs to: one that is not signed yet.
func (s *Stream) last() *streamPart {
	if len(s.parts) == 0 {
		return nil
	}
	last := s.parts[len(s.parts)-1]
	if last.text == nil || last.raw.Has("thoughtSignature") {
		return nil
	}
	return last
}

// Reply returns the reply so far.
func (s *Stream) Reply() provider.Reply {
	body := s.body.Clone()
	if s.begun {
		parts := make([]any, 0, len(s.parts))
		for _, p := range s.parts {
			part := p.raw
			if p.text != nil {
				part = part.Clone().Set("text", p.text.String())
			}
			parts = append(parts, part)
		}
		body.Set("candidates", []any{value.New().
			Set("content", value.New().Set("role", roleModel).Set("parts", parts)).
			Set("finishReason", s.finish)})
	}
	made := reply(body, s.options)
	if s.choices {
		made.Notes = append(made.Notes, provider.Note{
			Index: -1, Kind: provider.Dropped, Code: provider.NoteChoices, Text: "only the first answer is read",
		})
	}
	return made
}
