package ag2

import (
	"github.com/parley-hub/parley/dialect/ag2/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

// stamps is the size of what the hub adds to an envelope when it accepts it: its
// id, its time and, if it traces, a traceparent.
const stamps = 32 + 32 + 64

// CheckEnvelope returns an error if an envelope is too large for AG2's clients even
// alone in a frame: it would be stored, but never delivered.
func CheckEnvelope(e *envelope.Envelope) error {
	if roughly(e) <= logBytes {
		return nil
	}
	// One byte more separates it from others in a list.
	size := len(wire.AppendEnvelope(nil, e)) + stamps + 1
	if size <= logBytes {
		return nil
	}
	return fault.New(fault.TooLarge,
		"the envelope takes %d bytes of a frame of at most %d, of which envelopes may take %d; make event_data %d bytes shorter, or send it in parts",
		size, wire.MaxFrame, logBytes, size-logBytes)
}

// CheckOpening returns an error if a channel's metadata is too large for AG2's
// clients: its knobs, labels and participants are in every invitation, and in the
// metadata that each turn begins with.
func CheckOpening(o hub.Opening) error {
	size := len(o.Knobs) + 6*len(o.Intent) + 256*(len(o.Participants)+1) + 4096
	for k, v := range o.Labels {
		size += 6 * (len(k) + len(v) + 1)
	}
	if size <= logBytes {
		return nil
	}
	return fault.New(fault.TooLarge,
		"knobs, labels and %d participants take about %d bytes of a frame of at most %d; make knobs %d bytes shorter, or invite fewer",
		len(o.Participants), size, wire.MaxFrame, size-logBytes)
}

// roughly returns an upper bound of an envelope's size on the wire without writing
// it, because nearly all are far below the limit. Escaped text may take six times its
// length.
func roughly(e *envelope.Envelope) int {
	text := len(e.Channel) + len(e.Sender) + len(e.Type) + len(e.Task) + len(e.Causation) + len(e.Trace) + len(e.Priority) + len(e.Key)
	for _, id := range e.Audience {
		text += len(id) + 1
	}
	return len(e.Data) + 6*text + 512 + stamps
}
