package discussion

import (
	"github.com/parley-hub/parley/adapter/internal/ag2"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/internal/jsonbuf"
)

// State is the participant whose turn it is. It is immutable; successors share the
// order.
type State struct {
	Order        []string `json:"participant_order"`
	Next         string   `json:"expected_next_speaker"`
	LastSpeaker  string   `json:"last_speaker_id"`
	LastEnvelope string   `json:"last_envelope_id"`
	Turns        int      `json:"turn_count"`
}

// Codec encodes the state in AG2's form.
func (Adapter) Codec() channel.Codec { return ag2.Codec(1, write, ag2.Read[State]) }

func write(s *State, b *jsonbuf.Buffer) {
	b.Open('{')
	b.Key("participant_order").Strings(s.Order)
	b.Key("expected_next_speaker").String(s.Next)
	b.Key("last_speaker_id").Optional(s.LastSpeaker)
	b.Key("last_envelope_id").Optional(s.LastEnvelope)
	b.Key("turn_count").Int(s.Turns)
	b.Close('}')
}
