package anthropic

import (
	"cmp"
	"encoding/base64"
	"strings"
	"unicode/utf8"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/provider"
	"github.com/parley-hub/parley/message/provider/internal/plan"
	"github.com/parley-hub/parley/message/value"
)

// Messages writes messages, the system's text beside them, and tools if there
// are some. Roles alternate and the first is the user's.
func Messages(messages []message.Envelope, o provider.Options) provider.Request {
	o.Aliases = cmp.Or(o.Aliases, &provider.Aliases{})
	w := writer{options: o, turns: plan.Turns{Key: "content", Text: text}}
	w.turns.Notes = &w.notes
	entries := plan.Make(messages, plan.Shape{Vendor: Vendor}, o, &w.notes)
	for i := range entries {
		w.entry(&entries[i])
	}
	body := value.New()
	if len(w.system) > 0 {
		body.Set("system", w.system)
	}
	body.Set("messages", w.turns.Out)
	if len(o.Tools) > 0 {
		body.Set("tools", plan.Tools(o, "input_schema"))
	}
	if o.Previous != "" {
		w.notes.Add(-1, provider.Dropped, provider.NoteContinue, "messages do not continue an earlier response")
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
		plan.Unnamed(e, &w.notes)
		if e.Role != message.RoleSystem {
			w.notes.Add(e.Index, provider.Changed, provider.NoteRole, "the role %q becomes system", e.Role)
		}
		blocks := w.blocks(e, e.Blocks, false)
		if len(w.turns.Out) > 0 && len(blocks) > 0 {
			w.notes.Add(e.Index, provider.Moved, provider.NoteOrder, "a system message is moved before the conversation")
		}
		w.system = append(w.system, blocks...)
	case plan.Assistant:
		blocks := append([]any{}, e.Opaque...)
		blocks = append(blocks, w.blocks(e, e.Blocks, false)...)
		if e.Call != nil {
			blocks = append(blocks, w.call(e))
		}
		w.turns.Add(message.RoleAssistant, e.Index, blocks)
	case plan.Tool:
		w.turns.Add(message.RoleUser, e.Index, []any{w.result(e)})
	default:
		plan.Speak(e, w.options, &w.notes)
		w.turns.Add(message.RoleUser, e.Index, w.blocks(e, e.Blocks, true))
	}
}

func text(s string) *value.Map { return value.New().Set("type", "text").Set("text", s) }

func (w *writer) blocks(e *plan.Entry, blocks []plan.Block, media bool) []any {
	var out []any
	for _, b := range blocks {
		if block := w.block(e.Index, b, media); block != nil {
			out = append(out, plan.Merge(block, b.Extra))
		}
	}
	return out
}

func (w *writer) block(index int, b plan.Block, media bool) *value.Map {
	switch b.Kind {
	case plan.Text, plan.Refusal:
		// The interface refuses a whole request for one such text.
		if strings.TrimSpace(b.Text) == "" {
			w.notes.Add(index, provider.Dropped, provider.NoteBlock, "a text of white space alone is not accepted")
			return nil
		}
		if b.Kind == plan.Refusal {
			w.notes.Add(index, provider.Changed, provider.NoteRefusal, "a refusal is sent as a text")
		}
		return text(b.Text)
	case plan.Verbatim:
		return b.Raw.Clone()
	}
	if !media {
		w.notes.Add(index, provider.Dropped, provider.NoteMedia, "media are accepted from users and tools only")
		return nil
	}
	if b.Media.Detail != "" {
		w.notes.Add(index, provider.Dropped, provider.NoteMedia, "the detail of an image is not sent")
	}
	switch b.Kind {
	case plan.Image:
		if b.Media.Data != "" && !images[b.Media.MIME] {
			w.notes.Add(index, provider.Dropped, provider.NoteMedia, "images are JPEG, PNG, GIF or WebP, not %q", b.Media.MIME)
			return nil
		}
		return value.New().Set("type", "image").Set("source", source(b.Media))
	case plan.File:
		return w.document(index, b.Media)
	}
	w.notes.Add(index, provider.Dropped, provider.NoteMedia, "sounds are not accepted; transcribe them")
	return nil
}

// images are the types of images that can be sent with their data.
var images = map[string]bool{"image/jpeg": true, "image/png": true, "image/gif": true, "image/webp": true}

func source(m plan.Media) *value.Map {
	s := value.New()
	switch {
	case m.ID != "":
		return s.Set("type", "file").Set("file_id", m.ID)
	case m.Data != "":
		return s.Set("type", "base64").Set("media_type", m.MIME).Set("data", m.Data)
	}
	return s.Set("type", "url").Set("url", m.URL)
}

// The types of documents that can be sent with their data.
const (
	typePDF   = "application/pdf"
	typePlain = "text/plain"
)

func (w *writer) document(index int, m plan.Media) *value.Map {
	from := source(m)
	if m.ID == "" && m.Data != "" {
		switch m.MIME {
		case typePDF:
		case typePlain:
			plain, err := base64.StdEncoding.DecodeString(m.Data)
			if err != nil || !utf8.Valid(plain) {
				w.notes.Add(index, provider.Dropped, provider.NoteFile, "a plain text file is not text")
				return nil
			}
			from = value.New().Set("type", "text").Set("media_type", typePlain).Set("data", string(plain))
		default:
			w.notes.Add(index, provider.Dropped, provider.NoteFile, "documents are PDF or plain text, not %q", m.MIME)
			return nil
		}
	}
	document := value.New().Set("type", "document").Set("source", from)
	document.SetText("title", m.Filename)
	return document
}

func (w *writer) call(e *plan.Entry) *value.Map {
	call := value.New().
		Set("type", "tool_use").
		Set("id", e.Call.ID).
		Set("name", e.Call.Name).
		Set("input", e.Call.Object(e.Index, &w.notes))
	if e.HasText() {
		return call
	}
	return plan.Merge(call, plan.Map(e.Own, plan.ExtraKey))
}

func (w *writer) result(e *plan.Entry) *value.Map {
	r := e.Result
	block := value.New().Set("type", "tool_result").Set("tool_use_id", r.ID)
	blocks := w.blocks(e, r.Blocks, true)
	switch {
	case len(blocks) == 1 && r.Blocks[0].Plain() && plan.Str(blocks[0].(*value.Map), "type") == "text":
		block.Set("content", r.Text)
	case len(blocks) > 0:
		block.Set("content", blocks)
	case r.Text != "":
		block.Set("content", r.Text)
	}
	block.Set("is_error", r.Failed)
	return plan.Merge(block, plan.Map(e.Own, plan.ExtraKey))
}
