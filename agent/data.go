package agent

import (
	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/jsonbuf"
)

// channelData returns the payload of a handshake's envelope.
func channelData(channelID string) []byte {
	b := &jsonbuf.Buffer{}
	data, err := b.Open('{').Key("channel_id").String(channelID).Close('}').Result()
	if err != nil {
		return []byte(`{}`) // an id that is not UTF-8 never came from a hub
	}
	return data
}

// encode writes a value as JSON, with the keys of objects in order.
func encode(what string, v any) ([]byte, error) {
	if v == nil {
		return nil, nil
	}
	data, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "%s is not JSON: %v", what, err)
	}
	return data, nil
}
