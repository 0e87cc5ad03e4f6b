package wire

import (
	"strconv"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/jsonscan"
)

// AppendEnvelope writes an envelope with its 14 keys. Its data is written as it was
// sent.
func AppendEnvelope(buf []byte, e *envelope.Envelope) []byte {
	buf = append(buf, `{"channel_id":`...)
	buf = appendText(buf, e.Channel)
	buf = append(buf, `,"sender_id":`...)
	buf = appendText(buf, e.Sender)
	buf = append(buf, `,"audience":`...)
	if e.Audience == nil {
		buf = append(buf, "null"...)
	} else {
		buf = appendTexts(buf, e.Audience)
	}
	buf = append(buf, `,"event_type":`...)
	buf = appendText(buf, eventType(e.Type))
	buf = append(buf, `,"event_data":`...)
	buf = appendObject(buf, e.Data)
	buf = append(buf, `,"envelope_id":`...)
	buf = appendText(buf, e.ID)
	buf = append(buf, `,"task_id":`...)
	buf = appendOptional(buf, e.Task)
	buf = append(buf, `,"causation_id":`...)
	buf = appendOptional(buf, e.Causation)
	buf = append(buf, `,"trace_id":`...)
	buf = appendOptional(buf, e.Trace)
	buf = append(buf, `,"priority":`...)
	buf = appendText(buf, priority(e.Priority))
	buf = append(buf, `,"depth":`...)
	buf = appendInt(buf, int64(e.Depth))
	buf = append(buf, `,"idempotency_key":`...)
	buf = appendOptional(buf, e.Key)
	buf = append(buf, `,"created_at":`...)
	buf = appendTime(buf, e.CreatedAt)
	buf = append(buf, `,"ttl_seconds":`...)
	buf = appendOptionalInt(buf, e.TTL)
	return append(buf, '}')
}

// eventType returns AG2's name of a type of the log.
func eventType(t string) string {
	if t == envelope.TypeExpectationViolated {
		return envelope.WireExpectationViolated
	}
	return t
}

func priority(p envelope.Priority) string {
	if p == "" {
		return string(envelope.Normal)
	}
	return string(p)
}

// DecodeEnvelope reads an envelope's JSON. Older names are translated, unknown
// keys dropped, and its data shares memory with raw.
func DecodeEnvelope(raw []byte) (*envelope.Envelope, error) {
	if err := valid(raw); err != nil {
		return nil, err
	}
	return decodeEnvelope(raw)
}

// decodeEnvelope reads JSON that is known to be valid.
func decodeEnvelope(raw []byte) (*envelope.Envelope, error) {
	e, _, err := decodeEnvelopeAt(raw, jsonscan.SkipSpace(raw, 0))
	return e, err
}

// decodeEnvelopeAt reads the envelope that begins at i, and returns the index after
// it.
func decodeEnvelopeAt(data []byte, i int) (e *envelope.Envelope, end int, err error) {
	e = &envelope.Envelope{Priority: envelope.Normal}
	end, err = walk(data, i, func(name []byte, at int) (end int, err error) {
		end = jsonscan.SkipValue(data, at)
		return end, setField(e, name, data[at:end])
	})
	switch {
	case err != nil:
		return nil, end, err
	case e.Channel == "":
		return nil, end, missing("channel_id")
	case e.Sender == "":
		return nil, end, missing("sender_id")
	case e.Type == "":
		return nil, end, missing("event_type")
	case e.Depth < 0:
		return nil, end, fault.New(fault.Invalid, "envelope.depth must not be negative")
	}
	e.Type = envelope.Canonical(e.Type)
	if e.Data == nil {
		e.Data = []byte("{}")
	}
	return e, end, nil
}

// setField reads one member of an envelope.
func setField(e *envelope.Envelope, name, value []byte) (err error) {
	switch string(name) {
	case "channel_id":
		e.Channel, err = text("envelope.channel_id", value)
	case "sender_id":
		e.Sender, err = text("envelope.sender_id", value)
	case "audience":
		e.Audience, err = texts("envelope.audience", value)
	case "event_type":
		e.Type, err = typeName(value)
	case "event_data":
		e.Data, err = object("envelope.event_data", value)
	case "envelope_id":
		e.ID, err = text("envelope.envelope_id", value)
	case "task_id":
		e.Task, err = text("envelope.task_id", value)
	case "causation_id":
		e.Causation, err = text("envelope.causation_id", value)
	case "trace_id":
		e.Trace, err = text("envelope.trace_id", value)
	case "priority":
		e.Priority, err = decodePriority(value)
	case "depth":
		err = decodeDepth(e, value)
	case "idempotency_key":
		e.Key, err = text("envelope.idempotency_key", value)
	case "created_at":
		decodeCreated(e, value)
	case "ttl_seconds":
		e.TTL, err = integer("envelope.ttl_seconds", value)
	}
	return err
}

// typeName reads an event type without a copy of the most frequent ones.
func typeName(value []byte) (string, error) {
	switch string(value) {
	case `"` + envelope.TypeText + `"`:
		return envelope.TypeText, nil
	case `"` + envelope.TypePacket + `"`:
		return envelope.TypePacket, nil
	case `"` + envelope.TypeInviteAck + `"`:
		return envelope.TypeInviteAck, nil
	}
	return text("envelope.event_type", value)
}

func decodeDepth(e *envelope.Envelope, value []byte) error {
	if len(value) == 1 && value[0] == '0' {
		return nil
	}
	depth, err := integer("envelope.depth", value)
	if depth != nil {
		e.Depth = int(*depth)
	}
	return err
}

// decodeCreated ignores a time that cannot be read: a hub overwrites it anyway.
func decodeCreated(e *envelope.Envelope, value []byte) {
	if s, err := text("created_at", value); err == nil && s != "" {
		if t, err := envelope.ParseTime(s); err == nil {
			e.CreatedAt = t
		}
	}
}

func decodePriority(value []byte) (envelope.Priority, error) {
	if string(value) == `"normal"` {
		return envelope.Normal, nil
	}
	if value[0] == '"' || isNull(value) {
		s, err := text("envelope.priority", value)
		return envelope.ParsePriority(s), err
	}
	n, err := integer("envelope.priority", value)
	if err != nil {
		return "", err
	}
	if *n < 0 || *n > 3 {
		return "", fault.New(fault.Invalid, "envelope.priority %d is unknown; it is background, normal or urgent", *n)
	}
	return envelope.ParsePriority(strconv.FormatInt(*n, 10)), nil
}

// texts reads a list of strings; null is nil, an empty list is not.
func texts(name string, value []byte) ([]string, error) {
	if isNull(value) {
		return nil, nil
	}
	if value[0] != '[' {
		return nil, wanted(name, "a list of strings", value)
	}
	list := []string{}
	err := elements(value, func(element []byte) error {
		if element[0] != '"' {
			return wanted(name, "a list of strings", value)
		}
		s, err := text(name, element)
		list = append(list, s)
		return err
	})
	return list, err
}

// integer reads a whole number; null is nil.
func integer(name string, value []byte) (*int64, error) {
	if isNull(value) {
		return nil, nil
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil {
		return nil, wanted(name, "a whole number", value)
	}
	return &n, nil
}
