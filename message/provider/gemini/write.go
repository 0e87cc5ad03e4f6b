package gemini

import (
	"cmp"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/provider"
	"github.com/parley-hub/parley/message/provider/internal/plan"
	"github.com/parley-hub/parley/message/value"
)

// Contents writes messages, the system's text beside them, and tools if there
// are some. Roles alternate and the first is the user's.
func Contents(messages []message.Envelope, o provider.Options) provider.Request {
	o.Aliases = cmp.Or(o.Aliases, &provider.Aliases{})
	w := writer{options: o, turns: plan.Turns{Key: "parts", Text: text}}
	w.turns.Notes = &w.notes
	entries := plan.Make(messages, plan.Shape{Vendor: Vendor, Values: true}, o, &w.notes)
	for i := range entries {
		w.entry(&entries[i])
	}
	body := value.New()
	if len(w.system) > 0 {
		body.Set("systemInstruction", value.New().Set("parts", w.system))
	}
	body.Set("contents", w.turns.Out)
	if len(o.Tools) > 0 {
		body.Set("tools", []any{value.New().Set("functionDeclarations", plan.Tools(o, "parametersJsonSchema"))})
	}
	if o.Previous != "" {
		w.notes.Add(-1, provider.Dropped, provider.NoteContinue, "generateContent does not continue an earlier response")
	}
	return provider.Request{Body: body, Notes: w.notes.Sorted()}
}

type writer struct {
	options provider.Options
	notes   provider.Notes
	system  []any
	turns   plan.Turns
}

func (w *writer) entry(e *plan.Entry) {
	switch e.Side {
	case plan.System:
		w.instruct(e)
	case plan.Assistant:
		parts := append([]any{}, e.Opaque...)
		parts = append(parts, w.parts(e)...)
		if e.Call != nil {
			parts = append(parts, w.call(e))
		}
		w.turns.Add(roleModel, e.Index, parts)
	case plan.Tool:
		w.turns.Add(message.RoleUser, e.Index, []any{w.result(e)})
	default:
		plan.Speak(e, w.options, &w.notes)
		w.turns.Add(message.RoleUser, e.Index, w.parts(e))
	}
}

func (w *writer) instruct(e *plan.Entry) {
	plan.Unnamed(e, &w.notes)
	if e.Role != message.RoleSystem {
		w.notes.Add(e.Index, provider.Changed, provider.NoteRole, "the role %q becomes the system's", e.Role)
	}
	for _, b := range e.Blocks {
		if b.Kind != plan.Text {
			w.notes.Add(e.Index, provider.Dropped, provider.NoteMedia, "the system's instruction holds text only")
			continue
		}
		if len(w.turns.Out) > 0 {
			w.notes.Add(e.Index, provider.Moved, provider.NoteOrder, "a system message is moved before the conversation")
		}
		w.system = append(w.system, plan.Merge(text(b.Text), b.Extra))
	}
}

func text(s string) *value.Map { return value.New().Set("text", s) }

func (w *writer) parts(e *plan.Entry) []any {
	var out []any
	for _, b := range e.Blocks {
		if part := w.part(e.Index, b); part != nil {
			out = append(out, plan.Merge(part, b.Extra))
		}
	}
	return out
}

func (w *writer) part(index int, b plan.Block) *value.Map {
	switch b.Kind {
	case plan.Text:
		return text(b.Text)
	case plan.Refusal:
		w.notes.Add(index, provider.Changed, provider.NoteRefusal, "a refusal is sent as a text")
		return text(b.Text)
	case plan.Verbatim:
		return b.Raw.Clone()
	}
	if b.Media.Detail != "" {
		w.notes.Add(index, provider.Dropped, provider.NoteMedia, "the detail of an image is not sent")
	}
	part, media := value.New(), value.New()
	media.SetText("mimeType", b.Media.MIME)
	switch {
	case b.Media.Data != "" && b.Media.MIME == "":
		w.notes.Add(index, provider.Dropped, provider.NoteMedia, "data need a type, such as image/png")
		return nil
	case b.Media.Data != "":
		part.Set("inlineData", media.Set("data", b.Media.Data))
	case b.Media.URL != "":
		part.Set("fileData", media.Set("fileUri", b.Media.URL))
	default:
		w.notes.Add(index, provider.Dropped, provider.NoteFile, "the file %q is known to another provider only", b.Media.ID)
		return nil
	}
	media.SetText("displayName", b.Media.Filename)
	return part
}

func (w *writer) call(e *plan.Entry) *value.Map {
	part := value.New().Set("functionCall", value.New().
		Set("id", e.Call.ID).
		Set("name", e.Call.Name).
		Set("args", e.Call.Object(e.Index, &w.notes)))
	if e.HasText() {
		return part
	}
	return plan.Merge(part, plan.Map(e.Own, plan.ExtraKey))
}

func (w *writer) result(e *plan.Entry) *value.Map {
	r := e.Result
	for _, b := range r.Blocks {
		if b.Kind != plan.Text {
			w.notes.Add(e.Index, provider.Dropped, provider.NoteMedia, "a function's response holds no media")
		}
	}
	part := value.New().Set("functionResponse", value.New().
		Set("id", r.ID).
		Set("name", r.Name).
		Set("response", response(r, plan.Map(e.Own, responseKey))))
	return plan.Merge(part, plan.Map(e.Own, plan.ExtraKey))
}

// responseKey is the metadata key of a response that would otherwise be
// written differently.
const responseKey = "response"

// response returns a response, which is always an object: other values are
// wrapped, and so is a value that would be read as wrapped. A response that was
// read is returned unchanged while its value is the same.
func response(r *plan.Result, kept *value.Map) *value.Map {
	if kept != nil {
		if was := readResponse(kept); was.Failed == r.Failed && was.Text == r.Text && (r.Failed || value.Equal(was.Value, r.Value)) {
			return kept
		}
	}
	return writeResponse(r)
}

func writeResponse(r *plan.Result) *value.Map {
	if r.Failed {
		return value.New().Set("error", r.Text)
	}
	answer := r.Value
	object, _ := answer.(*value.Map)
	if answer == nil {
		answer, object = r.Text, objectOf(r.Text)
	}
	if object != nil && !wrapped(object) {
		return object
	}
	return value.New().Set("result", answer)
}

// objectOf returns the object that a text encodes exactly, or nil.
func objectOf(text string) *value.Map {
	v, err := value.Decode([]byte(text))
	m, _ := v.(*value.Map)
	if err != nil || plan.JSON(m) != text {
		return nil
	}
	return m
}

// wrapped reports whether a response holds nothing but a result or an error.
func wrapped(m *value.Map) bool {
	return m.Len() == 1 && (m.Has("result") || m.Has("error"))
}
