package openai

import (
	"maps"
	"slices"
	"strings"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/provider"
	"github.com/parley-hub/parley/message/provider/internal/plan"
	"github.com/parley-hub/parley/message/value"
)

// ResponsesStream reads a streamed response.
type ResponsesStream struct {
	options  provider.ReadOptions
	budget   provider.Budget
	response *value.Map // from the last event that had one
	ended    bool
	failure  *value.Map
	items    map[int64]*streamItem
}

type streamItem struct {
	item  *value.Map
	done  bool
	text  strings.Builder         // of a call's arguments
	parts map[int64]*streamedPart // of a message, by their index
}

type streamedPart struct {
	refusal bool
	text    strings.Builder
}

// NewResponsesStream returns an empty stream.
func NewResponsesStream(o provider.ReadOptions) *ResponsesStream {
	return &ResponsesStream{options: o, budget: provider.NewBudget(o), items: map[int64]*streamItem{}}
}

// Add takes the data of one event.
func (s *ResponsesStream) Add(chunk []byte) ([]message.Envelope, error) {
	if err := s.budget.Take(len(chunk)); err != nil {
		return nil, err
	}
	m, err := plan.Object(chunk)
	if err != nil {
		return nil, err
	}
	at := plan.Count(m, "output_index")
	switch kind := plan.Str(m, "type"); kind {
	case "response.output_item.added", "response.output_item.done":
		return s.item(at, plan.Map(m, "item"), kind == "response.output_item.done"), nil
	case "response.output_text.delta":
		s.part(m).text.WriteString(plan.Str(m, "delta"))
		return []message.Envelope{provider.Delta(provider.DeltaText, int(at), plan.Str(m, "delta"), "", "")}, nil
	case "response.refusal.delta":
		part := s.part(m)
		part.refusal = true
		part.text.WriteString(plan.Str(m, "delta"))
		return []message.Envelope{provider.Delta(provider.DeltaRefusal, int(at), plan.Str(m, "delta"), "", "")}, nil
	case "response.function_call_arguments.delta":
		s.at(at).text.WriteString(plan.Str(m, "delta"))
		return []message.Envelope{provider.Delta(provider.DeltaToolCall, int(at), plan.Str(m, "delta"), "", "")}, nil
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		return []message.Envelope{provider.Delta(provider.DeltaReasoning, int(at), plan.Str(m, "delta"), "", "")}, nil
	case "response.completed", "response.incomplete", "response.failed":
		s.response, s.ended = plan.Map(m, "response"), true
	case "response.created", "response.in_progress", "response.queued":
		s.response = plan.Map(m, "response")
	case "error":
		s.failure = plan.Rest(m, "type", "sequence_number")
		if inner := plan.Map(m, "error"); inner != nil {
			s.failure = inner
		}
	}
	return nil, nil
}

func (s *ResponsesStream) at(index int64) *streamItem {
	if s.items[index] == nil {
		s.items[index] = &streamItem{item: value.New()}
	}
	return s.items[index]
}

// item records an output item; the first event of a call names its tool.
func (s *ResponsesStream) item(index int64, item *value.Map, done bool) []message.Envelope {
	i := s.at(index)
	i.item, i.done = item, done
	if done || plan.Str(item, "type") != "function_call" {
		return nil
	}
	name := s.options.Aliases.Name(plan.Str(item, "name"))
	return []message.Envelope{provider.Delta(provider.DeltaToolCall, int(index), "", name, plan.Str(item, "call_id"))}
}

// part returns the part of a message that an event is about.
func (s *ResponsesStream) part(event *value.Map) *streamedPart {
	i, index := s.at(plan.Count(event, "output_index")), plan.Count(event, "content_index")
	if i.parts == nil {
		i.parts = map[int64]*streamedPart{}
	}
	if i.parts[index] == nil {
		i.parts[index] = &streamedPart{}
	}
	return i.parts[index]
}

// Reply returns the reply so far.
func (s *ResponsesStream) Reply() provider.Reply {
	body := s.response.Clone()
	if s.failure != nil {
		body.Set("error", s.failure)
	}
	if !s.ended || len(plan.List(body, "output")) == 0 {
		var output []any
		for _, index := range slices.Sorted(maps.Keys(s.items)) {
			output = append(output, s.items[index].whole())
		}
		body.Set("output", output)
	}
	return responsesReply(body, s.options)
}

// whole returns the item so far.
func (i *streamItem) whole() *value.Map {
	if i.done {
		return i.item
	}
	item := i.item.Clone()
	switch plan.Str(item, "type") {
	case "function_call":
		item.Set("arguments", i.text.String())
	case "message":
		content := []any{}
		for _, index := range slices.Sorted(maps.Keys(i.parts)) {
			content = append(content, i.parts[index].whole())
		}
		item.Set("content", content)
	}
	return item
}

func (p *streamedPart) whole() *value.Map {
	if p.refusal {
		return value.New().Set("type", "refusal").Set("refusal", p.text.String())
	}
	return value.New().Set("type", "output_text").Set("text", p.text.String())
}
