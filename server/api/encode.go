package api

import (
	"bytes"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/internal/jsonbuf"
)

// appendEvent writes an envelope in the form of /v1: the seed's names, the sequence,
// and times that end in Z. It is one line, as server-sent events and JSON lines need
// it.
func appendEvent(buf []byte, e *envelope.Envelope, position string) ([]byte, error) {
	b := &jsonbuf.Buffer{Bytes: buf}
	b.Open('{')
	b.Key("position").String(position)
	b.Key("sequence").Int(int(e.Seq))
	b.Key("envelope_id").String(e.ID)
	b.Key("channel_id").String(e.Channel)
	b.Key("sender_id").String(e.Sender)
	if b.Key("audience"); e.Audience == nil {
		b.Null()
	} else {
		b.Strings(e.Audience)
	}
	b.Key("event_type").String(e.Type)
	b.Key("event_data").Value(oneLine(e.Data))
	b.Key("causation_id").Optional(e.Causation)
	b.Key("task_id").Optional(e.Task)
	b.Key("trace_id").Optional(e.Trace)
	b.Key("priority").String(string(e.Priority))
	b.Key("depth").Int(e.Depth)
	b.Key("idempotency_key").Optional(e.Key)
	if b.Key("ttl_seconds"); e.TTL == nil {
		b.Null()
	} else {
		b.Int(int(*e.TTL))
	}
	b.Key("created_at").String(envelope.FormatTime(e.CreatedAt))
	b.Close('}')
	return b.Result()
}

// oneLine replaces line breaks in JSON. They can only be between tokens: within a
// string they are escaped.
func oneLine(data []byte) []byte {
	if bytes.IndexByte(data, '\n') < 0 && bytes.IndexByte(data, '\r') < 0 { // two IndexByte are much faster than one IndexAny
		return data
	}
	return bytes.Map(func(r rune) rune {
		if r == '\r' || r == '\n' {
			return ' '
		}
		return r
	}, data)
}

// writeMerged writes two objects as one.
func writeMerged(enc *jsontext.Encoder, object []byte, more any) error {
	rest, err := json.Marshal(more)
	if err != nil {
		return err
	}
	merged := append(object[:len(object)-1:len(object)-1], ',')
	return enc.WriteValue(append(merged, rest[1:]...))
}
