package transcript

import (
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/fault"
)

// State is what is known of a session without reading its log. It is immutable.
type State struct {
	Messages int `json:"messages"`
	// Base is the first record that the transcript consists of; 0 is the first of
	// the log. Changed is the last record that changed the transcript.
	Base    uint64    `json:"base,omitzero"`
	Changed uint64    `json:"changed,omitzero"`
	Details Details   `json:"details"`
	Updated time.Time `json:"updated"`
	Lock    *Lock     `json:"lock,omitzero"`
	Run     *Run      `json:"run,omitzero"` // the active one
	Talk    int       `json:"talk,omitzero"`
	Created bool      `json:"created,omitzero"`
}

// Lock is the lock of the session's single writer.
type Lock struct {
	Token string `json:"token"`
	Ends  int64  `json:"ends"`
	Run   string `json:"run_id,omitzero"`
}

// Run is the active run.
type Run struct {
	ID    string `json:"run_id"`
	Agent string `json:"agent"`
	Seq   uint64 `json:"seq"` // sequence of its start
}

// codecVersion increases whenever the same log would fold to another state.
const codecVersion = 1

// Codec writes the state as JSON.
func (*Adapter) Codec() channel.Codec {
	return channel.Codec{
		Version: codecVersion,
		Encode: func(s channel.State) ([]byte, error) {
			state, ok := s.(*State)
			if !ok {
				return nil, fault.New(fault.Internal, "%T is not the state of a transcript", s)
			}
			return json.Marshal(state, json.Deterministic(true))
		},
		Decode: func(data []byte) (channel.State, error) {
			state := &State{}
			if err := json.Unmarshal(data, state); err != nil || state.Messages < 0 {
				return nil, fault.Wrap(fault.Invalid, err, "not a state of a transcript: %v", err)
			}
			return state, nil
		},
	}
}
