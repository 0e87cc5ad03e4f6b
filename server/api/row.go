package api

import (
	"cmp"
	"context"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/client/v1/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/view"
)

// Bounds of the texts in a row, in characters.
const (
	titleLength = 80
	lastLength  = 160
)

// row makes the row of a channel as some agents see it; nil agents see everything.
func (a *API) row(ctx context.Context, id string, eyes []string) (*wire.Row, error) {
	b, err := a.hub.Brief(ctx, id)
	if err != nil {
		return nil, err
	}
	m := b.Meta
	r := &wire.Row{
		ID: m.ID, Type: m.Manifest.Type, State: m.State.String(), CloseReason: m.CloseReason, Labels: m.Labels,
		Participants: make([]wire.Person, len(m.Participants)), CreatedAt: m.CreatedAt.UTC(), ClosedAt: maybeAt(m.ClosedAt), ExpiresAt: maybeAt(m.ExpiresAt),
		Length: b.Position.Seq, Position: b.Position.String(), Turn: a.turn(b.Turn), RequestsOpen: b.Requests, Quarantined: b.Broken != nil,
	}
	if r.Labels == nil {
		r.Labels = map[string]string{}
	}
	for i, p := range m.Participants {
		r.Participants[i] = a.person(p.Agent)
	}
	if b.Counted {
		r.Turns = &wire.TurnCount{Taken: b.Taken}
		if b.Most > 0 {
			r.Turns.Most = &b.Most
		}
	}
	sees, err := a.sight(ctx, id, eyes)
	if err != nil {
		return nil, err
	}
	if r.Last, err = a.last(ctx, m, sees); err != nil {
		return nil, err
	}
	r.Title, err = a.title(ctx, m, sees)
	return r, err
}

// sight returns a function that reports whether some agents see an envelope; nil:
// they see everything.
func (a *API) sight(ctx context.Context, id string, eyes []string) (func(*envelope.Envelope) bool, error) {
	if eyes == nil {
		return nil, nil
	}
	return a.hub.Sight(ctx, id, eyes)
}

// eyes returns the agents as which the caller reads; nil: it sees everything.
func (c caller) eyes() []string {
	if c.seesAll() {
		return nil
	}
	return []string{c.id}
}

func (a *API) person(id string) wire.Person {
	p := wire.Person{ID: id, Name: a.hub.Name(id), Kind: "agent", Online: a.hub.Online(id)}
	if profile, err := a.hub.AgentByID(id); err == nil && profile.Passport.Kind != identity.Unspecified {
		p.Kind = string(profile.Passport.Kind)
	}
	return p
}

func (a *API) turn(t *hub.Expected) *wire.ExpectedTurn {
	if t == nil {
		return nil
	}
	return &wire.ExpectedTurn{
		Person: a.person(t.Agent), Since: t.Since.UTC(), HandedAt: maybeAt(t.Handed), DueAt: maybeAt(t.Due), Overdue: t.Overdue,
	}
}

func (a *API) last(ctx context.Context, m *channel.Metadata, sees func(*envelope.Envelope) bool) (*wire.Last, error) {
	e, err := a.hub.LastOf(ctx, m.ID, sees)
	if err != nil || e == nil {
		return nil, err
	}
	text := ""
	if texts := a.texts(m)(e); len(texts) > 0 {
		text = texts[len(texts)-1].text
	}
	return &wire.Last{Sequence: e.Seq, At: e.CreatedAt.UTC(), SenderID: e.Sender, EventType: e.Type, Text: oneLineOf(text, lastLength)}, nil
}

// said is one text; by is the sender's id, or a name that is not registered.
type said struct{ by, text string }

// texts returns a function that returns the texts of an envelope that people read: a
// record of a chat session may have several. It must be called with the envelopes in
// order.
func (a *API) texts(m *channel.Metadata) func(*envelope.Envelope) []said {
	adapter := a.hub.AdapterFor(m)
	renderer, renders := adapter.(channel.Renderer)
	if !renders {
		if own, ok := adapter.(channel.Items); ok {
			return itemTexts(own.ItemReader(m))
		}
		renderer = view.TextOnly{}
	}
	return func(e *envelope.Envelope) []said {
		if text, ok := renderer.Render(e); ok {
			return []said{{by: e.Sender, text: text}}
		}
		return nil
	}
}

func itemTexts(reader channel.ItemReader) func(*envelope.Envelope) []said {
	return func(e *envelope.Envelope) (list []said) {
		for _, item := range reader.Read(nil, e) {
			if item.Kind != channel.ItemMessage || item.Message == nil {
				continue
			}
			if text, err := channel.SaidText(*item.Message); err == nil {
				list = append(list, said{by: cmp.Or(item.Speaker, item.Name), text: text})
			}
		}
		return list
	}
}

// maxTitleSearch is how many envelopes are searched for a first text.
const maxTitleSearch = 16

// title returns a channel's title: its label title, else its intent, else the first
// text.
func (a *API) title(ctx context.Context, m *channel.Metadata, sees func(*envelope.Envelope) bool) (string, error) {
	if text := labelled(m); text != "" {
		return text, nil
	}
	if text, ok := a.titles.get(m.ID); ok && sees == nil {
		return text, nil
	}
	texts := a.texts(m)
	for e, err := range a.hub.Log(ctx, m.ID, 1, maxTitleSearch) {
		if err != nil {
			return "", err
		}
		if envelope.IsProtocol(e.Type) || sees != nil && !sees(e) {
			continue
		}
		for _, one := range texts(e) {
			text := oneLineOf(one.text, titleLength)
			if text == "" {
				continue
			}
			if sees == nil {
				a.titles.put(m.ID, text)
			}
			return text, nil
		}
	}
	return "", nil
}

// labelled returns the title in a channel's labels.
func labelled(m *channel.Metadata) string {
	return cmp.Or(oneLineOf(m.Labels["title"], titleLength), oneLineOf(m.Labels["intent"], titleLength))
}

// oneLineOf shortens a text to one line of so many characters. Control characters are
// removed.
func oneLineOf(text string, most int) string {
	// Longer input is cut before it is examined.
	if limit := 16 * most; len(text) > limit {
		for limit > 0 && !utf8.RuneStart(text[limit]) {
			limit--
		}
		text = text[:limit]
	}
	text = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && !unicode.IsSpace(r) || unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, text)), " ")
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	runes := []rune(text)[:most-1]
	return strings.TrimRight(string(runes), " ") + "…"
}

// maybeAt returns a time, or nil if it is zero.
func maybeAt(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
