package wire_test

import (
	"testing"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/agh/wire"
)

var (
	work   = with(say, "to", `"tug.s02"`, "work_id", `"work_1"`, "trace_id", `"t-1"`)
	room   = `"direct_84746c510d5845aa9078a8ca2f0f04a2"`
	nobody = wire.Container{}
)

// answered decodes a rejected envelope and returns the answer to it.
func answered(data []byte, why wire.Reason) (*wire.Envelope, bool) {
	e, err := wire.Decode(data, lax)
	if rejection := rejected(err); rejection != nil {
		if !rejection.Answerable {
			return nil, false
		}
		why = rejection.Reason
	}
	return wire.Answer(e, why, nobody, lax)
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	stale := with(work, "ts", "1776360000")
	spec.Check(t, "agh-network#89: what the receipt holds", func(t *spec.T) {
		for _, data := range [][]byte{stale, with(stale, "surface", `"direct"`, "thread_id", "", "direct_id", room)} {
			e, err := wire.Decode(data, lax)
			t.Equal(rejected(err).Reason, wire.Expired)
			r, ok := answered(data, "")
			t.True(ok, "a receipt is due")
			t.Equal(r.Content, any(&wire.ReceiptBody{ForID: "m-1", Status: wire.StatusExpired, Reason: wire.Expired}))
			t.Equal(r.Container(), e.Container())
			t.Equal([]string{r.Workspace, r.Channel, r.Work, r.Trace, r.From, r.To, r.ReplyTo, r.Causation},
				[]string{"ws_harbor", "dock", "work_1", "t-1", "tug.s02", "crane.s01", "m-1", "m-1"})
			t.Equal(r.TS, int64(now))
			t.False(r.ID == e.ID || r.ID == "", "it has an id of its own")
		}
	})
	spec.Check(t, "agh-network#90: which faults are answered", func(t *spec.T) {
		for name, data := range map[string][]byte{
			"wrong protocol": with(work, "protocol", `"agh-network/v9"`), "no body": with(work, "body", ""), "body of no object": with(work, "body", `"x"`),
			"no surface": with(work, "surface", ""), "both ids": with(work, "direct_id", room), "bad body": with(work, "body", `{}`),
		} {
			r, ok := answered(data, "")
			t.True(ok, "%s is answered", name)
			t.Equal(r.Content, any(&wire.ReceiptBody{ForID: "m-1", Status: wire.StatusRejected, Reason: wire.Malformed}))
		}
		r, ok := answered(with(work, "ts", "0"), "")
		t.True(ok, "a clock at 0 is answered")
		t.Equal(r.Content.(*wire.ReceiptBody).Status, wire.StatusExpired)
		// A secret is a malformed body.
		e, err := wire.Decode(with(work, "body", `{"text":"password: x"}`), wire.Options{Now: now, Secrets: wire.NewSecretScan()})
		t.True(rejected(err).Answerable, "a secret is answered")
		_, ok = wire.Answer(e, rejected(err).Reason, nobody, lax)
		t.True(ok, "a secret is answered")
		// A bad thread id is answered in the work's own conversation; unknown work
		// has none, and the seed's schema accepts every text.
		for _, id := range []string{"a/b", `a\b`, repeat("a", 129)} {
			e, err = wire.Decode(with(work, "thread_id", quoted(id)), lax)
			t.True(rejected(err).Answerable, "a bad thread_id is answered")
			r, ok = wire.Answer(e, wire.Malformed, nobody, lax)
			t.True(ok, "%q is answered", id)
			t.Equal(r.Thread, id)
			text, err := r.AppendJSON(nil)
			t.NoError(err)
			_, err = wire.Decode(text, wire.Options{Now: now, Strict: true})
			t.NoError(err)
		}
		_, ok = answered(with(work, "thread_id", `" "`), "")
		t.False(ok, "a receipt without a conversation is made")
		r, ok = wire.Answer(e, wire.Malformed, wire.Container{Channel: "dock", Surface: wire.Thread, ID: "thread_tide"}, lax)
		t.True(ok, "the work's conversation is known")
		t.Equal(r.Thread, "thread_tide")
	})
	spec.Check(t, "agh-network#91: what is never answered", func(t *spec.T) {
		for name, data := range map[string][]byte{
			"interaction_id": with(work, "interaction_id", `"i"`), "unknown kind": with(work, "kind", `"direct"`), "bad from": with(work, "from", `"Bad"`),
			"a wrong type": with(work, "ts", `"x"`), "an unknown member": with(work, "x", "1"), "no work": with(stale, "work_id", ""),
			"a broadcast": with(stale, "to", ""), "a receipt": with(receipt, "to", `"tug.s02"`, "ts", "0"), "a trace": with(trace, "to", `"tug.s02"`, "ts", "0"),
			"a greet": with(greet, "to", `"tug.s02"`, "ts", "0"), "a whois": with(whois, "to", `"tug.s02"`, "ts", "0"), "no JSON": []byte(`{`),
			"a bad work id": with(work, "work_id", `"job/1"`), "work with itself": with(stale, "to", `"crane.s01"`), "no id": with(work, "id", ""),
		} {
			_, ok := answered(data, wire.Malformed)
			t.False(ok, "%s is answered", name)
		}
	})
	spec.Check(t, "agh-network#92: no reason gives an accepted, unsupported or canceled receipt", func(t *spec.T) {
		e, err := wire.Decode(work, lax)
		t.NoError(err)
		for _, why := range []wire.Reason{"", wire.NotTarget, wire.Busy, wire.Internal, wire.UnsupportedKind, wire.NotFound} {
			_, ok := wire.Answer(e, why, nobody, lax)
			t.False(ok, "%q is answered", why)
		}
		_, ok := wire.Answer(nil, wire.Malformed, nobody, lax)
		t.False(ok, "nothing is answered")
	})
	spec.Check(t, "agh-network#82: only a say is told that its work is closed", func(t *spec.T) {
		for _, why := range []wire.Reason{wire.WorkClosed, wire.WorkContainerMismatch} {
			r, ok := answered(work, why)
			t.True(ok, "a say is told")
			t.Equal(r.Content, any(&wire.ReceiptBody{ForID: "m-1", Status: wire.StatusRejected, Reason: why}))
			for _, data := range [][]byte{with(capability, "to", `"tug.s02"`, "work_id", `"work_1"`), with(trace, "to", `"tug.s02"`), with(receipt, "to", `"tug.s02"`)} {
				_, ok := answered(data, why)
				t.False(ok, "%s is told", data)
			}
		}
		r, ok := answered(with(capability, "to", `"tug.s02"`, "work_id", `"work_1"`), wire.Duplicate)
		t.True(ok, "a doubled capability is told")
		t.Equal(r.Content.(*wire.ReceiptBody).Status, wire.StatusDuplicate)
	})
	spec.Check(t, "agh-network#93: emitted receipts are themselves valid", func(t *spec.T) {
		for _, data := range [][]byte{work, stale, with(work, "body", `{}`), with(work, "surface", ""), with(work, "trace_id", "")} {
			r, ok := answered(data, wire.Duplicate)
			t.True(ok, "a receipt is made")
			out, err := r.AppendJSON(nil)
			t.NoError(err)
			accepts(t, out)
			t.NoError(r.CheckOutgoing(false))
		}
	})
	spec.Check(t, "agh-network#89: the offender's own thread, whatever its form", func(t *spec.T) {
		for _, id := range []string{"t1", "Thread X", "thread_ab"} {
			r, ok := answered(with(stale, "thread_id", quoted(id)), "")
			t.True(ok, "%q is answered", id)
			t.Equal(r.Thread, id)
		}
	})
	spec.Check(t, "agh-network#57: nor is what belongs to a room of others answered", func(t *spec.T) {
		const other = `"direct_52f65d30dbe01e450a0aa963c5cf154b"` // of the same two peers in another channel
		for _, data := range [][]byte{stale, with(work, "body", `{}`)} {
			in := with(data, "surface", `"direct"`, "thread_id", "", "direct_id", room)
			_, ok := answered(in, "")
			t.True(ok, "their own room is answered")
			_, ok = answered(with(in, "direct_id", other), "")
			t.False(ok, "another room is answered")
			e, err := wire.Decode(with(in, "direct_id", other), lax)
			_, ok = wire.Answer(e, rejected(err).Reason, wire.Container{Channel: "dock", Surface: wire.Thread, ID: "thread_tide"}, lax)
			t.False(ok, "another room is answered in the work's conversation")
		}
	})
	t.Run("v1 answers v1, lenient ids only where they are taken", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		v1 := wire.Options{Now: now, V1: true, Handles: true}
		e, err := wire.Decode(with(work, "protocol", `"agh-network/v1"`), v1)
		c.NoError(err)
		r, ok := wire.Answer(e, wire.Duplicate, nobody, v1)
		c.True(ok && r.Protocol == wire.ProtocolV1, "got %+v", r)
		e.Work = "job 1"
		_, ok = wire.Answer(e, wire.Duplicate, nobody, v1)
		c.False(ok, "an id that is not taken is sent")
		v1.LenientWorkIDs = true
		_, ok = wire.Answer(e, wire.Duplicate, nobody, v1)
		c.True(ok, "an id that is taken is sent")
	})
}
