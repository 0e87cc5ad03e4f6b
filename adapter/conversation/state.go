package conversation

import (
	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/adapter/internal/ag2"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/internal/jsonbuf"
)

// State is who spoke last, and how often. It is never changed, only replaced.
type State struct {
	Turns        int
	LastSpeaker  string
	LastEnvelope string
}

// Codec writes the state as AG2 shows it.
func (Adapter) Codec() channel.Codec { return ag2.Codec(1, write, read) }

func write(s *State, b *jsonbuf.Buffer) {
	b.Open('{')
	b.Key("turn_count").Int(s.Turns)
	b.Key("last_speaker_id").Optional(s.LastSpeaker)
	b.Key("last_envelope_id").Optional(s.LastEnvelope)
	b.Close('}')
}

func read(data []byte) (*State, error) {
	var raw struct {
		Turns        int    `json:"turn_count"`
		LastSpeaker  string `json:"last_speaker_id"`
		LastEnvelope string `json:"last_envelope_id"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, err
	}
	return &State{Turns: raw.Turns, LastSpeaker: raw.LastSpeaker, LastEnvelope: raw.LastEnvelope}, nil
}
