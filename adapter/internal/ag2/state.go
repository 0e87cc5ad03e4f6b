package ag2

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/internal/jsonbuf"
)

// Read reads a state whose fields have the names of its JSON.
func Read[S any](data []byte) (*S, error) {
	s := new(S)
	return s, json.Unmarshal(data, s)
}

// Codec returns the codec of a state of type *S from a function that writes it and
// one that reads it.
func Codec[S any](version int, write func(*S, *jsonbuf.Buffer), read func([]byte) (*S, error)) channel.Codec {
	return channel.Codec{
		Version: version,
		Encode: func(s channel.State) ([]byte, error) {
			state, ok := s.(*S)
			if !ok || state == nil {
				return nil, fmt.Errorf("adapter: %T is not a state of this adapter", s)
			}
			b := &jsonbuf.Buffer{}
			write(state, b)
			return b.Result()
		},
		Decode: func(data []byte) (channel.State, error) {
			state, err := read(data)
			if err != nil {
				return nil, fmt.Errorf("adapter: state: %w", err)
			}
			return state, nil
		},
	}
}

// Knob returns one member of the channel's knobs; an absent one is nil.
func Knob(m *channel.Metadata, name string) (jsontext.Value, error) {
	if len(m.Knobs) == 0 {
		return nil, nil
	}
	var knobs map[string]jsontext.Value
	if err := json.Unmarshal(m.Knobs, &knobs); err != nil {
		return nil, Refuse("knobs are a JSON object: %v", err)
	}
	return knobs[name], nil
}
