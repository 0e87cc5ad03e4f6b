package openai

import (
	"strings"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/provider"
	"github.com/parley-hub/parley/message/provider/internal/plan"
	"github.com/parley-hub/parley/message/value"
)

// ChatStream reads a streamed chat completion.
type ChatStream struct {
	options  provider.ReadOptions
	budget   provider.Budget
	body     *value.Map
	message  *value.Map
	texts    map[string]*strings.Builder // the message's texts, by field
	fields   []string
	calls    map[int64]*chatCall
	order    []*chatCall
	finish   any
	choices  bool // others than the first were seen
	answered bool
}

type chatCall struct {
	raw       *value.Map
	name      string
	arguments strings.Builder
}

// NewChatStream returns an empty stream.
func NewChatStream(o provider.ReadOptions) *ChatStream {
	return &ChatStream{
		options: o, budget: provider.NewBudget(o), body: value.New(), message: value.New(),
		texts: map[string]*strings.Builder{}, calls: map[int64]*chatCall{},
	}
}

// Add takes the data of one event.
func (s *ChatStream) Add(chunk []byte) ([]message.Envelope, error) {
	if err := s.budget.Take(len(chunk)); err != nil {
		return nil, err
	}
	m, err := plan.Object(chunk)
	if err != nil {
		return nil, err
	}
	for _, key := range []string{"id", "model", "usage", "error"} {
		if v := m.At(key); v != nil {
			s.body.Set(key, v)
		}
	}
	var deltas []message.Envelope
	for _, choice := range plan.Maps(m, "choices") {
		if plan.Count(choice, "index") != 0 {
			s.choices = true
			continue
		}
		s.answered = true
		if reason := choice.At("finish_reason"); reason != nil {
			s.finish = reason
		}
		deltas = append(deltas, s.delta(plan.Map(choice, "delta"))...)
	}
	return deltas, nil
}

// kinds are the fields of a delta that are fragments of readable text.
var kinds = map[string]string{
	"content": provider.DeltaText, "refusal": provider.DeltaRefusal, reasoningKey: provider.DeltaReasoning,
}

func (s *ChatStream) delta(delta *value.Map) []message.Envelope {
	var out []message.Envelope
	for key, v := range delta.All() {
		text, isText := v.(string)
		switch {
		case key == "role" || key == "tool_calls" || v == nil:
		case isText:
			if s.texts[key] == nil {
				s.texts[key] = &strings.Builder{}
				s.fields = append(s.fields, key)
			}
			s.texts[key].WriteString(text)
			if kind, shown := kinds[key]; shown && text != "" {
				out = append(out, provider.Delta(kind, 0, text, "", ""))
			}
		default:
			s.message.Set(key, v)
		}
	}
	for _, fragment := range plan.Maps(delta, "tool_calls") {
		out = append(out, s.call(fragment))
	}
	return out
}

func (s *ChatStream) call(fragment *value.Map) message.Envelope {
	at := plan.Count(fragment, "index")
	call := s.calls[at]
	if call == nil {
		call = &chatCall{raw: value.New()}
		s.calls[at] = call
		s.order = append(s.order, call)
	}
	for key, v := range fragment.All() {
		if key != "index" && key != "function" && v != nil && v != "" {
			call.raw.Set(key, v)
		}
	}
	function := plan.Map(fragment, "function")
	named := plan.Str(function, "name")
	call.name += named
	arguments := plan.Str(function, "arguments")
	call.arguments.WriteString(arguments)
	if named != "" {
		named = s.options.Aliases.Name(call.name)
	}
	return provider.Delta(provider.DeltaToolCall, int(at), arguments, named, plan.Str(fragment, "id"))
}

// Reply returns the reply so far.
func (s *ChatStream) Reply() provider.Reply {
	body := s.body.Clone()
	if s.answered {
		m := value.New().Set("role", message.RoleAssistant)
		for _, key := range s.fields {
			m.Set(key, s.texts[key].String())
		}
		plan.Merge(m, s.message)
		var calls []any
		for _, call := range s.order {
			calls = append(calls, call.raw.Clone().Set("function",
				value.New().Set("name", call.name).Set("arguments", call.arguments.String())))
		}
		if calls != nil {
			m.Set("tool_calls", calls)
		}
		body.Set("choices", []any{value.New().Set("message", m).Set("finish_reason", s.finish)})
	}
	reply := chatReply(body, s.options)
	if s.choices {
		reply.Notes = append(reply.Notes, provider.Note{
			Index: -1, Kind: provider.Dropped, Code: provider.NoteChoices, Text: "only the first answer is read",
		})
	}
	return reply
}
