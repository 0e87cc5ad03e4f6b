package ag2_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/parley-hub/parley/dialect/ag2/wire"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/internal/scale"
)

// FuzzConnection sends arbitrary bytes to a hub, unframed and as masked frames.
// Other clients are still served and nothing panics.
func FuzzConnection(f *testing.F) {
	for _, seed := range []string{
		ping, `{"kind":"hello","name":"watch","since_envelope_id":""}`,
		`{"kind":"request","request_id":"1","op":"register","params":{"passport":{"name":"f"},"resume":{}}}`,
		`{"kind":"receipt","envelope_id":"e","status":"ack","recipient_id":"r","channel_id":"c"}`,
		"\x81\xfe", "\x09\x80", "\x88\x02\x03\xe8", "\x00", "\xff\xff\xff",
	} {
		f.Add([]byte(seed), byte(0))
		f.Add(frame(true, opText, []byte(seed)), byte(1))
		f.Add(join(frame(false, opText, []byte(seed)), frame(true, opContinuation, nil)), byte(1))
	}
	r := newRig(f, options{})
	watch := r.dial()
	watch.register("watch")
	f.Fuzz(func(t *testing.T, data []byte, mode byte) {
		mine := *r
		mine.t = t
		c := mine.raw()
		_ = c.conn.SetDeadline(time.Now().Add(wait))
		if mode%2 == 0 {
			data = frame(true, opText+mode/2%2, data)
		}
		_, _ = c.conn.Write(data)
		_, _ = c.conn.Write(frame(true, opClose, closePayload(1000, "")))
		_ = c.conn.(interface{ CloseWrite() error }).CloseWrite()
		_, _ = io.Copy(io.Discard, c.in)
		watch.t = t
		watch.quiet()
		if log := r.log.String(); strings.Contains(log, "panic") {
			t.Fatal(log)
		}
	})
}

// Random requests in random order from several connections: each gets exactly
// one response of exact shape, other clients are not affected, and nothing
// panics.
func TestRandomRequests(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{hub: hub.Options{InviteAckTimeout: 500 * time.Millisecond}})
	watch := r.dial()
	watch.register("watch")
	seed := r.dial()
	a, b := seed.register("seed-a"), seed.register("seed-b")
	channel := seed.open("conversation", a, map[string]*peer{b: seed})
	rapid.Check(t, func(t *rapid.T) {
		p := r.dial()
		defer p.hangUp()
		mine := p.register(fmt.Sprintf("m-%d", time.Now().UnixNano()))
		n := rapid.IntRange(1, scale.N(20)).Draw(t, "requests")
		waiting := map[string]bool{}
		for i := range n {
			id := fmt.Sprintf("q%d", i)
			request := randomRequest(t, id, []string{mine, a, b, channel, "nobody"})
			p.send(request)
			waiting[id] = true
		}
		for len(waiting) > 0 {
			got := p.recv()
			f, err := wire.Decode([]byte(got))
			if err != nil {
				t.Fatalf("%s: %v", got, err)
			}
			response, ok := f.(*wire.Response)
			if !ok {
				continue
			}
			if !waiting[response.ID] {
				t.Fatalf("an answer to nothing: %s", got)
			}
			delete(waiting, response.ID)
			if keys := keysOf(t, got); keys != "error_code error_message kind ok request_id result" {
				t.Fatalf("a response has %s", keys)
			}
			if response.OK == (response.Code != "") {
				t.Fatalf("ok and error_code contradict each other: %s", got)
			}
		}
		watch.quiet()
		if log := r.log.String(); strings.Contains(log, "panic") {
			t.Fatal(log)
		}
	})
}

func keysOf(t *rapid.T, object string) string {
	var fields map[string]jsontext.Value
	if err := json.Unmarshal([]byte(object), &fields); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(fields, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	dec := jsontext.NewDecoder(strings.NewReader(string(text)))
	_, _ = dec.ReadToken()
	for dec.PeekKind() == '"' {
		name, _ := dec.ReadToken()
		keys = append(keys, name.String())
		_ = dec.SkipValue()
	}
	return strings.Join(keys, " ")
}

// randomRequest draws an operation with parameters that are right, wrong or
// missing.
func randomRequest(t *rapid.T, id string, names []string) string {
	op := rapid.SampledFrom(append(wire.Ops(), "nonsense")).Draw(t, "op")
	value := rapid.OneOf(
		rapid.Map(rapid.SampledFrom(names), func(s string) string { return fmt.Sprintf("%q", s) }),
		rapid.SampledFrom([]string{
			`null`, `1`, `-3`, `1.5`, `true`, `""`, `"x"`, `[]`, `{}`, `["a","b"]`, `{"a":{"b":[1]}}`, `"ag2.msg.text"`, `"conversation"`, `"2h"`,
			`"completed"`, `"running"`, `99999999999999999999`, `{"name":"x","kind":"human"}`, `{"text":"hi"}`,
		}),
		rapid.Just(fmt.Sprintf(`[%q,%q]`, names[1], names[2])),
		rapid.Just(fmt.Sprintf(`{"channel_id":%q,"sender_id":%q,"event_type":"ag2.msg.text","event_data":{"text":"hi"}}`, names[3], names[0])),
		rapid.Just(fmt.Sprintf(`{"task_id":"t-%s","owner_id":%q,"state":"running"}`, id, names[0])),
	)
	keys := []string{
		"passport", "resume", "skill_md", "rule", "name_or_id", "agent_id", "name", "agent_ids", "capability", "query", "kind", "sort_by", "limit",
		"creator_id", "manifest_type", "manifest_version", "participants", "required_acks", "ttl", "knobs", "intent", "labels", "channel_id",
		"reason", "envelope", "since", "until", "sender_id", "causation_id", "event_type", "envelope_id", "error", "task_id", "state",
		"metadata", "progress", "result", "owner_id", "outcome", "latency_ms", "payload",
	}
	chosen := rapid.SliceOfNDistinct(rapid.SampledFrom(keys), 0, len(keys), rapid.ID[string]).Draw(t, "keys")
	params := make([]string, len(chosen))
	for i, key := range chosen {
		params[i] = fmt.Sprintf("%q:%s", key, value.Draw(t, key))
	}
	return fmt.Sprintf(`{"kind":"request","request_id":%q,"op":%q,"params":{%s}}`, id, op, strings.Join(params, ","))
}
