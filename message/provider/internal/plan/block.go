package plan

import (
	"cmp"
	"encoding/base64"
	"net/url"
	"path"
	"strings"

	"github.com/parley-hub/parley/message/provider"
	"github.com/parley-hub/parley/message/value"
)

// Kind is what a block holds.
type Kind int

// The kinds of a block.
const (
	Text Kind = iota
	Refusal
	Image
	File
	Audio
	Verbatim // a block only this provider knows
)

// Block is one piece of content.
type Block struct {
	Kind  Kind
	Text  string
	Media Media
	Raw   *value.Map // of a verbatim one
	Extra *value.Map // further fields of this provider, returned verbatim
}

// Media is an image, a file or a sound: by address, by id, or itself in base64.
type Media struct {
	URL      string
	ID       string
	Data     string
	MIME     string
	Filename string
	Detail   string
}

// Plain reports whether the block is a text and nothing else.
func (b Block) Plain() bool { return b.Kind == Text && b.Extra.Len() == 0 }

// JoinText returns the text of blocks as one.
func JoinText(blocks []Block) string {
	var texts []string
	for _, b := range blocks {
		if b.Kind == Text || b.Kind == Refusal {
			texts = append(texts, b.Text)
		}
	}
	return strings.Join(texts, "\n\n")
}

// blocks reads an envelope's content. Empty texts are left out: some providers
// refuse them.
func (p *planner) blocks(s *source) []Block {
	if text, ok := s.Text(); ok {
		if text == "" {
			return nil
		}
		own, _ := s.Metadata.At(p.shape.Vendor).(*value.Map)
		extra, _ := own.At(ExtraKey).(*value.Map)
		kind := Text
		if s.Metadata.At("refusal") == true {
			kind = Refusal
		}
		return []Block{{Kind: kind, Text: text, Extra: extra}}
	}
	list := []any{s.Content}
	if m, ok := s.Content.(*value.Map); !ok || m.At("type") == nil {
		list, _ = value.Values(s.Content)
	}
	var blocks []Block
	for _, item := range list {
		if b, ok := p.block(s.index, item); ok {
			blocks = append(blocks, b)
		}
	}
	return blocks
}

// ExtraKey is the key, under a provider's name in metadata, of its further
// fields.
const ExtraKey = "extra"

// verbatimType is the type of a block that only one provider knows.
const verbatimType = "provider_block"

func (p *planner) block(index int, item any) (Block, bool) {
	if text, ok := item.(string); ok {
		return Block{Text: text}, text != ""
	}
	m, _ := item.(*value.Map)
	extra, _ := m.At(p.shape.Vendor).(*value.Map)
	b := Block{Extra: extra}
	switch m.At("type") {
	case "text":
		b.Text = textOf(m)
		return b, b.Text != ""
	case "refusal":
		b.Kind, b.Text = Refusal, textOf(m)
		return b, b.Text != ""
	case "image_url":
		b.Kind = Image
		source, _ := m.At("image_url").(*value.Map)
		if link, ok := m.At("image_url").(string); ok {
			source = value.New().Set("url", link)
		}
		b.Media = media(source)
	case verbatimType:
		raw, _ := m.At("block").(*value.Map)
		if m.At("provider") != p.shape.Vendor || raw == nil {
			p.notes.Add(index, provider.Dropped, provider.NoteOpaque, "a block of %q is not for %s", value.Text(m.At("provider")), p.shape.Vendor)
			return b, false
		}
		return Block{Kind: Verbatim, Raw: raw}, true
	case "file":
		return p.file(index, m, b)
	case "input_audio":
		b.Kind = Audio
		source, _ := m.At("input_audio").(*value.Map)
		b.Media = Media{Data: str(source, "data"), MIME: str(source, "mime_type")}
		if b.Media.MIME == "" {
			b.Media.MIME = audioMIME(str(source, "format"))
		}
	default:
		b.Text = textOf(m)
		if b.Text == "" {
			p.notes.Add(index, provider.Dropped, provider.NoteBlock, "a block of type %q has no text", value.Text(m.At("type")))
			return b, false
		}
		p.notes.Add(index, provider.Changed, provider.NoteBlock, "a block of type %q is sent as its text", value.Text(m.At("type")))
		return b, true
	}
	if b.Media.empty() {
		p.notes.Add(index, provider.Dropped, provider.NoteMedia, "a block of type %q holds nothing", value.Text(m.At("type")))
		return b, false
	}
	return b, true
}

// file reads a block that names a local file, or holds one.
func (p *planner) file(index int, m *value.Map, b Block) (Block, bool) {
	b.Kind = File
	held, _ := m.At("file").(*value.Map)
	b.Media = media(held)
	if b.Media.MIME == "" {
		b.Media.MIME = str(m, "mime_type")
	}
	if at := str(m, "file_path"); at != "" && b.Media.empty() {
		if p.options.ReadFile == nil {
			p.notes.Add(index, provider.Dropped, provider.NoteFile, "the local file %q: reading files is off", at)
			return b, false
		}
		data, err := p.options.ReadFile(at)
		if err != nil {
			p.notes.Add(index, provider.Dropped, provider.NoteFile, "the local file %q cannot be read", at)
			return b, false
		}
		b.Media.Data, b.Media.Filename = base64.StdEncoding.EncodeToString(data), path.Base(at)
	}
	if b.Media.empty() {
		p.notes.Add(index, provider.Dropped, provider.NoteFile, "a file block names no file")
		return b, false
	}
	switch major, _, _ := strings.Cut(b.Media.MIME, "/"); major {
	case "image":
		b.Kind = Image
	case "audio":
		b.Kind = Audio
	}
	return b, true
}

func media(m *value.Map) Media {
	found := Media{
		URL: str(m, "url"), ID: str(m, "file_id"), Data: str(m, "file_data"),
		MIME: str(m, "mime_type"), Filename: str(m, "filename"), Detail: str(m, "detail"),
	}
	for _, text := range []*string{&found.URL, &found.Data} {
		if mime, data, ok := ParseDataURI(*text); ok {
			*text = ""
			found.Data = data
			found.MIME = cmp.Or(found.MIME, mime)
		}
	}
	return found
}

func (m Media) empty() bool { return m.URL == "" && m.ID == "" && m.Data == "" }

// Link returns the address of the media: its own, or its data as one.
func (m Media) Link() string {
	if m.Data == "" {
		return m.URL
	}
	return "data:" + m.MIME + ";base64," + m.Data
}

// Encoded returns the data as a data URI, or in base64 if their type is not known.
func (m Media) Encoded() string {
	if m.MIME == "" {
		return m.Data
	}
	return m.Link()
}

// ParseDataURI parses a data URI; the data are base64.
func ParseDataURI(uri string) (mime, data string, ok bool) {
	rest, ok := strings.CutPrefix(uri, "data:")
	if !ok {
		return "", "", false
	}
	head, data, ok := strings.Cut(rest, ",")
	if !ok {
		return "", "", false
	}
	if mime, ok = strings.CutSuffix(head, ";base64"); ok {
		return mime, data, true
	}
	text, err := url.PathUnescape(data)
	if err != nil {
		return "", "", false
	}
	return head, base64.StdEncoding.EncodeToString([]byte(text)), true
}

func textOf(m *value.Map) string {
	if text, ok := value.NonEmptyString(m.At("text")); ok {
		return text
	}
	return str(m, "content")
}

func str(m *value.Map, key string) string {
	s, _ := m.At(key).(string)
	return s
}

// audioMIME and AudioFormat translate the formats that have a name of their own.
func audioMIME(format string) string {
	if format == "mp3" {
		return "audio/mpeg"
	}
	return "audio/" + format
}

// AudioFormat returns the short name of a sound's type.
func AudioFormat(mime string) string {
	switch mime {
	case "audio/mpeg", "audio/mp3":
		return "mp3"
	case "audio/wav", "audio/x-wav", "audio/wave":
		return "wav"
	}
	_, format, _ := strings.Cut(mime, "/")
	return format
}

// Linked returns media by address, which may be a data URI.
func Linked(link string) Media {
	if mime, data, ok := ParseDataURI(link); ok {
		return Media{MIME: mime, Data: data}
	}
	return Media{URL: link}
}

// MediaOf returns media by their data, in base64 or as a data URI.
func MediaOf(data string) Media {
	if mime, inline, ok := ParseDataURI(data); ok {
		return Media{MIME: mime, Data: inline}
	}
	return Media{Data: data}
}

// Sound returns a sound in base64, by the short name of its format.
func Sound(data, format string) Media { return Media{Data: data, MIME: audioMIME(format)} }
