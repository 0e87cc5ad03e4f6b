package wire_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/parley-hub/parley/dialect/ag2/wire"
	"github.com/parley-hub/parley/envelope"
)

func TestEnvelopeHasFourteenKeys(t *testing.T) {
	t.Parallel()
	ttl := int64(60)
	full := &envelope.Envelope{
		ID: "e1", Seq: 7, Channel: "c1", Sender: "s1", Type: "app.note", Audience: []string{"r1", "é"}, To: "hidden",
		Causation: "e0", Task: "t1", Key: "k1", Trace: "00-1", Priority: envelope.Urgent, Depth: 2, TTL: &ttl,
		CreatedAt: time.Date(2026, 3, 9, 10, 15, 42, 0, time.UTC),
		Origin:    envelope.Origin{Dialect: "hpd"}, Ext: []byte(`{"x":1}`), Foreign: []byte("f"),
		Data: []byte(`{ "n":123456789012345678901234567890.10, "f":1.0, "s":"\u00e9\/", "e":{} }`),
	}
	tests := []struct {
		name string
		in   *envelope.Envelope
		want string
	}{
		{
			"full", full,
			`{"channel_id":"c1","sender_id":"s1","audience":["r1","é"],"event_type":"app.note","event_data":{ "n":123456789012345678901234567890.10, "f":1.0, "s":"\u00e9\/", "e":{} },` +
				`"envelope_id":"e1","task_id":"t1","causation_id":"e0","trace_id":"00-1","priority":"urgent","depth":2,"idempotency_key":"k1","created_at":"2026-03-09T10:15:42.000000+00:00","ttl_seconds":60}`,
		},
		{
			"empty", &envelope.Envelope{Channel: "c", Sender: "s", Type: envelope.TypeExpectationViolated},
			`{"channel_id":"c","sender_id":"s","audience":null,"event_type":"ag2.expectation.violated","event_data":{},` +
				`"envelope_id":"","task_id":null,"causation_id":null,"trace_id":null,"priority":"normal","depth":0,"idempotency_key":null,"created_at":"","ttl_seconds":null}`,
		},
		{
			"nobody", &envelope.Envelope{Channel: "c", Sender: "s", Type: "t", Audience: []string{}, Priority: "someday"},
			`{"channel_id":"c","sender_id":"s","audience":[],"event_type":"t","event_data":{},` +
				`"envelope_id":"","task_id":null,"causation_id":null,"trace_id":null,"priority":"someday","depth":0,"idempotency_key":null,"created_at":"","ttl_seconds":null}`,
		},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, string(wire.AppendEnvelope(nil, tt.in))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	one := string(wire.AppendEnvelope(nil, full))
	notify := string(wire.AppendNotifyTail([]byte(wire.NotifyHead+one), "r\"1"))
	if diff := cmp.Diff(`{"kind":"notify","envelope":`+one+`,"recipient_id":"r\"1"}`, notify); diff != "" {
		t.Errorf("a notify in parts (-want +got):\n%s", diff)
	}
}

func TestDecodeEnvelope(t *testing.T) {
	t.Parallel()
	base := func(change func(*envelope.Envelope)) *envelope.Envelope {
		e := &envelope.Envelope{Channel: "c", Sender: "s", Type: "t", Priority: envelope.Normal, Data: []byte("{}")}
		change(e)
		return e
	}
	with := func(rest string) string { return `{"channel_id":"c","sender_id":"s","event_type":"t"` + rest + `}` }
	tests := []struct {
		name, in string
		want     *envelope.Envelope
	}{
		{"least", with(``), base(func(*envelope.Envelope) {})},
		{"nulls", with(`,"audience":null,"event_data":null,"task_id":null,"priority":null,"depth":null,"ttl_seconds":null,"created_at":null,"envelope_id":null`), base(func(*envelope.Envelope) {})},
		{"unknown keys are dropped", with(`,"sequence":4,"session_id":"x"`), base(func(*envelope.Envelope) {})},
		{"empty audience is not null", with(`,"audience":[]`), base(func(e *envelope.Envelope) { e.Audience = []string{} })},
		{"audience", with(`,"audience":["a","b"]`), base(func(e *envelope.Envelope) { e.Audience = []string{"a", "b"} })},
		{"data as sent", with(`,"event_data":{ "a" : 1.50 }`), base(func(e *envelope.Envelope) { e.Data = []byte(`{ "a" : 1.50 }`) })},
		{"older name", `{"channel_id":"c","sender_id":"s","event_type":"ag2.session.invite.ack"}`, base(func(e *envelope.Envelope) { e.Type = envelope.TypeInviteAck })},
		{"wire name of an expectation", `{"channel_id":"c","sender_id":"s","event_type":"ag2.expectation.violated"}`, base(func(e *envelope.Envelope) { e.Type = envelope.TypeExpectationViolated })},
		{"priority LOW", with(`,"priority":"LOW"`), base(func(e *envelope.Envelope) { e.Priority = envelope.Background })},
		{"priority 0", with(`,"priority":0`), base(func(e *envelope.Envelope) { e.Priority = envelope.Background })},
		{"priority 1", with(`,"priority":1`), base(func(*envelope.Envelope) {})},
		{"priority 2", with(`,"priority":2`), base(func(e *envelope.Envelope) { e.Priority = envelope.Urgent })},
		{"priority 3", with(`,"priority":3`), base(func(e *envelope.Envelope) { e.Priority = envelope.Urgent })},
		{"priority URGENT", with(`,"priority":"URGENT"`), base(func(e *envelope.Envelope) { e.Priority = envelope.Urgent })},
		{"unknown priority", with(`,"priority":"Someday"`), base(func(e *envelope.Envelope) { e.Priority = "Someday" })},
		{"the rest", with(`,"envelope_id":"e","task_id":"k","causation_id":"z","trace_id":"tr","depth":3,"idempotency_key":"i","created_at":"2026-03-09T10:15:42Z","ttl_seconds":9`), base(func(e *envelope.Envelope) {
			ttl := int64(9)
			e.ID, e.Task, e.Causation, e.Trace, e.Depth, e.Key, e.TTL = "e", "k", "z", "tr", 3, "i", &ttl
			e.CreatedAt = time.Date(2026, 3, 9, 10, 15, 42, 0, time.UTC)
		})},
		{"a time that is none", with(`,"created_at":"soon"`), base(func(*envelope.Envelope) {})},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := wire.DecodeEnvelope([]byte(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for _, tt := range []struct{ in, fragment string }{
		{`{"sender_id":"s","event_type":"t"}`, "'channel_id'"},
		{`{"channel_id":"c","event_type":"t"}`, "'sender_id'"},
		{`{"channel_id":"c","sender_id":"s"}`, "'event_type'"},
		{with(`,"event_data":[]`), "event_data must be an object"},
		{with(`,"event_data":"x"`), "event_data must be an object"},
		{with(`,"audience":"a"`), "audience must be a list of strings"},
		{with(`,"audience":["a",null]`), "audience must be a list of strings"},
		{with(`,"depth":1.5`), "depth must be a whole number"},
		{with(`,"depth":"1"`), "depth must be a whole number"},
		{with(`,"depth":-1`), "depth must not be negative"},
		{with(`,"ttl_seconds":99999999999999999999`), "ttl_seconds must be a whole number"},
		{with(`,"priority":4`), "priority 4 is unknown"},
		{with(`,"priority":true`), "priority must be a whole number"},
		{with(`,"task_id":5`), "task_id must be a string"},
		{with(`,"event_data":{"a":NaN}`), "not valid JSON"},
		{with(`,"event_data":{"a":"\ud800"}`), "not valid JSON"},
		{`[]`, "a JSON object is wanted"},
	} {
		if _, err := wire.DecodeEnvelope([]byte(tt.in)); err == nil || !strings.Contains(err.Error(), tt.fragment) {
			t.Errorf("%s: got %v, want %q", tt.in, err, tt.fragment)
		}
	}
}

// Writing and reading returns the same envelope, whatever its texts contain.
func TestEnvelopeLaw(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.StringN(1, 12, 64)
		want := &envelope.Envelope{
			ID: texts.Draw(t, "id"), Channel: texts.Draw(t, "channel"), Sender: texts.Draw(t, "sender"), Type: "app." + texts.Draw(t, "type"),
			Audience:  rapid.OneOf(rapid.Just([]string(nil)), rapid.SliceOfN(texts, 0, 3)).Draw(t, "audience"),
			Causation: rapid.String().Draw(t, "causation"), Task: rapid.String().Draw(t, "task"), Key: rapid.String().Draw(t, "key"), Trace: rapid.String().Draw(t, "trace"),
			Priority: rapid.SampledFrom([]envelope.Priority{envelope.Background, envelope.Normal, envelope.Urgent}).Draw(t, "priority"),
			Depth:    rapid.IntRange(0, 1<<40).Draw(t, "depth"), TTL: rapid.Ptr(rapid.Int64(), true).Draw(t, "ttl"),
			CreatedAt: time.UnixMicro(rapid.Int64Range(0, 4e15).Draw(t, "at")).UTC(),
			Data:      []byte(rapid.SampledFrom([]string{`{}`, `{"a":[1,2.0,-0e9]}`, `{ "x" : {"y":"\u20ac"} }`}).Draw(t, "data")),
		}
		got, err := wire.DecodeEnvelope(wire.AppendEnvelope(nil, want))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		request := wire.AppendRequest(nil, &wire.Request{ID: "1", Op: wire.PostEnvelope, Params: wire.EncodePost(want)})
		posted, err := wire.Decode(request)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&wire.Post{ID: "1", Envelope: want}, posted); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		list, err := wire.DecodeEnvelopes(fmt.Appendf(nil, "[%[1]s,%[1]s]", wire.AppendEnvelope(nil, want)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]*envelope.Envelope{want, want}, list); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

func BenchmarkDecodePost(b *testing.B) {
	frame := []byte(`{"kind":"request","request_id":"18a0c4000000000000000000000000aa","op":"post_envelope","params":{"envelope":{"channel_id":"18a0c4000000000000000000000000aa","sender_id":"18a0c4000000000000000000000000ab","audience":null,"event_type":"ag2.msg.text","event_data":{"text":"hello there, this is an ordinary line of chat"},"envelope_id":"","task_id":null,"causation_id":null,"trace_id":null,"priority":"normal","depth":0,"idempotency_key":null,"created_at":"","ttl_seconds":null}}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := wire.Decode(frame); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendEnvelope(b *testing.B) {
	e := &envelope.Envelope{
		ID: "18a0c4000000000000000000000000ac", Channel: "18a0c4000000000000000000000000aa", Sender: "18a0c4000000000000000000000000ab", Type: envelope.TypeText,
		Priority: envelope.Normal, CreatedAt: time.Now(), Data: []byte(`{"text":"hello there, this is an ordinary line of chat"}`),
	}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = wire.AppendEnvelope(buf[:0], e)
	}
}
