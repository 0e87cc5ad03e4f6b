package work

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/internal/jsonbuf"
)

// Version of the fold: it goes up when a log would fold to another state.
const Version = 1

// Codec writes conversations for people and snapshots.
func Codec() channel.Codec {
	return channel.Codec{
		Version: Version,
		Encode: func(s channel.State) ([]byte, error) {
			c, ok := s.(*Conversation)
			if !ok || c == nil {
				return nil, fmt.Errorf("work: %T is not a conversation", s)
			}
			return c.encode()
		},
		Decode: func(data []byte) (channel.State, error) {
			c, err := decode(data)
			if err != nil {
				return nil, fmt.Errorf("work: state: %w", err)
			}
			return c, nil
		},
	}
}

func (c *Conversation) encode() ([]byte, error) {
	b := &jsonbuf.Buffer{}
	b.Open('{')
	b.Key("workspace_id").String(c.Place.Workspace)
	b.Key("channel").String(c.Place.Channel)
	b.Key("id").String(c.Place.ID)
	b.Key("message_count").Int(c.Messages)
	b.Key("root_message_id").String(c.Root)
	b.Key("title").String(c.Title)
	b.Key("opened_by_peer_id").String(c.Opener)
	b.Key("opened_at").Int(int(c.OpenedAt))
	b.Key("resolved_at").Int(int(c.Resolved))
	writeMark(b, "last", c.Last)
	b.Key("last_message_preview").String(c.Preview)
	b.Key("public").Open('[')
	for _, n := range c.Public {
		b.Int(n)
	}
	b.Close(']')
	writeMark(b, "last_public", c.LastPublic)
	b.Key("last_public_preview").String(c.PublicPreview)
	b.Key("speakers").Open('[')
	for peer := range c.Speakers.All() {
		b.String(peer)
	}
	b.Close(']')
	b.Key("work").Open('{')
	for id, w := range c.Works.All() {
		w.write(b.Key(id))
	}
	b.Close('}').Close('}')
	return b.Result()
}

func writeMark(b *jsonbuf.Buffer, name string, m Mark) {
	b.Key(name).Open('{').Key("ts").Int(int(m.TS)).Key("id").String(m.ID).Close('}')
}

func (w *Work) write(b *jsonbuf.Buffer) {
	b.Open('{')
	b.Key("opener").String(w.Opener)
	b.Key("target").String(w.Target)
	b.Key("state").String(w.State.String())
	b.Key("opened_at").Int(int(w.OpenedAt))
	b.Key("last_at").Int(int(w.LastAt))
	b.Key("terminal_at").Int(int(w.TerminalAt))
	b.Close('}')
}

type markJSON struct {
	TS int64  `json:"ts"`
	ID string `json:"id"`
}

type workJSON struct {
	Opener     string `json:"opener"`
	Target     string `json:"target"`
	State      string `json:"state"`
	OpenedAt   int64  `json:"opened_at"`
	LastAt     int64  `json:"last_at"`
	TerminalAt int64  `json:"terminal_at"`
}

func (w workJSON) work() (Work, error) {
	state, ok := ParseState(w.State)
	if !ok {
		return Work{}, fmt.Errorf("%q is not a state of work", w.State)
	}
	return Work{w.Opener, w.Target, state, w.OpenedAt, w.LastAt, w.TerminalAt}, nil
}

func decode(data []byte) (*Conversation, error) {
	var raw struct {
		Workspace     string              `json:"workspace_id"`
		Channel       string              `json:"channel"`
		ID            string              `json:"id"`
		Messages      int                 `json:"message_count"`
		Root          string              `json:"root_message_id"`
		Title         string              `json:"title"`
		Opener        string              `json:"opened_by_peer_id"`
		OpenedAt      int64               `json:"opened_at"`
		Resolved      int64               `json:"resolved_at"`
		Last          markJSON            `json:"last"`
		Preview       string              `json:"last_message_preview"`
		Public        []int               `json:"public"`
		LastPublic    markJSON            `json:"last_public"`
		PublicPreview string              `json:"last_public_preview"`
		Speakers      []string            `json:"speakers"`
		Works         map[string]workJSON `json:"work"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, err
	}
	c := &Conversation{
		Place:    Place{raw.Workspace, raw.Channel, raw.ID},
		Messages: raw.Messages, Root: raw.Root, Title: raw.Title, Opener: raw.Opener, OpenedAt: raw.OpenedAt, Resolved: raw.Resolved,
		Last: Mark(raw.Last), Preview: raw.Preview, LastPublic: Mark(raw.LastPublic), PublicPreview: raw.PublicPreview,
	}
	if len(raw.Public) > len(c.Public) {
		return nil, errors.New("more types are counted than there are")
	}
	copy(c.Public[:], raw.Public)
	for _, peer := range raw.Speakers {
		c.Speakers = c.Speakers.Set(peer, struct{}{})
	}
	for id, w := range raw.Works {
		work, err := w.work()
		if err != nil {
			return nil, err
		}
		c.Works = c.Works.Set(id, work)
		if !work.State.Terminal() {
			c.OpenWork++
		}
	}
	return c, nil
}
