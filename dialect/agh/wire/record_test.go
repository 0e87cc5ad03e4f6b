package wire_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/envelope"
)

// Every envelope that a runtime accepts, under any of its settings, is read back
// from its record.
func TestEverythingTakenIsFoundAgain(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		o := wire.Options{
			Storable: true, SkipFreshness: true, Strict: rapid.Bool().Draw(r, "strict"), LenientWorkIDs: rapid.Bool().Draw(r, "lenient"),
			V1: rapid.Bool().Draw(r, "v1"), Handles: rapid.Bool().Draw(r, "handles"),
		}
		data := drawEnvelope(r)
		data = with(data, rapid.SampledFrom([]string{"thread_id", "ts", "work_id", "expires_at"}).Draw(r, "odd member"), rapid.SampledFrom([]string{
			`"a/b"`, `"a\\b"`, `"a\u0001"`, `"ä"`, `"thread x"`, quoted(repeat("a", 128)), quoted(repeat("a", 129)), `1776366000.0`, `1.776366e9`, `null`, `"work_1"`, `"job 1"`,
		}).Draw(r, "odd value"))
		e, err := wire.Decode(data, o)
		if err != nil || !e.Kind.Conversation() {
			return
		}
		record, err := wire.Record(e, data)
		if err != nil {
			r.Fatal(err)
		}
		again, _, err := wire.Message(record)
		if err != nil {
			r.Fatalf("%s\nis taken by %+v and not found again: %v", data, o, err)
		}
		if diff := cmp.Diff(e, again); diff != "" {
			r.Fatal(diff)
		}
	})
}

func TestRecord(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	data := with(work, "ext", `{"acme.f":1.50}`, "reply_to", "null", "body", `{"text":"é","n":1.0}`)
	e, err := wire.Decode(data, lax)
	c.NoError(err)
	record, err := wire.Record(e, data)
	c.NoError(err)
	c.Equal(record, &envelope.Envelope{
		Type: "agh.say", Key: "crane.s01/m-1", Priority: envelope.Normal, Origin: envelope.Origin{Dialect: "agh", ID: "m-1"},
		Data: []byte(`{"text":"é","n":1.0}`),
		Ext: []byte(`{"protocol":"agh-network/v0","workspace_id":"ws_harbor","kind":"say","channel":"dock","surface":"thread","thread_id":"thread_tide",` +
			`"from":"crane.s01","ts":1776366000,"to":"tug.s02","work_id":"work_1","trace_id":"t-1","ext":{"acme.f":1.50},"reply_to":null}`),
	})
	again, text, err := wire.Message(record)
	c.NoError(err)
	c.Equal(again, e)
	reread, err := wire.Decode(text, lax)
	c.NoError(err)
	c.Equal(reread, e)

	for _, v := range loadVectors(t).Signature[1:] {
		e, err := wire.Decode(v.Envelope, trusting)
		c.NoError(err)
		record, err := wire.Record(e, v.Envelope)
		c.NoError(err)
		c.Equal(record.Foreign, []byte(v.Envelope))
		again, text, err := wire.Message(record)
		c.NoError(err)
		trust, why := wire.Verify(again, text)
		c.True(trust == wire.Verified, "%v", why)
	}
	for _, kind := range [][]byte{greet, whois} {
		e, err := wire.Decode(kind, lax)
		c.NoError(err)
		_, err = wire.Record(e, kind)
		c.ErrorContains(err, "not part of a conversation")
	}
	for _, bad := range []*envelope.Envelope{{Type: "ag2.msg.text"}, {Type: "agh.join"}, {Type: "agh.say", Data: []byte(`{`)}, {Type: "agh.say", Ext: []byte(`{}`), Data: []byte(`{}`)}} {
		_, _, err := wire.Message(bad)
		c.True(err != nil, "%+v", bad)
	}
}
