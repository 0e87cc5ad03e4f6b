package openai

import (
	"cmp"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/provider"
	"github.com/parley-hub/parley/message/provider/internal/plan"
	"github.com/parley-hub/parley/message/value"
)

// Responses writes messages as input items, and tools if there are some, for
// the responses interface.
func Responses(messages []message.Envelope, o provider.Options) provider.Request {
	o.Aliases = cmp.Or(o.Aliases, &provider.Aliases{})
	w := itemWriter{options: o}
	entries := plan.Make(messages, plan.Shape{Vendor: Vendor}, o, &w.notes)
	for i := range entries {
		w.entry(&entries[i])
	}
	body := value.New()
	body.SetText("previous_response_id", o.Previous)
	body.Set("input", w.out)
	if len(o.Tools) > 0 {
		tools := []any{}
		for _, t := range o.Tools {
			tool := value.New().Set("type", "function").Set("name", o.Aliases.Alias(t.Name))
			tool.SetText("description", t.Description)
			tools = append(tools, tool.Set("parameters", t.Schema()).Set("strict", false))
		}
		body.Set("tools", tools)
	}
	return provider.Request{Body: body, Notes: w.notes.Sorted()}
}

type itemWriter struct {
	options provider.Options
	notes   provider.Notes
	out     []any
	last    *value.Map // the item that the last text belonged to, if it has an id
}

func (w *itemWriter) entry(e *plan.Entry) {
	w.out = append(w.out, e.Opaque...)
	switch e.Side {
	case plan.Tool:
		w.result(e)
	case plan.Assistant:
		w.assistant(e)
		return
	case plan.System:
		plan.Unnamed(e, &w.notes)
		w.message(e.Role, w.input(e.Index, e.Blocks, false))
	default:
		plan.Speak(e, w.options, &w.notes)
		w.message("user", w.input(e.Index, e.Blocks, true))
	}
	w.last = nil
}

func (w *itemWriter) message(role string, content []any) {
	if len(content) > 0 {
		w.out = append(w.out, value.New().Set("type", "message").Set("role", role).Set("content", content))
	}
}

// input writes what goes to the model.
func (w *itemWriter) input(index int, blocks []plan.Block, media bool) []any {
	parts := []any{}
	for _, b := range blocks {
		if part := w.part(index, b, media); part != nil {
			parts = append(parts, plan.Merge(part, b.Extra))
		}
	}
	return parts
}

func (w *itemWriter) part(index int, b plan.Block, media bool) *value.Map {
	part := value.New()
	switch b.Kind {
	case plan.Text, plan.Refusal:
		return part.Set("type", "input_text").Set("text", b.Text)
	case plan.Verbatim:
		return b.Raw.Clone()
	}
	if !media {
		w.notes.Add(index, provider.Dropped, provider.NoteMedia, "media are accepted from users and tools only")
		return nil
	}
	switch b.Kind {
	case plan.Image:
		part.Set("type", "input_image")
		if b.Media.ID != "" {
			part.Set("file_id", b.Media.ID)
		} else {
			part.Set("image_url", b.Media.Link())
		}
		detail := cmp.Or(b.Media.Detail, defaultDetail)
		return part.Set("detail", detail)
	case plan.Audio:
		if b.Media.Data == "" {
			w.notes.Add(index, provider.Dropped, provider.NoteMedia, "a sound is accepted with its data only")
			return nil
		}
		w.notes.Add(index, provider.Changed, provider.NoteMedia, "whether sounds are accepted depends on the model")
		return part.Set("type", "input_audio").Set("input_audio", value.New().
			Set("data", b.Media.Data).
			Set("format", plan.AudioFormat(b.Media.MIME)))
	default:
		part.Set("type", "input_file")
		switch {
		case b.Media.ID != "":
			part.Set("file_id", b.Media.ID)
		case b.Media.Data != "":
			part.Set("file_data", b.Media.Encoded())
		default:
			part.Set("file_url", b.Media.URL)
		}
		part.SetText("filename", b.Media.Filename)
		return part
	}
}

// defaultDetail is the detail of an image that names none.
const defaultDetail = "auto"

// itemKey is the metadata key of an output item's further fields.
const itemKey = "item"

func (w *itemWriter) assistant(e *plan.Entry) {
	content := w.output(e)
	item := plan.Map(e.Own, itemKey)
	switch {
	case len(content) == 0:
	case item.Has("id") && w.last.Has("id") && value.Equal(item, w.last):
		before := w.out[len(w.out)-1].(*value.Map)
		before.Set("content", append(plan.List(before, "content"), content...))
	default:
		m := value.New().Set("type", "message").Set("role", "assistant").Set("content", content)
		w.out = append(w.out, plan.Merge(m, item))
		w.last = item
	}
	if e.Call == nil {
		return
	}
	w.last = nil
	call := value.New().
		Set("type", "function_call").
		Set("call_id", e.Call.ID).
		Set("name", e.Call.Name).
		Set("arguments", e.Call.Said())
	w.out = append(w.out, plan.Merge(call, callExtra(e)))
}

// output writes what the model said.
func (w *itemWriter) output(e *plan.Entry) []any {
	var parts []any
	for _, b := range e.Blocks {
		part := value.New()
		switch b.Kind {
		case plan.Text:
			part.Set("type", "output_text").Set("text", b.Text)
			plan.Merge(part, b.Extra)
			if !part.Has("annotations") {
				part.Set("annotations", []any{})
			}
		case plan.Refusal:
			part.Set("type", "refusal").Set("refusal", b.Text)
		case plan.Verbatim:
			part = b.Raw.Clone()
		default:
			w.notes.Add(e.Index, provider.Dropped, provider.NoteMedia, "an assistant's message holds text only")
			continue
		}
		parts = append(parts, part)
	}
	return parts
}

func (w *itemWriter) result(e *plan.Entry) {
	r := e.Result
	if r.Failed {
		w.notes.Add(e.Index, provider.Changed, provider.NoteFailure, "that the tool failed is told by its text only")
	}
	var output any = r.Text
	for _, b := range r.Blocks {
		if b.Kind == plan.Text {
			continue
		}
		blocks := r.Blocks
		if r.Failed && plan.JoinText(blocks) == "" {
			blocks = append([]plan.Block{{Text: r.Text}}, blocks...)
		}
		output = w.input(e.Index, blocks, true)
		break
	}
	item := value.New().Set("type", "function_call_output").Set("call_id", r.ID).Set("output", output)
	w.out = append(w.out, plan.Merge(item, plan.Map(e.Own, plan.ExtraKey)))
}
