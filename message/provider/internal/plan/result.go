package plan

import (
	"slices"

	"github.com/parley-hub/parley/message/provider"
	"github.com/parley-hub/parley/message/value"
)

// failedText is the error of a failed result without one.
const failedText = "Tool execution failed."

// result reads a tool's answer. What is not sent of it is noted.
func (p *planner) result(s *source) *Result {
	call := &p.list[s.partner]
	r := &Result{ID: s.callID, Name: p.options.Aliases.Alias(call.ToolName())}
	success, said := s.Payload.At("success").(bool)
	r.Failed = said && !success
	text, isText := s.Text()
	if !isText {
		r.Blocks = p.blocks(s)
		text = JoinText(r.Blocks)
	}
	r.Blocks = append(r.Blocks, p.media(s)...)
	if r.Failed {
		p.failure(s, r, text)
	} else {
		p.answer(s, r, text)
	}
	// The blocks hold the text too; the failure itself may be all there is.
	if JoinText(r.Blocks) != r.Text && r.Text != failedText {
		r.Blocks = slices.DeleteFunc(r.Blocks, func(b Block) bool { return b.Kind == Text || b.Kind == Refusal })
		if r.Text != "" {
			r.Blocks = slices.Insert(r.Blocks, 0, Block{Text: r.Text})
		}
	}
	return r
}

// media reads the media of a payload.
func (p *planner) media(s *source) []Block {
	list, isList := s.Payload.At("media").([]any)
	if m, ok := s.Payload.At("media").(*value.Map); !isList && ok {
		list, _ = value.Values(m)
		if m.At("type") != nil {
			list = []any{m}
		}
	}
	var blocks []Block
	for _, item := range list {
		if b, ok := p.block(s.index, item); ok {
			blocks = append(blocks, b)
		}
	}
	return blocks
}

// failure sets why a tool failed: the payload's error, else the content.
func (p *planner) failure(s *source, r *Result, text string) {
	reason := s.Payload.At("error")
	if _, isBool := reason.(bool); isBool || blank(reason) {
		reason = nil // it only says that there is an error, or nothing
	}
	switch {
	case reason != nil:
		r.Text = resultText(reason)
	case text != "":
		r.Text = text
	default:
		r.Text = failedText
	}
	if text != "" && !says(text, r.Text) && !says(text, reason) {
		p.notes.Add(s.index, provider.Dropped, provider.NoteResult, "the content of the failed result is not sent beside its error")
	}
	for _, key := range resultKeys {
		if v := s.Payload.At(key); v != nil && !blank(v) && !says(text, v) {
			p.notes.Add(s.index, provider.Dropped, provider.NoteResult, "the %s of the failed result is not sent", key)
		}
	}
}

// resultKeys are the keys under which payloads keep an answer as a value; the
// first counts.
var resultKeys = []string{"result", "tool_data"}

// answer sets the answer: the content, or the payload's value if values are sent.
func (p *planner) answer(s *source, r *Result, text string) {
	for _, key := range resultKeys {
		v := s.Payload.At(key)
		switch {
		case v == nil || (text != "" && blank(v) && !says(text, v)):
		case r.Value != nil:
			if !value.Equal(v, r.Value) {
				p.notes.Add(s.index, provider.Dropped, provider.NoteResult, "the %s of the result is not sent", key)
			}
		default:
			r.Value = v
			if text == "" || says(text, v) {
				continue
			}
			if p.shape.Values {
				p.notes.Add(s.index, provider.Dropped, provider.NoteResult, "the text of the result is not sent, its %s is", key)
			} else {
				p.notes.Add(s.index, provider.Dropped, provider.NoteResult, "the %s of the result is not sent, its text is", key)
			}
		}
	}
	r.Text = text
	if text == "" && r.Value != nil {
		r.Text = resultText(r.Value)
	}
}

// blank reports whether a value holds nothing.
func blank(v any) bool { return v == "" || (value.IsContainer(v) && value.Len(v) == 0) }

// says reports whether a text is a value: a string itself, or the value as
// JSON.
func says(text string, v any) bool {
	if text == v {
		return true
	}
	decoded, err := value.Decode([]byte(text))
	return err == nil && value.Equal(decoded, v)
}

// resultText returns a value as a model reads it: a string unchanged, others as JSON.
func resultText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return JSON(v)
}
