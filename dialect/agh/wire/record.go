package wire

import (
	"strings"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/jsonbuf"
	"github.com/parley-hub/parley/internal/jsonscan"
)

// Dialect is the origin of records that were AGH envelopes.
const Dialect = "agh"

// typePrefix stands before the kind in a record's type.
const typePrefix = Dialect + "."

// RecordType is the type of a kind's records.
func RecordType(k Kind) string { return typePrefix + string(k) }

// RecordKey is the idempotency key of a record: ids are unique for each sender
// in a workspace. A peer id has no slash, so that the first one ends it.
func RecordKey(from, id string) string { return from + "/" + id }

// Record is a conversation envelope as the log keeps it: the body is the data,
// sender and id are the key, and every other member is kept as it was received. data
// is what e was decoded from; with a proof all of it is kept, because the
// signature covers its bytes. Channel, sender and addressee are the hub's ids,
// which the caller fills in.
func Record(e *Envelope, data []byte) (*envelope.Envelope, error) {
	if !e.Kind.Conversation() {
		return nil, fault.New(fault.Invalid, "%s is not part of a conversation; only those are kept", e.Kind)
	}
	b := &jsonbuf.Buffer{Bytes: make([]byte, 0, max(len(data)-len(e.Body), 64))}
	b.Open('{')
	for name, value := range jsonscan.Members(data) {
		switch string(name) {
		case "id", "body":
		default:
			b.Key(string(name)).Checked(value)
		}
	}
	ext, err := b.Close('}').Result()
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the envelope cannot be kept: %v", err)
	}
	record := &envelope.Envelope{
		Type: RecordType(e.Kind), Key: RecordKey(e.From, e.ID), Priority: envelope.Normal,
		Origin: envelope.Origin{Dialect: Dialect, ID: e.ID, Hops: Hops(e.Ext)},
		Data:   append([]byte(nil), e.Body...), Ext: ext,
	}
	if e.Proof != nil {
		record.Foreign = append([]byte(nil), jsonscan.Trim(data)...)
	}
	return record, nil
}

// AsStored judges what was judged before it was stored.
var AsStored = Options{SkipFreshness: true, Stored: true, LenientWorkIDs: true, V1: true, Handles: true}

// Message is a record as the envelope it was, and its Bytes. It is decoded without
// judging its age.
func Message(record *envelope.Envelope) (*Envelope, []byte, error) {
	data, err := Bytes(record)
	if err != nil {
		return nil, nil, err
	}
	e, fault := decode(data, &AsStored)
	if fault != nil {
		return nil, nil, fault
	}
	return e, data, nil
}

// Bytes are a record's envelope: the bytes received where they were kept, and
// otherwise members of equal values.
func Bytes(record *envelope.Envelope) ([]byte, error) {
	kind, ok := strings.CutPrefix(record.Type, typePrefix)
	if !ok || !Kind(kind).Conversation() {
		return nil, fault.New(fault.Invalid, "a record of the type %q was no AGH envelope", record.Type)
	}
	if record.Foreign != nil {
		return record.Foreign, nil
	}
	b := &jsonbuf.Buffer{Bytes: make([]byte, 0, len(record.Ext)+len(record.Data)+64)}
	b.Open('{')
	if record.Origin.Dialect == Dialect { // else its id is in ext
		b.Key("id").String(record.Origin.ID)
	}
	for name, value := range jsonscan.Members(record.Ext) {
		b.Key(string(name)).Checked(value)
	}
	if record.Origin.Dialect != Dialect && record.Trace != "" {
		b.Key("trace_id").String(record.Trace)
	}
	if record.Origin.Dialect != Dialect && record.Origin.Hops > 0 {
		cross := Crossing{Origin: record.Origin}
		if cross.Origin.ID == "" {
			cross.Origin = envelope.Origin{Dialect: Dialect, ID: record.ID, Hops: record.Origin.Hops}
		}
		if ext, err := cross.Ext(); err == nil { // ids are text
			b.Key("ext").Value(ext)
		}
	}
	if b.Key("body"); len(record.Data) == 0 {
		b.Object(nil)
	} else {
		b.Checked(record.Data) // it was checked when it was stored
	}
	text, err := b.Close('}').Result()
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "a record cannot be shown as an AGH envelope: %v", err)
	}
	return text, nil
}
