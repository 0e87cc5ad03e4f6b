package main

import (
	"context"

	"github.com/parley-hub/parley/internal/sse"
)

type streamTold struct {
	Wire   []byte       `json:"wire"` // base64
	Events []streamSaid `json:"events"`
}

type streamSaid struct {
	ID    string `json:"id"`
	Event string `json:"event"`
	Data  string `json:"data"`
}

// streams returns random events as the hub's own writer frames them, each with
// what a reader must make of it.
func (s *seeder) streams(context.Context) (any, error) {
	pieces := []string{"a", "é", "😀", ":", " ", "\n", "\r", "\r\n", "data: x", "\uFEFF", "\x00", "id: 7", "{}", "\t", "\u2028"}
	words := func() (text string) {
		for range s.random.IntN(8) {
			text += pieces[s.random.IntN(len(pieces))]
		}
		return text
	}
	list := make([]streamTold, s.count)
	for i := range list {
		id := ""
		for range 1 + s.random.IntN(6) {
			if s.random.IntN(4) == 0 {
				list[i].Wire = sse.AppendComment(list[i].Wire, words())
				continue
			}
			said := streamSaid{ID: words(), Event: words(), Data: words()}
			list[i].Wire = sse.AppendEvent(list[i].Wire, said.ID, said.Event, []byte(said.Data))
			// An id stays until the next one; names and ids end with their line.
			if said.ID = cut(said.ID); said.ID == "" {
				said.ID = id
			}
			id = said.ID
			if said.Event = cut(said.Event); said.Event == "" {
				said.Event = "message"
			}
			said.Data = joined(said.Data)
			list[i].Events = append(list[i].Events, said)
		}
	}
	return list, nil
}

// cut returns what a reader gets of an id or a name.
func cut(text string) string {
	for i, c := range text {
		if c == '\r' || c == '\n' || c == 0 {
			return text[:i]
		}
	}
	return text
}

// joined returns data with each line break as a reader joins lines.
func joined(text string) (out string) {
	for i := 0; i < len(text); i++ {
		if text[i] == '\r' {
			if i+1 < len(text) && text[i+1] == '\n' {
				i++
			}
			out += "\n"
			continue
		}
		out += text[i : i+1]
	}
	return out
}
