package schema

import (
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/journal"
)

// DecodeEnvelope reads an envelope of a history.
func DecodeEnvelope(entry journal.Entry) (*envelope.Envelope, error) {
	e, err := envelope.Unmarshal(entry.Data)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "record %d cannot be read: %v", entry.Seq, err)
	}
	e.Seq = entry.Seq
	return e, nil
}
