package conversation

import (
	"github.com/parley-hub/parley/adapter/internal/ag2"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/internal/jsonbuf"
)

// State is the last speaker and the number of turns. It is immutable.
type State struct {
	Turns        int    `json:"turn_count"`
	LastSpeaker  string `json:"last_speaker_id"`
	LastEnvelope string `json:"last_envelope_id"`
}

// Codec encodes the state in AG2's form.
func (Adapter) Codec() channel.Codec { return ag2.Codec(1, write, ag2.Read[State]) }

func write(s *State, b *jsonbuf.Buffer) {
	b.Open('{')
	b.Key("turn_count").Int(s.Turns)
	b.Key("last_speaker_id").Optional(s.LastSpeaker)
	b.Key("last_envelope_id").Optional(s.LastEnvelope)
	b.Close('}')
}
