package wire

import (
	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/internal/jsonscan"
)

// Results in the form that a client reads.

// DecodeResult reads a result into a pointer to a record of identity, a Task, a
// string, a map of strings, or a list of these.
func DecodeResult(raw []byte, result any) error {
	if len(raw) == 0 {
		raw = []byte("null")
	}
	return identity.Explain("result", json.Unmarshal(raw, result, form))
}

// DecodeMetadata reads a channel's metadata.
func DecodeMetadata(raw []byte) (*channel.Metadata, error) {
	m, err := channel.DecodeMetadata(raw, nil)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "%v", err)
	}
	return m, nil
}

// DecodeMetadataList reads a list of channels' metadata.
func DecodeMetadataList(raw []byte) ([]*channel.Metadata, error) {
	list := []*channel.Metadata{}
	err := decodeList(raw, func(value []byte) error {
		m, err := DecodeMetadata(value)
		list = append(list, m)
		return err
	})
	return list, err
}

// DecodeEnvelopes reads a list of envelopes, which share memory with raw.
func DecodeEnvelopes(raw []byte) ([]*envelope.Envelope, error) {
	list := []*envelope.Envelope{}
	err := decodeList(raw, func(value []byte) error {
		e, err := decodeEnvelope(value)
		list = append(list, e)
		return err
	})
	return list, err
}

// DecodePendingTurns reads a list of pending turns.
func DecodePendingTurns(raw []byte) ([]PendingTurn, error) {
	list := []PendingTurn{}
	err := decodeList(raw, func(value []byte) error {
		var t PendingTurn
		err := members(value, func(name, value []byte) (err error) {
			switch string(name) {
			case "channel_id":
				t.Channel, err = text("channel_id", value)
			case "triggering_envelope_id":
				t.Trigger, err = text("triggering_envelope_id", value)
			case "expected_at":
				var s string
				if s, err = text("expected_at", value); err == nil && s != "" {
					t.ExpectedAt, err = envelope.ParseTime(s)
				}
			}
			return err
		})
		list = append(list, t)
		return err
	})
	return list, err
}

func decodeList(raw []byte, yield func(value []byte) error) error {
	if err := valid(raw); err != nil {
		return err
	}
	start := jsonscan.SkipSpace(raw, 0)
	if raw[start] != '[' {
		return wanted("result", "a list", raw)
	}
	return elements(raw[start:], yield)
}
