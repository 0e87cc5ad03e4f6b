package wire_test

import (
	"strings"
	"testing"
	"time"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/agh/wire"
)

func TestEnvelope(t *testing.T) {
	t.Parallel()
	spec.Check(t, "agh-network#1 seed-001#25: each of the six kinds", func(t *spec.T) {
		t.Equal(len(kinds()), len(wire.Kinds()))
		for kind, data := range kinds() {
			accepts(t, data)
			e, err := wire.Decode(data, lax)
			t.NoError(err)
			t.Equal(e.Kind, kind)
			t.True(e.Content != nil, "%s has content", kind)
		}
		accepts(t, answer)
	})
	spec.Check(t, "agh-network#2: missing, or null", func(t *spec.T) {
		for _, name := range []string{"protocol", "id", "workspace_id", "channel", "from", "ts", "body"} {
			rejects(t, wire.Malformed, with(say, name, ""), with(say, name, "null"))
			// Required members are checked before freshness.
			rejects(t, wire.Malformed, with(say, "expires_at", "1", name, ""))
		}
		rejects(t, wire.UnsupportedKind, with(say, "kind", ""), with(say, "kind", "null"), with(say, "expires_at", "1", "kind", ""))
	})
	spec.Check(t, "agh-network#3: v1 unless it is enabled", func(t *spec.T) {
		v1 := with(say, "protocol", `"agh-network/v1"`)
		rejects(t, wire.Malformed, v1, with(say, "protocol", `"agh-network/v2"`))
		t.Equal(reason(v1, wire.Options{Now: now, V1: true}), wire.Reason(""))
		t.Equal(reason(with(say, "protocol", `"agh-network/v2"`), wire.Options{Now: now, V1: true}), wire.Malformed)
	})
	spec.Check(t, "agh-network#4: a channel name has 1 to 64 of its allowed characters", func(t *spec.T) {
		for _, bad := range []string{"bad.channel", "Dock", "-a", "_a", "", "a b", " a", "a\n", repeat("a", 65), "é"} {
			rejects(t, wire.Malformed, with(say, "channel", quoted(bad)))
		}
		accepts(t, with(say, "channel", quoted(repeat("a", 64))), with(say, "channel", `"0"`), with(say, "channel", `"a-_9"`))
	})
	spec.Check(t, "agh-network#5: a peer id has 1 to 128 of its allowed characters", func(t *spec.T) {
		for _, bad := range []string{"BadPeer", ".a", "-a", "_a", "a@b", "a b", "", "a\n", repeat("a", 129), "mason@459ad9d703350ba017bf94f6b93a807d"} {
			rejects(t, wire.Malformed, with(say, "from", quoted(bad)), with(say, "to", quoted(bad)))
		}
		accepts(t, with(say, "from", quoted(repeat("a", 128))), with(say, "to", quoted(repeat("a", 128))), with(say, "from", `"a._-9"`))
	})
	spec.Check(t, "agh-network#6: a direct_id has exactly 32 lower-case hex digits", func(t *spec.T) {
		direct := with(say, "surface", `"direct"`, "thread_id", "")
		for _, bad := range []string{"direct_" + repeat("A", 32), "direct_" + repeat("a", 31), "direct_" + repeat("a", 33), "room_" + repeat("a", 32), repeat("a", 32), ""} {
			rejects(t, wire.Malformed, with(direct, "direct_id", quoted(bad)))
		}
		accepts(t, with(direct, "direct_id", quoted("direct_"+repeat("0f", 16))))
	})
	lenient := wire.Options{Now: now, LenientWorkIDs: true}
	spec.Check(t, "agh-network#7: a work_id of another form is rejected in strict mode only", func(t *spec.T) {
		for _, id := range []string{"work_", "work_" + repeat("a", 65), "job_1", "work_a.b"} {
			data := with(say, "work_id", quoted(id), "to", `"tug.s02"`)
			rejects(t, wire.Malformed, data)
			t.Equal(reason(data, lenient), wire.Reason(""))
		}
		accepts(t, with(say, "work_id", quoted("work_"+repeat("a", 64)), "to", `"tug.s02"`))
	})
	spec.Check(t, "agh-network#8: a work_id that is unsafe or too long is rejected in every mode", func(t *spec.T) {
		for _, id := range []string{"work_a/b", `work_a\b`, "work_a\x01", "work_a\x7f", "work_" + repeat("a", 124), "", " ", " work_1"} {
			data := with(say, "work_id", strings.ReplaceAll(quoted(id), `\x`, `\u00`), "to", `"tug.s02"`)
			rejects(t, wire.Malformed, data)
			t.Equal(reason(data, lenient), wire.Malformed)
		}
	})
	spec.Check(t, "agh-network#9: a thread_id of another form is never sent", func(t *spec.T) {
		e, err := wire.Decode(say, lax)
		t.NoError(err)
		t.NoError(e.CheckOutgoing(false))
		for _, id := range []string{"tide", "thread_ab", "thread_-abc", "thread_A12", "thread_" + repeat("a", 97), "thread_a b", "Thread_abc"} {
			e.Thread = id
			t.ErrorContains(e.CheckOutgoing(false), "thread_id")
		}
		for _, id := range []string{"thread_abc", "thread_" + repeat("a", 96), "thread_0_-"} {
			e.Thread = id
			t.NoError(e.CheckOutgoing(false))
		}
	})
	spec.Check(t, "agh-network#10: a workspace_id that a subject cannot carry is rejected", func(t *spec.T) {
		for _, id := range []string{`"a.b"`, `"a b"`, `"a*"`, `">"`, `"a\u0001"`, `"a\u007f"`, `"a\u0085b"`, `"\u009f"`, `""`, `" a"`, `"a\n"`} {
			rejects(t, wire.Malformed, with(say, "workspace_id", id))
		}
		accepts(t, with(say, "workspace_id", `"Büro"`), with(say, "workspace_id", `"ws_0123456789abcdef"`), with(say, "workspace_id", `"a\u00a0b\u00c2\u0142"`))
	})
	spec.Check(t, "agh-network#11 seed-001#99: unknown members, and known ones in another case", func(t *spec.T) {
		for _, name := range []string{"priority", "KIND", "Kind", "x", "work-id", ""} {
			rejects(t, wire.Malformed, with(say, name, `"say"`))
		}
	})
	spec.Check(t, "agh-network#12 seed-001#70: unknown ext survives decoding and encoding", func(t *spec.T) {
		const ext = `{"acme.n":9007199254740993,"acme.f":1.50,"no_namespace":[{"a":null}],"":"\u00e9"}`
		data := with(say, "ext", ext)
		accepts(t, data)
		e, err := wire.Decode(data, lax)
		t.NoError(err)
		t.Equal(string(e.Ext), ext)
		out, err := e.AppendJSON(nil)
		t.NoError(err)
		t.Contains(string(out), `"ext":`+ext)
	})
	spec.Check(t, "agh-network#13 seed-001#67: any proof object passes and is kept", func(t *spec.T) {
		for _, proof := range []string{`{}`, `{"x":1}`, `{"profile":"agh-network.trust.ed25519-jcs/v1","sig":"nonsense"}`} {
			data := with(say, "proof", proof)
			accepts(t, data)
			e, err := wire.Decode(data, lax)
			t.NoError(err)
			out, err := e.AppendJSON(nil)
			t.NoError(err)
			t.Contains(string(out), `"proof":`+proof)
		}
	})
	spec.Check(t, "agh-network#14 seed-001#66: proof is null or an object", func(t *spec.T) {
		for _, proof := range []string{`"sig"`, `[]`, `1`, `true`} {
			rejects(t, wire.Malformed, with(say, "proof", proof))
		}
		accepts(t, with(say, "proof", "null"), with(say, "proof", "{}"))
	})
	spec.Check(t, "agh-network#15: interaction_id is rejected, even as null", func(t *spec.T) {
		for _, value := range []string{`"i-1"`, `null`, `5`} {
			rejects(t, wire.LegacyFieldRejected, with(say, "interaction_id", value), with(greet, "interaction_id", value))
		}
		rejects(t, wire.LegacyFieldRejected, with(say, "interaction_id", `"i-1"`, "ts", `"x"`, "unknown", "1"))
	})
	spec.Check(t, "agh-network#16: an unknown or retired kind is unsupported", func(t *spec.T) {
		for _, kind := range []string{"direct", "recipe", "Say", "", "say "} {
			rejects(t, wire.UnsupportedKind, with(say, "kind", quoted(kind)))
		}
	})
	spec.Check(t, "agh-network#17: ts is an integer, 0 or more", func(t *spec.T) {
		for _, ts := range []string{`"1776366000"`, `1776366000.5`, `-1`, `[]`, `true`, `9223372036854775808`, `1e999999999`} {
			rejects(t, wire.Malformed, with(say, "ts", ts))
		}
		for _, ts := range []string{`1776366000.0`, `1.776366e9`, `17763660000e-1`} {
			t.Equal(reason(with(say, "ts", ts), lax), wire.Malformed)
			t.Equal(reason(with(say, "ts", ts), wire.Options{Now: now, Strict: true}), wire.Reason(""))
		}
	})
	spec.Check(t, "agh-network#18: an envelope is one JSON object with nothing but white space around it", func(t *spec.T) {
		rejects(t, wire.Malformed, append(with(say), " x"...), append(with(say), "{}"...), append([]byte("["), append(with(say), ']')...),
			append([]byte("\xef\xbb\xbf"), say...), nil, []byte(" "))
		accepts(t, append([]byte("\r\n\t "), append(with(say), " \r\n\t"...)...))
	})
	spec.Check(t, "agh-network#19: a nullable member given as null is as if absent", func(t *spec.T) {
		plain, err := wire.Decode(say, lax)
		t.NoError(err)
		for _, name := range []string{"direct_id", "to", "work_id", "proof"} {
			accepts(t, with(say, name, "null"))
			e, err := wire.Decode(with(say, name, "null"), lax)
			t.NoError(err)
			t.Equal(e, plain)
		}
		rejects(t, wire.InvalidSurface, with(say, "surface", "null"), with(say, "thread_id", "null"))
		accepts(t, with(greet, "surface", "null", "thread_id", "null", "direct_id", "null", "work_id", "null"))
	})
	spec.Check(t, "agh-network#20 seed-001#15: to and proof are always written", func(t *spec.T) {
		for _, data := range kinds() {
			e, err := wire.Decode(data, lax)
			t.NoError(err)
			out, err := e.AppendJSON(nil)
			t.NoError(err)
			t.Contains(string(out), `"to":null`, `"proof":null`)
			accepts(t, out)
			again, err := wire.Decode(out, lax)
			t.NoError(err)
			t.Equal(again, e)
			e.To, e.Proof = "tug.s02", []byte(`{"a":1}`)
			out, err = e.AppendJSON(nil)
			t.NoError(err)
			t.Contains(string(out), `"to":"tug.s02"`, `"proof":{"a":1}`)
		}
	})
	spec.Check(t, "agh-network#20 seed-001#16: both left out", func(t *spec.T) {
		for _, data := range kinds() {
			t.False(strings.Contains(string(data), `"to"`) || strings.Contains(string(data), `"proof"`), "the sample has them")
			accepts(t, data)
		}
	})
	spec.Check(t, "agh-network#21: null in an optional member is accepted, but not in strict mode", func(t *spec.T) {
		for _, name := range []string{"expires_at", "reply_to", "trace_id", "causation_id", "ext"} {
			t.Equal(reason(with(say, name, "null"), lax), wire.Reason(""))
			t.Equal(reason(with(say, name, "null"), wire.Options{Now: now, Strict: true}), wire.Malformed)
		}
	})
	spec.Check(t, "agh-network#22: an envelope has at most 1 MiB", func(t *spec.T) {
		fill := func(size int) []byte {
			empty := with(say, "body", `{"text":"x","pad":""}`)
			return with(say, "body", `{"text":"x","pad":"`+repeat("a", size-len(empty))+`"}`)
		}
		t.Equal(len(fill(1048576)), 1048576)
		accepts(t, fill(1048576))
		rejects(t, wire.Malformed, fill(1048577))
		e, err := wire.Decode(fill(1048576), lax)
		t.NoError(err)
		e.To = "tug.s02" // this makes it too large to be sent
		_, err = e.AppendJSON(nil)
		t.ErrorContains(err, "the network takes 1048576")
		e.Body = append([]byte(nil), e.Body[:len(e.Body)-2]...)
		out, err := e.AppendJSON(nil)
		if err == nil {
			t.Fatalf("a body cut off was written: %.100s", out)
		}
	})
}

func TestEnvelopeSizeIsOfWhatIsWritten(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	e, err := wire.Decode(say, lax)
	c.NoError(err)
	out, err := e.AppendJSON(nil)
	c.NoError(err)
	room := wire.MaxBytes - len(out) + len(`"Berth 4 is free."`) - 2
	e.Body = []byte(`{"text":"` + repeat("a", room) + `"}`)
	out, err = e.AppendJSON([]byte("in front"))
	c.NoError(err)
	c.Equal(len(out)-len("in front"), wire.MaxBytes)
	e.Body = []byte(`{"text":"` + repeat("a", room+1) + `"}`)
	_, err = e.AppendJSON(nil)
	c.ErrorContains(err, "has 1048577 bytes")
}

func TestSyntax(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	for _, bad := range []string{
		strings.Replace(string(say), `"id":"m-1"`, `"id":"m-1","id":"m-2"`, 1),
		strings.Replace(string(say), `"text":`, `"text":"a","text":`, 1),
		strings.Replace(string(say), `Berth`, "\xff", 1),
		strings.Replace(string(say), `Berth`, `\ud800`, 1),
	} {
		rejects(c, wire.Malformed, []byte(bad))
	}
	nested := func(n int) []byte {
		return with(say, "ext", `{"a":`+repeat("[", n)+repeat("]", n)+`}`)
	}
	accepts(c, nested(wire.MaxDepth-2))
	rejects(c, wire.Malformed, nested(wire.MaxDepth-1), nested(100_000))
	for _, name := range []string{"id", "reply_to", "trace_id", "causation_id", "thread_id", "workspace_id"} {
		rejects(c, wire.Malformed, with(say, name, `""`), with(say, name, `" "`), with(say, name, `" a"`), with(say, name, `"a "`), with(say, name, `5`))
	}
	_, err := wire.Decode(with(say, "body", `{"text":"the secret text"}`, "channel", `"Bad"`), lax)
	c.False(strings.Contains(err.Error(), "secret text"), "a rejection repeats the body")
}

func TestFreshness(t *testing.T) {
	t.Parallel()
	at := func(seconds int64, data []byte) wire.Reason { return reason(data, wire.Options{Now: seconds}) }
	stale := with(say, "ts", "1776360000")
	spec.Check(t, "agh-network#23 seed-001#63: expired from the second of expires_at on", func(t *spec.T) {
		t.Equal(at(now, with(say, "expires_at", "1776366000")), wire.Expired)
		t.Equal(at(now, with(say, "expires_at", "1776365999")), wire.Expired)
		t.Equal(at(now, with(say, "expires_at", "0")), wire.Expired)
		t.Equal(at(now, with(say, "expires_at", "1776366001")), wire.Reason(""))
	})
	spec.Check(t, "agh-network#24 seed-001#95: without expires_at it is fresh for 300 seconds", func(t *spec.T) {
		t.Equal(at(now+300, say), wire.Reason(""))
		t.Equal(at(now+301, say), wire.Expired)
	})
	spec.Check(t, "agh-network#25 seed-001#97: a future expires_at keeps an old ts fresh", func(t *spec.T) {
		t.Equal(at(now+10_000, with(say, "expires_at", "1776386000")), wire.Reason(""))
		t.Equal(at(now+10_000, say), wire.Expired)
	})
	spec.Check(t, "agh-network#26: a ts more than 300 seconds ahead is expired", func(t *spec.T) {
		t.Equal(at(now-300, say), wire.Reason(""))
		t.Equal(at(now-301, say), wire.Expired)
		t.Equal(at(now-301, with(say, "expires_at", "1776386000")), wire.Expired)
		t.Equal(at(now, with(say, "ts", "9223372036854775807")), wire.Expired)
	})
	spec.Check(t, "agh-network#27 seed-001#89: freshness is checked before surface and body", func(t *spec.T) {
		rejects(t, wire.Expired, with(stale, "body", `{}`), with(stale, "body", `{"text":5}`), with(stale, "surface", ""),
			with(stale, "thread_id", ""), with(stale, "work_id", `"job"`), with(stale, "kind", `"greet"`))
	})
	spec.Check(t, "agh-network#28 seed-001#96: the replay age is 300 seconds unless set", func(t *spec.T) {
		t.Equal(wire.DefaultReplayAge, 300*time.Second)
		for age, want := range map[time.Duration]wire.Reason{60 * time.Second: wire.Expired, 61 * time.Second: "", 0: ""} {
			t.Equal(reason(say, wire.Options{Now: now + 61, ReplayAge: age}), want)
		}
		t.Equal(reason(say, wire.Options{Now: now + 301, ReplayAge: 301 * time.Second}), wire.Reason(""))
	})
	spec.Check(t, "seed-001#88: step 2 comes before freshness", func(t *spec.T) {
		rejects(t, wire.Malformed, with(stale, "channel", `"Bad"`), with(stale, "from", `"Bad"`), with(stale, "to", `"Bad"`),
			with(stale, "protocol", `"x"`), with(stale, "workspace_id", `"a.b"`), with(stale, "id", ""), with(stale, "body", ""))
		rejects(t, wire.UnsupportedKind, with(stale, "kind", `"direct"`))
	})
	spec.Check(t, "agh-network#70: fresh until, and no longer", func(t *spec.T) {
		for _, data := range [][]byte{say, with(say, "expires_at", "1776370000")} {
			e, err := wire.Decode(data, lax)
			t.NoError(err)
			t.Equal(at(e.FreshUntil(0), data), wire.Reason(""))
			t.Equal(at(e.FreshUntil(0)+1, data), wire.Expired)
		}
	})
}

// Of two faults the one of the earlier step is reported.
func TestOrder(t *testing.T) {
	t.Parallel()
	steps := []struct {
		reason  wire.Reason
		member  string
		changes []string
	}{
		{wire.LegacyFieldRejected, "interaction_id", []string{"interaction_id", "null"}},
		{wire.Malformed, "reply_to", []string{"reply_to", "5"}},
		{wire.Malformed, "id", []string{"id", ""}},
		{wire.Malformed, "protocol", []string{"protocol", `"agh-network/v9"`}},
		{wire.Malformed, "workspace_id", []string{"workspace_id", `"a.b"`}},
		{wire.UnsupportedKind, "kind", []string{"kind", `"direct"`}},
		{wire.Malformed, "channel", []string{"channel", `"Bad"`}},
		{wire.Malformed, "from", []string{"from", `"Bad"`}},
		{wire.Malformed, "to", []string{"to", `"Bad"`}},
		{wire.Expired, "ts", []string{"ts", "5"}},
		{wire.InvalidSurface, "surface", []string{"surface", `"room"`}},
		{wire.Malformed, "work_id", []string{"work_id", `"job"`}},
		{wire.Malformed, "body.text", []string{"body", `{"text":5,"note":"password: x"}`}},
		{wire.Malformed, "ext", []string{"ext", `{"a.b":"password: x"}`}},
	}
	spec.Check(t, "seed-001#88: of two faults the earlier one is reported", func(t *spec.T) {
		o := wire.Options{Now: now, Secrets: wire.NewSecretScan()}
		for i, first := range steps {
			for _, second := range steps[i:] {
				data := with(with(work, first.changes...), second.changes...)
				_, err := wire.Decode(data, o)
				got := rejected(err)
				t.True(got != nil && got.Reason == first.reason && got.Member == first.member, "%s and %s: %v", first.member, second.member, got)
			}
		}
	})
}

func TestSurface(t *testing.T) {
	t.Parallel()
	const room = `"direct_84746c510d5845aa9078a8ca2f0f04a2"`
	conversation := [][]byte{say, capability, receipt, trace}
	spec.Check(t, "agh-network#29: a conversation kind needs a surface", func(t *spec.T) {
		for _, data := range conversation {
			rejects(t, wire.InvalidSurface, with(data, "surface", ""), with(data, "surface", "", "thread_id", ""))
		}
	})
	spec.Check(t, "agh-network#30: each surface needs its container id", func(t *spec.T) {
		for _, data := range conversation {
			rejects(t, wire.InvalidSurface, with(data, "thread_id", ""), with(data, "surface", `"direct"`, "thread_id", ""))
			accepts(t, with(data, "surface", `"direct"`, "thread_id", "", "direct_id", room))
		}
	})
	spec.Check(t, "agh-network#31: the container id of the other surface is rejected", func(t *spec.T) {
		for _, data := range conversation {
			rejects(t, wire.InvalidSurface, with(data, "thread_id", "", "direct_id", room), with(data, "surface", `"direct"`),
				with(data, "direct_id", room), with(data, "surface", `"direct"`, "direct_id", room))
			rejects(t, wire.Malformed, with(data, "direct_id", `""`), with(data, "surface", `"direct"`, "direct_id", room, "thread_id", `" "`))
		}
	})
	spec.Check(t, "agh-network#32: a container id without a surface is rejected", func(t *spec.T) {
		rejects(t, wire.InvalidSurface, with(say, "surface", ""), with(say, "surface", "", "thread_id", "", "direct_id", room))
	})
	spec.Check(t, "agh-network#33 seed-001#30: the surface is thread or direct", func(t *spec.T) {
		for _, bad := range []string{`"room"`, `"Thread"`, `""`, `"thread "`} {
			rejects(t, wire.InvalidSurface, with(say, "surface", bad))
		}
		rejects(t, wire.Malformed, with(say, "surface", `5`), with(say, "surface", `["thread"]`))
		accepts(t, say, with(say, "surface", `"direct"`, "thread_id", "", "direct_id", room))
	})
	spec.Check(t, "agh-network#34: greet and whois take no surface, container or work", func(t *spec.T) {
		for _, data := range [][]byte{greet, whois, answer} {
			for _, c := range [][2]string{{"surface", `"thread"`}, {"surface", `"direct"`}, {"thread_id", `"thread_tide"`}, {"direct_id", room}} {
				rejects(t, wire.InvalidSurface, with(data, c[0], c[1]))
			}
			rejects(t, wire.Malformed, with(data, "work_id", `"work_1"`))
			rejects(t, wire.Malformed, with(data, "thread_id", `""`), with(data, "direct_id", `" "`))
		}
	})
	spec.Check(t, "agh-network#35: a receipt or trace needs a work_id", func(t *spec.T) {
		rejects(t, wire.Malformed, with(receipt, "work_id", ""), with(trace, "work_id", ""), with(trace, "work_id", "null"))
	})
	spec.Check(t, "agh-network#36: a capability without work_id is accepted but never sent", func(t *spec.T) {
		accepts(t, capability)
		e, err := wire.Decode(capability, lax)
		t.NoError(err)
		t.ErrorContains(e.CheckOutgoing(false), "work_id")
		e.Work, e.To = "work_1", "tug.s02"
		t.NoError(e.CheckOutgoing(false))
	})
}

func TestOutgoing(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	e, err := wire.Decode(say, lax)
	c.NoError(err)
	for fragment, change := range map[string]func(*wire.Envelope){
		"`work_id` does not":    func(e *wire.Envelope) { e.Work, e.To = "job", "tug.s02" },
		"`to` is missing; work": func(e *wire.Envelope) { e.Work = "work_1" },
		"`to` is missing; a":    func(e *wire.Envelope) { e.Surface, e.Thread, e.Direct = wire.Direct, "", "direct_x" },
		"`ts` is not":           func(e *wire.Envelope) { e.TS = 0 },
		"`body.result` is not":  func(e *wire.Envelope) { e.Content = &wire.TraceBody{State: wire.Working, Result: []byte(`[1]`)} },
	} {
		changed := *e
		change(&changed)
		c.ErrorContains(changed.CheckOutgoing(false), fragment)
	}
	e.Work, e.To = "job", "tug.s02"
	c.NoError(e.CheckOutgoing(true)) // its opener named it so
}
