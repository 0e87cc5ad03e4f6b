package wire

import (
	"slices"
	"strconv"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/jsonbuf"
)

// envelopeRoom is about what the other members of an envelope take.
const envelopeRoom = 512

// AppendJSON writes the envelope as it goes out: `to` and `proof` always, null
// where there is none; every other member only where it has a value, so that a
// discovery envelope never has a surface, a container or work.
func (e *Envelope) AppendJSON(buf []byte) ([]byte, error) {
	begin := len(buf)
	b := &jsonbuf.Buffer{Bytes: slices.Grow(buf, len(e.Body)+len(e.Proof)+len(e.Ext)+envelopeRoom)}
	optional := func(name, value string) {
		if value != "" {
			b.Key(name).String(value)
		}
	}
	b.Open('{')
	b.Key("protocol").String(e.Protocol)
	b.Key("id").String(e.ID)
	b.Key("workspace_id").String(e.Workspace)
	b.Key("kind").String(string(e.Kind))
	b.Key("channel").String(e.Channel)
	optional("surface", string(e.Surface))
	optional("thread_id", e.Thread)
	optional("direct_id", e.Direct)
	b.Key("from").String(e.From)
	b.Key("to").Optional(e.To)
	optional("work_id", e.Work)
	optional("reply_to", e.ReplyTo)
	optional("trace_id", e.Trace)
	optional("causation_id", e.Causation)
	b.Key("ts").Checked(strconv.AppendInt(nil, e.TS, 10))
	if e.ExpiresAt != nil {
		b.Key("expires_at").Checked(strconv.AppendInt(nil, *e.ExpiresAt, 10))
	}
	b.Key("body").Object(e.Body)
	b.Key("proof")
	if e.Proof == nil {
		b.Null()
	} else {
		b.Object(e.Proof)
	}
	if e.Ext != nil {
		b.Key("ext").Object(e.Ext)
	}
	b.Close('}')
	text, err := b.Result()
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the envelope cannot be written: %v", err)
	}
	if size := len(text) - begin; size > MaxBytes {
		return nil, fault.New(fault.TooLarge, "the envelope has %d bytes; the network takes %d", size, MaxBytes)
	}
	return text, nil
}

// CheckOutgoing refuses what a peer of ours must not send although it would
// accept it: ids outside of what AGH's runtime takes, a clock at 0, work
// without an addressee, a capability without work, and a result that is no
// object. Work that is known keeps the id that its opener gave it. It needs Content.
func (e *Envelope) CheckOutgoing(known bool) error {
	if trace, ok := e.Content.(*TraceBody); ok && trace.Result != nil && trace.Result[0] != '{' {
		return malformed("body.result", "is not an object")
	}
	switch {
	case e.Surface == Thread && !ThreadToEmit(e.Thread):
		return malformed("thread_id", "does not match ^thread_[a-z0-9][a-z0-9_-]{2,95}$")
	case e.Work != "" && !known && !ValidWork(e.Work):
		return malformed("work_id", "does not match ^work_[a-zA-Z0-9_-]{1,64}$")
	case e.Kind == Capability && e.Work == "":
		return malformed("work_id", "is missing; AGH takes a capability only as part of work")
	case e.Work != "" && e.To == "":
		return malformed("to", "is missing; work is directed to a peer")
	case e.Surface == Direct && e.To == "":
		return malformed("to", "is missing; a direct room has one other peer")
	case e.TS <= 0:
		return malformed("ts", "is not after 1970")
	}
	return nil
}
