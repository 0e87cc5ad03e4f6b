package anthropic

import (
	"maps"
	"slices"
	"strings"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/provider"
	"github.com/parley-hub/parley/message/provider/internal/plan"
	"github.com/parley-hub/parley/message/value"
)

// Stream reads a streamed message.
type Stream struct {
	options provider.ReadOptions
	budget  provider.Budget
	message *value.Map
	failure *value.Map
	blocks  map[int64]*streamBlock
}

type streamBlock struct {
	raw       *value.Map
	text      strings.Builder // of a text or of thinking
	input     strings.Builder
	signature strings.Builder
	citations []any
}

// NewStream returns an empty stream.
func NewStream(o provider.ReadOptions) *Stream {
	return &Stream{options: o, budget: provider.NewBudget(o), message: value.New(), blocks: map[int64]*streamBlock{}}
}

// Add takes the data of one event.
func (s *Stream) Add(chunk []byte) ([]message.Envelope, error) {
	if err := s.budget.Take(len(chunk)); err != nil {
		return nil, err
	}
	m, err := plan.Object(chunk)
	if err != nil {
		return nil, err
	}
	at := plan.Count(m, "index")
	switch plan.Str(m, "type") {
	case "message_start":
		s.message = plan.Map(m, "message").Clone()
	case "content_block_start":
		return s.start(at, plan.Map(m, "content_block")), nil
	case "content_block_delta":
		return s.delta(at, plan.Map(m, "delta")), nil
	case "message_delta":
		s.end(plan.Map(m, "delta"), plan.Map(m, "usage"))
	case "error":
		s.failure = plan.Map(m, "error")
	}
	return nil, nil
}

func (s *Stream) start(at int64, block *value.Map) []message.Envelope {
	b := &streamBlock{raw: block.Clone()}
	s.blocks[at] = b
	if plan.Str(block, "type") == "tool_use" {
		name := s.options.Aliases.Name(plan.Str(block, "name"))
		return []message.Envelope{provider.Delta(provider.DeltaToolCall, int(at), "", name, plan.Str(block, "id"))}
	}
	return b.say(at, plan.Str(block, b.field()))
}

// field returns the field that holds a block's text.
func (b *streamBlock) field() string {
	if plan.Str(b.raw, "type") == "thinking" {
		return "thinking"
	}
	return "text"
}

func (b *streamBlock) say(at int64, text string) []message.Envelope {
	if text == "" {
		return nil
	}
	b.text.WriteString(text)
	kind := provider.DeltaText
	if b.field() == "thinking" {
		kind = provider.DeltaReasoning
	}
	return []message.Envelope{provider.Delta(kind, int(at), text, "", "")}
}

func (s *Stream) delta(at int64, delta *value.Map) []message.Envelope {
	b := s.blocks[at]
	if b == nil {
		b = &streamBlock{raw: value.New().Set("type", "text")}
		s.blocks[at] = b
	}
	switch plan.Str(delta, "type") {
	case "text_delta":
		return b.say(at, plan.Str(delta, "text"))
	case "thinking_delta":
		return b.say(at, plan.Str(delta, "thinking"))
	case "signature_delta":
		b.signature.WriteString(plan.Str(delta, "signature"))
	case "citations_delta":
		b.citations = append(b.citations, delta.At("citation"))
	case "input_json_delta":
		text := plan.Str(delta, "partial_json")
		b.input.WriteString(text)
		if plan.Str(b.raw, "type") == "tool_use" {
			return []message.Envelope{provider.Delta(provider.DeltaToolCall, int(at), text, "", "")}
		}
	}
	return nil
}

func (s *Stream) end(delta, usage *value.Map) {
	for key, v := range delta.All() {
		s.message.Set(key, v)
	}
	counted := plan.Map(s.message, "usage").Clone()
	for key, v := range usage.All() {
		counted.Set(key, v)
	}
	if counted.Len() > 0 {
		s.message.Set("usage", counted)
	}
}

// Reply returns the reply so far.
func (s *Stream) Reply() provider.Reply {
	content := []any{}
	for _, at := range slices.Sorted(maps.Keys(s.blocks)) {
		content = append(content, s.blocks[at].whole())
	}
	body := s.message.Clone().Set("content", content)
	if s.failure != nil {
		body.Set("error", s.failure)
	}
	return reply(body, s.options)
}

// whole returns the block so far.
func (b *streamBlock) whole() *value.Map {
	block := b.raw.Clone()
	if b.text.Len() > 0 {
		block.Set(b.field(), b.text.String())
	}
	if b.signature.Len() > 0 {
		block.Set("signature", b.signature.String())
	}
	if len(b.citations) > 0 {
		block.Set("citations", b.citations)
	}
	if text := b.input.String(); text != "" {
		if input, ok := provider.ParseArguments(text); ok {
			block.Set("input", input)
		} else {
			block.Set("input", text)
		}
	}
	return block
}
