package ag2

import (
	"context"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
)

// WAL says how read_wal shows envelopes that its reader may not see.
type WAL string

const (
	// WALFiltered empties them, except data that folds need; the default.
	WALFiltered WAL = "filtered"
	// WALWhole shows everything to every participant, as AG2's own hub does.
	WALWhole WAL = "whole"
)

// ParseWAL reads a setting.
func ParseWAL(s string) (WAL, error) {
	switch w := WAL(s); w {
	case WALFiltered, WALWhole:
		return w, nil
	case "":
		return WALFiltered, nil
	}
	return "", fault.New(fault.Invalid, "ag2.read_wal %q is unknown; it is filtered or whole", s)
}

// mask returns a function that empties envelopes that no identity on this
// connection may see.
func (c *conn) mask(ctx context.Context, channelID string) (func(*envelope.Envelope) *envelope.Envelope, error) {
	if c.server.cfg.ReadWAL == WALWhole || c.server.cfg.TrustClients || c.isOperator() {
		return func(e *envelope.Envelope) *envelope.Envelope { return e }, nil
	}
	sees, err := c.server.cfg.Hub.Sight(ctx, channelID, c.identities())
	if err != nil {
		return nil, err
	}
	return func(e *envelope.Envelope) *envelope.Envelope {
		if foldsData(e.Type) || sees(e) {
			return e
		}
		empty := *e
		empty.Data = []byte("{}")
		return &empty
	}, nil
}

// foldsData reports whether AG2's client folds the data of a type, and not only its
// sender, type and position.
func foldsData(eventType string) bool {
	switch eventType {
	case envelope.TypePacket, envelope.TypeContextSet:
		return true
	}
	return envelope.IsChannelEvent(eventType)
}
