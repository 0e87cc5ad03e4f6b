package consulting

import (
	"github.com/parley-hub/parley/adapter/internal/ag2"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/internal/jsonbuf"
)

// State is the progress of the consultation. It is immutable.
type State struct {
	Asked        bool   `json:"initiator_sent"`
	Replied      bool   `json:"respondent_replied"`
	LastEnvelope string `json:"last_envelope_id"`
}

// Codec encodes the state in AG2's form.
func (Adapter) Codec() channel.Codec { return ag2.Codec(1, write, ag2.Read[State]) }

func write(s *State, b *jsonbuf.Buffer) {
	b.Open('{')
	b.Key("initiator_sent").Bool(s.Asked)
	b.Key("respondent_replied").Bool(s.Replied)
	b.Key("last_envelope_id").Optional(s.LastEnvelope)
	b.Close('}')
}
