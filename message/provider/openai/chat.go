package openai

import (
	"cmp"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/provider"
	"github.com/parley-hub/parley/message/provider/internal/plan"
	"github.com/parley-hub/parley/message/value"
)

// Chat writes messages, and tools if there are some, for chat completions.
func Chat(messages []message.Envelope, o provider.Options) provider.Request {
	o.Aliases = cmp.Or(o.Aliases, &provider.Aliases{})
	w := chatWriter{options: o}
	entries := plan.Make(messages, plan.Shape{Vendor: VendorChat, Split: true}, o, &w.notes)
	for i := range entries {
		w.entry(&entries[i])
	}
	body := value.New().Set("messages", w.out)
	if len(o.Tools) > 0 {
		tools := []any{}
		for _, function := range plan.Tools(o, "parameters") {
			tools = append(tools, value.New().Set("type", "function").Set("function", function))
		}
		body.Set("tools", tools)
	}
	if o.Previous != "" {
		w.notes.Add(-1, provider.Dropped, provider.NoteContinue, "chat completions do not continue an earlier response")
	}
	return provider.Request{Body: body, Notes: w.notes.Sorted()}
}

type chatWriter struct {
	options provider.Options
	notes   provider.Notes
	out     []any
}

func (w *chatWriter) entry(e *plan.Entry) {
	switch e.Side {
	case plan.Tool:
		w.result(e)
	case plan.Assistant:
		w.assistant(e)
	case plan.System:
		if !legalName(e.Name) {
			plan.Unnamed(e, &w.notes)
			e.Name = ""
		}
		w.message(e, e.Role, false)
	default:
		if !legalName(e.Name) {
			plan.Speak(e, w.options, &w.notes)
			e.Name = ""
		}
		w.message(e, message.RoleUser, true)
	}
}

func (w *chatWriter) message(e *plan.Entry, role string, media bool) {
	if content, ok := w.content(e, media); ok {
		m := value.New().Set("role", role).Set("content", content)
		m.SetText("name", e.Name)
		w.out = append(w.out, m)
	}
}

// legalName reports whether the interface accepts a name unchanged.
func legalName(name string) bool {
	for i := range len(name) {
		c := name[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return len(name) <= 64
}

// content returns one text as a string, or a list of parts.
func (w *chatWriter) content(e *plan.Entry, media bool) (any, bool) {
	parts := []any{}
	for _, b := range e.Blocks {
		if part := w.part(e.Index, b, media); part != nil {
			parts = append(parts, plan.Merge(part, b.Extra))
		}
	}
	if len(parts) == 1 {
		// A part with further fields is more than its text.
		if only := parts[0].(*value.Map); only.At("type") == "text" && only.Len() == 2 {
			return only.At("text"), true
		}
	}
	return parts, len(parts) > 0
}

func (w *chatWriter) part(index int, b plan.Block, media bool) *value.Map {
	part := value.New()
	switch b.Kind {
	case plan.Text, plan.Refusal:
		return part.Set("type", "text").Set("text", b.Text)
	case plan.Verbatim:
		return b.Raw.Clone()
	}
	if !media {
		w.notes.Add(index, provider.Dropped, provider.NoteMedia, "media are accepted from users only")
		return nil
	}
	switch b.Kind {
	case plan.Image:
		if b.Media.ID != "" {
			break
		}
		source := value.New().Set("url", b.Media.Link())
		source.SetText("detail", b.Media.Detail)
		return part.Set("type", "image_url").Set("image_url", source)
	case plan.Audio:
		format := plan.AudioFormat(b.Media.MIME)
		if b.Media.Data == "" || (format != "wav" && format != "mp3") {
			break
		}
		return part.Set("type", "input_audio").
			Set("input_audio", value.New().Set("data", b.Media.Data).Set("format", format))
	default:
		source := value.New()
		switch {
		case b.Media.ID != "":
			source.Set("file_id", b.Media.ID)
		case b.Media.Data != "":
			source.Set("file_data", b.Media.Encoded())
		default:
			w.notes.Add(index, provider.Dropped, provider.NoteMedia, "chat completions do not accept a file by its address")
			return nil
		}
		source.SetText("filename", b.Media.Filename)
		return part.Set("type", "file").Set("file", source)
	}
	w.notes.Add(index, provider.Dropped, provider.NoteMedia, "chat completions take images by address, and sounds as wav or mp3")
	return nil
}

// assistant begins a message with each text; a call joins the message before.
func (w *chatWriter) assistant(e *plan.Entry) {
	said := w.said(e)
	if said.Len() == 0 && e.Call == nil {
		return
	}
	var m *value.Map
	if n := len(w.out); n > 0 && !e.HasText() {
		if last := w.out[n-1].(*value.Map); last.At("role") == message.RoleAssistant {
			m = last
		}
	}
	if m == nil {
		m = value.New().Set("role", message.RoleAssistant).Set("content", nil)
		w.out = append(w.out, m)
	}
	for key, text := range said.All() {
		m.Set(key, text)
	}
	if e.Call != nil {
		m.Set("tool_calls", append(plan.List(m, "tool_calls"), chatCallOf(e)))
	}
	plan.Merge(m, plan.Map(e.Own, messageKey))
}

// chatCallOf writes a call of a function, or returns one of another type
// unchanged.
func chatCallOf(e *plan.Entry) *value.Map {
	call, extra := value.New().Set("id", e.Call.ID), callExtra(e)
	if !extra.Has("type") {
		call.Set("type", "function").
			Set("function", value.New().Set("name", e.Call.Name).Set("arguments", e.Call.Said()))
	}
	return plan.Merge(call, extra)
}

// messageKey is the metadata key of a chat message's further fields.
const messageKey = "message"

// callExtra returns the further fields of a call. Texts keep theirs with their
// block.
func callExtra(e *plan.Entry) *value.Map {
	if e.HasText() {
		return nil
	}
	return plan.Map(e.Own, plan.ExtraKey)
}

// said returns the text and the refusal of an assistant's message.
func (w *chatWriter) said(e *plan.Entry) *value.Map {
	said := value.New()
	var texts, refusals []plan.Block
	for _, b := range e.Blocks {
		switch b.Kind {
		case plan.Text:
			texts = append(texts, b)
		case plan.Refusal:
			refusals = append(refusals, b)
		default:
			w.notes.Add(e.Index, provider.Dropped, provider.NoteMedia, "an assistant's message holds text only")
		}
	}
	if len(refusals) > 0 {
		said.Set("refusal", plan.JoinText(refusals))
	}
	if len(texts) > 0 {
		said.Set("content", plan.JoinText(texts))
	}
	return said
}

func (w *chatWriter) result(e *plan.Entry) {
	r := e.Result
	if r.Failed {
		w.notes.Add(e.Index, provider.Changed, provider.NoteFailure, "that the tool failed is told by its text only")
	}
	for _, b := range r.Blocks {
		if b.Kind != plan.Text {
			w.notes.Add(e.Index, provider.Dropped, provider.NoteMedia, "a tool's message holds text only")
		}
	}
	w.out = append(w.out, value.New().Set("role", "tool").Set("tool_call_id", r.ID).Set("content", r.Text))
}
