package ag2

import (
	"context"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/dialect/ag2/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
)

// logBytes is what of a frame is left for a log, behind everything else in a
// response.
const logBytes = wire.MaxFrame - 512

// longLog is the part of logBytes from which on a full read is a warning: AG2's
// client reads the whole log three times a turn and cannot take a larger one.
const longLog = logBytes / 10 * 7

// readWAL reads a slice of a channel's log by index, unfiltered, because AG2's
// client folds it.
func (c *conn) readWAL(ctx context.Context, p wire.ReadWALParams) ([]byte, error) {
	m, err := c.channel(ctx, p.Channel)
	if err != nil {
		return []byte("[]"), unlessUnknown(err)
	}
	length, err := c.server.cfg.Hub.Length(ctx, p.Channel)
	if err != nil {
		return nil, err
	}
	from, to := slice(p.Since, p.Until, length)
	if from >= to {
		return []byte("[]"), nil
	}
	r := walReader{full: p.Since == 0 && p.Until == nil && lean(m)}
	for e, err := range c.server.cfg.Hub.Log(ctx, p.Channel, from+1, to) {
		if err != nil {
			return nil, err
		}
		if !r.add(e) {
			break
		}
	}
	if r.full && r.size > longLog {
		c.server.stats.longLogs.Add(1)
		c.server.noise.warn(c.server.cfg.Log, c.server.cfg.Now(), "a channel's log nears what AG2's client can read at once",
			"channel_id", p.Channel, "bytes", r.size, "limit", logBytes)
	}
	return r.result()
}

// slice is Python's [since:until] of a list, as indexes into it.
func slice(since int64, until *int64, length uint64) (from, to uint64) {
	at := func(i int64) uint64 {
		n := int64(length)
		if i < 0 {
			i = max(i, -n) + n
		}
		return uint64(min(i, n))
	}
	to = length
	if until != nil {
		to = at(*until)
	}
	return at(since), to
}

// walReader gathers a log as JSON. A full read that grows too large goes on
// with only what AG2's client folds or shows.
type walReader struct {
	full bool
	all  []byte // nil once too large
	lean []byte // what a full read cannot do without
	size int    // bytes of all
	over bool
}

// add takes one envelope; false means that the rest does not matter.
func (r *walReader) add(e *envelope.Envelope) bool {
	start := len(r.all)
	if !r.over {
		r.all = appendElement(r.all, e)
		r.size += len(r.all) - start
		r.over = len(r.all) > logBytes
	} else {
		r.size += len(e.Data) + 512
	}
	if !r.full {
		return !r.over
	}
	if folds(e.Type) {
		r.lean = appendElement(r.lean, e)
	}
	return len(r.lean) <= logBytes
}

func appendElement(list []byte, e *envelope.Envelope) []byte {
	return wire.AppendEnvelope(append(list, ','), e)
}

func (r *walReader) result() ([]byte, error) {
	list := r.all
	if r.over && r.full {
		list = r.lean
	}
	if len(list) > logBytes || r.over && !r.full {
		return nil, fault.New(fault.TooLarge, "the log makes a frame of more than %d bytes, which no client takes; read it in parts with since and until", wire.MaxFrame)
	}
	if len(list) == 0 {
		return []byte("[]"), nil
	}
	list[0] = '['
	return append(list, ']'), nil
}

// lean reports whether a channel's adapter is one of AG2's, which fold only
// the types that folds names.
func lean(m *channel.Metadata) bool {
	switch m.Manifest.Type {
	case "consulting", "conversation", "discussion", "workflow":
		return true
	}
	return false
}

// folds reports whether AG2's client folds or shows a type, or needs it to
// know the channel's state.
func folds(eventType string) bool {
	switch eventType {
	case envelope.TypeText, envelope.TypePacket, envelope.TypeContextSet:
		return true
	}
	return envelope.IsChannelEvent(eventType)
}
