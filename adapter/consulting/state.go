package consulting

import (
	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/adapter/internal/ag2"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/internal/jsonbuf"
)

// State is how far the consultation is. It is never changed, only replaced.
type State struct {
	Asked        bool
	Replied      bool
	LastEnvelope string
}

// Codec writes the state as AG2 shows it.
func (Adapter) Codec() channel.Codec { return ag2.Codec(1, write, read) }

func write(s *State, b *jsonbuf.Buffer) {
	b.Open('{')
	b.Key("initiator_sent").Bool(s.Asked)
	b.Key("respondent_replied").Bool(s.Replied)
	b.Key("last_envelope_id").Optional(s.LastEnvelope)
	b.Close('}')
}

func read(data []byte) (*State, error) {
	var raw struct {
		Asked        bool   `json:"initiator_sent"`
		Replied      bool   `json:"respondent_replied"`
		LastEnvelope string `json:"last_envelope_id"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, err
	}
	return &State{Asked: raw.Asked, Replied: raw.Replied, LastEnvelope: raw.LastEnvelope}, nil
}
