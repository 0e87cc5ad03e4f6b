package plan

import (
	"slices"
	"strings"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/provider"
	"github.com/parley-hub/parley/message/value"
)

// Reading makes canonical messages from a provider's output, in its order.
type Reading struct {
	vendor  string
	options provider.ReadOptions
	turn    int
	calls   int // in this turn
	tools   map[string]string
	open    []string // the ids of calls that have no result yet, oldest first
	opaque  []any
	reasons []string
	own     *value.Map
	out     []message.Envelope
	Notes   provider.Notes
	// Merges says that one message of the provider's may be several of ours.
	Merges bool
}

// NewReading returns a reading without messages.
func NewReading(vendor string, o provider.ReadOptions) *Reading {
	return &Reading{vendor: vendor, options: o, turn: o.FirstTurn(), tools: map[string]string{}}
}

// Next returns the index of the message that is made next.
func (r *Reading) Next() int { return len(r.out) }

// Opaque keeps what the provider wants back before the next message.
func (r *Reading) Opaque(v any) { r.opaque = append(r.opaque, v) }

// Reason keeps readable reasoning for the next message.
func (r *Reading) Reason(text string) {
	if text != "" {
		r.reasons = append(r.reasons, text)
	}
}

// Keep puts something under the provider's name into the next message's metadata.
func (r *Reading) Keep(key string, v *value.Map) {
	if v.Len() == 0 {
		return
	}
	if r.own == nil {
		r.own = value.New()
	}
	r.own.Set(key, v)
}

// EndTurn ends the model's turn.
func (r *Reading) EndTurn() {
	r.flush()
	if r.calls > 0 {
		r.turn, r.calls = r.turn+1, 0
	}
}

// flush makes an empty text for what waits for a message that does not come.
func (r *Reading) flush() {
	if len(r.opaque)+len(r.reasons)+r.own.Len() > 0 {
		r.Text(message.RoleAssistant, "", nil)
	}
}

// Text makes a text.
func (r *Reading) Text(role, text string, extra *value.Map) {
	r.Add(message.Envelope{Type: message.TypeText, Role: role, Content: text}, extra)
}

// Refusal makes a text that is a refusal.
func (r *Reading) Refusal(text string, extra *value.Map) {
	r.Add(message.Envelope{
		Type: message.TypeText, Role: message.RoleAssistant, Content: text,
		Metadata: value.New().Set("refusal", true),
	}, extra)
}

// Content makes a message of blocks. One text is a text. Several are one each
// where the provider merges neighbours, and one message otherwise, as with
// media.
func (r *Reading) Content(role string, blocks []Block) {
	onlyText := true
	for _, b := range blocks {
		onlyText = onlyText && b.Kind == Text
	}
	if onlyText && (r.Merges || len(blocks) <= 1) {
		for _, b := range blocks {
			r.Text(role, b.Text, b.Extra)
		}
		return
	}
	r.Add(message.Envelope{Type: message.TypeMultimodalPart, Role: role, Content: r.List(blocks)}, nil)
}

// List returns blocks as content.
func (r *Reading) List(blocks []Block) []any {
	list := make([]any, 0, len(blocks))
	for _, b := range blocks {
		if b.Kind == Verbatim {
			list = append(list, value.New().Set("type", verbatimType).Set("provider", r.vendor).Set("block", b.Raw))
			continue
		}
		m := b.canonical()
		if b.Extra.Len() > 0 {
			m.Set(r.vendor, b.Extra)
		}
		list = append(list, m)
	}
	return list
}

// Call makes a tool call of the arguments' value, or of their text.
func (r *Reading) Call(id, alias string, arguments *value.Map, bad string, extra *value.Map) {
	r.calls++
	name := r.options.Aliases.Name(alias)
	id = message.CallID(value.New().Set("id", id), r.turn, r.calls)
	r.tools[id] = name
	r.open = append(r.open, id)
	payload := value.New().
		Set("tool_name", name).
		Set("parameters", arguments).
		Set("turn", value.Int(r.turn))
	if bad != "" {
		payload.Set(ArgumentsText, bad)
		r.Notes.Add(len(r.out), provider.Changed, provider.NoteArgs, "the arguments of %q are not a JSON object", name)
	}
	r.Add(message.Envelope{
		Type: message.TypeToolCall, Role: message.RoleAssistant, Content: "", Payload: payload,
		Metadata: value.New().Set("tool_call_id", id),
	}, extra)
}

// Result makes a tool result. An empty alias is looked up by the call's id; an
// empty id is that of the tool's oldest call without a result.
func (r *Reading) Result(id, alias string, content any, payload *value.Map, extra *value.Map) {
	if id == "" {
		id = r.oldest(alias)
	}
	if at := slices.Index(r.open, id); at >= 0 {
		r.open = slices.Delete(r.open, at, at+1)
	}
	name, known := r.tools[id]
	if !known && alias != "" {
		name = r.options.Aliases.Name(alias)
	}
	metadata := value.New()
	metadata.SetText("tool_call_id", id)
	r.Add(message.Envelope{
		Type: message.TypeToolResult, Role: message.RoleUser, Content: content,
		Payload: payload.Clone().Set("tool_name", name), Metadata: metadata,
	}, extra)
}

func (r *Reading) oldest(alias string) string {
	if alias == "" {
		return ""
	}
	name := r.options.Aliases.Name(alias)
	for _, id := range r.open {
		if r.tools[id] == name {
			return id
		}
	}
	return ""
}

// Add makes any message; what waits for one is attached to it if it is the
// model's.
func (r *Reading) Add(e message.Envelope, extra *value.Map) {
	if e.Payload == nil {
		e.Payload = value.New()
	}
	if e.Metadata == nil {
		e.Metadata = value.New()
	}
	own := r.own.Clone()
	r.own = nil
	if e.Role == message.RoleAssistant {
		if len(r.reasons) > 0 {
			e.Metadata.Set("reasoning", strings.Join(r.reasons, "\n\n"))
		}
		if len(r.opaque) > 0 {
			own.Set(OpaqueKey, r.opaque)
		}
		r.opaque, r.reasons = nil, nil
	}
	if extra.Len() > 0 {
		own.Set(ExtraKey, extra)
	}
	if own.Len() > 0 {
		e.Metadata.Set(r.vendor, own)
	}
	r.out = append(r.out, e)
}

// Messages returns the messages that were made.
func (r *Reading) Messages() []message.Envelope {
	r.flush()
	if r.out == nil {
		return []message.Envelope{}
	}
	return r.out
}

// Reply returns what was made from one answer: texts before calls.
func (r *Reading) Reply() []message.Envelope {
	all := r.Messages()
	sorted := make([]message.Envelope, 0, len(all))
	var calls []message.Envelope
	for i, e := range all {
		if e.Type == message.TypeToolCall {
			calls = append(calls, e)
			continue
		}
		if len(calls) > 0 {
			r.Notes.Add(i, provider.Moved, provider.NoteOrder, "a text is moved before the calls it followed")
		}
		sorted = append(sorted, e)
	}
	return append(sorted, calls...)
}

// canonical returns the block in the form that every runtime understands.
func (b Block) canonical() *value.Map {
	switch b.Kind {
	case Image:
		source := value.New()
		source.SetText("url", b.Media.Link())
		source.SetText("file_id", b.Media.ID)
		if b.Media.Data == "" {
			source.SetText("mime_type", b.Media.MIME)
		}
		source.SetText("detail", b.Media.Detail)
		return value.New().Set("type", "image_url").Set("image_url", source)
	case File:
		source := value.New()
		source.SetText("url", b.Media.URL)
		source.SetText("file_id", b.Media.ID)
		source.SetText("file_data", b.Media.Data)
		source.SetText("filename", b.Media.Filename)
		source.SetText("mime_type", b.Media.MIME)
		return value.New().Set("type", "file").Set("file", source)
	case Audio:
		source := value.New().Set("data", b.Media.Data).Set("format", AudioFormat(b.Media.MIME))
		if audioMIME(AudioFormat(b.Media.MIME)) != b.Media.MIME {
			source.Set("mime_type", b.Media.MIME)
		}
		return value.New().Set("type", "input_audio").Set("input_audio", source)
	case Refusal:
		return value.New().Set("type", "refusal").Set("text", b.Text)
	default:
		return value.New().Set("type", "text").Set("text", b.Text)
	}
}

// Name puts a speaker's name on the messages made since start.
func (r *Reading) Name(start int, name string) {
	if name == "" {
		return
	}
	for i := start; i < len(r.out); i++ {
		r.out[i].Metadata.Set("name", name)
	}
}
