package wire_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/envelope"
)

// strictly returns why an envelope is rejected in strict mode.
func strictly(data []byte) wire.Reason { return reason(data, wire.Options{Now: now, Strict: true}) }

func TestSeedMembers(t *testing.T) {
	t.Parallel()
	spec.Check(t, "seed-001#1 seed-001#87: one JSON object, whatever else", func(t *spec.T) {
		rejects(t, wire.Malformed, []byte(`[]`), []byte(`"x"`), []byte(`5`), []byte(`true`), []byte(`null`), append([]byte(`[`), append(with(say), ']')...),
			[]byte(`{"kind":"direct","interaction_id":1,`))
	})
	spec.Check(t, "seed-001#2: invalid UTF-8 is malformed", func(t *spec.T) {
		rejects(t, wire.Malformed, []byte(strings.Replace(string(say), "Berth", "\xc3", 1)), []byte(strings.Replace(string(say), "ws_harbor", "\xff\xfe", 1)))
	})
	for i, name := range []string{"protocol", "id", "workspace_id", "kind", "channel", "from", "ts", "body"} {
		spec.Check(t, fmt.Sprintf("seed-001#%d: an envelope without %s is rejected", 3+i, name), func(t *spec.T) {
			for _, data := range kinds() {
				t.True(strictly(with(data, name, "")) != "", "%s without %s is rejected", data, name)
			}
		})
	}
	for i, kind := range []wire.Kind{wire.Say, wire.Capability, wire.Receipt, wire.Trace} {
		spec.Check(t, fmt.Sprintf("seed-001#%d: a %s without surface is rejected", 11+i, kind), func(t *spec.T) {
			data := kinds()[kind]
			rejects(t, wire.InvalidSurface, with(data, "surface", ""), with(data, "surface", "", "thread_id", ""))
		})
	}
	spec.Check(t, "seed-001#17: protocol is exactly agh-network/v0", func(t *spec.T) {
		for _, bad := range []string{"agh-network/v1", "AGH-Network/v0", "", "agh-network/v0 "} {
			rejects(t, wire.Malformed, with(say, "protocol", quoted(bad)))
		}
	})
	spec.Check(t, "seed-001#18: id is a string that is not empty", func(t *spec.T) {
		rejects(t, wire.Malformed, with(say, "id", `""`), with(say, "id", "null"), with(say, "id", "5"), with(say, "id", "{}"))
	})
	spec.Check(t, "seed-001#18: an id that the log could not keep is refused, though the schema takes it", func(t *spec.T) {
		fits := envelope.MaxField - len("crane.s01/")
		accepts(t, with(say, "id", quoted(repeat("i", fits))))
		long := with(say, "id", quoted(repeat("i", fits+1)))
		t.Equal(reason(long, wire.Options{Now: now}), wire.Malformed)
		t.Equal(reason(long, wire.Options{Now: now, Strict: true, Storable: true}), wire.Malformed)
		t.Equal(reason(long, wire.Options{Now: now, Strict: true}), wire.Reason(""))
	})
	spec.Check(t, "seed-001#22: workspace_id is a string that is not empty", func(t *spec.T) {
		rejects(t, wire.Malformed, with(say, "workspace_id", `""`), with(say, "workspace_id", "5"), with(say, "workspace_id", "[]"))
	})
	spec.Check(t, "seed-001#26 seed-001#27: kinds that are none", func(t *spec.T) {
		rejects(t, wire.UnsupportedKind, with(say, "kind", `"direct"`), with(say, "kind", `"SAY"`), with(say, "kind", `"Greet"`), with(say, "kind", `"ask"`))
		rejects(t, wire.Malformed, with(say, "kind", "5"), with(say, "kind", `["say"]`))
	})
	spec.Check(t, "seed-001#28: channel has 1 to 64 characters", func(t *spec.T) {
		accepts(t, with(say, "channel", `"a"`), with(say, "channel", quoted(repeat("a", 64))))
		rejects(t, wire.Malformed, with(say, "channel", `""`), with(say, "channel", quoted(repeat("a", 65))))
	})
	spec.Check(t, "seed-001#29: channel has no upper case, dot, space or leading sign", func(t *spec.T) {
		for _, bad := range []string{"Dock", "a.b", "a b", "-a", "_a"} {
			rejects(t, wire.Malformed, with(say, "channel", quoted(bad)))
		}
	})
	spec.Check(t, "seed-001#31: a null surface on a conversation kind counts as missing", func(t *spec.T) {
		for _, data := range [][]byte{say, capability, receipt, trace} {
			rejects(t, wire.InvalidSurface, with(data, "surface", "null"))
		}
	})
	spec.Check(t, "seed-001#32: greet and whois take no surface", func(t *spec.T) {
		for _, data := range [][]byte{greet, whois} {
			rejects(t, wire.InvalidSurface, with(data, "surface", `"thread"`), with(data, "surface", `"direct"`), with(data, "surface", `""`))
		}
	})
	spec.Check(t, "seed-001#33 seed-001#36: a surface without its container", func(t *spec.T) {
		rejects(t, wire.InvalidSurface, with(say, "thread_id", ""), with(say, "surface", `"direct"`, "thread_id", ""))
	})
	spec.Check(t, "seed-001#34 seed-001#37: a container without its surface", func(t *spec.T) {
		rejects(t, wire.InvalidSurface, with(say, "surface", `"direct"`), with(say, "surface", ""),
			with(say, "thread_id", "", "direct_id", room), with(say, "surface", "", "thread_id", "", "direct_id", room))
	})
	spec.Check(t, "seed-001#35: thread_id is any string that is not empty", func(t *spec.T) {
		rejects(t, wire.Malformed, with(say, "thread_id", `""`))
		for _, id := range []string{`"x"`, `"Any Text"`, `"été/2"`, quoted(repeat("a", 300))} {
			t.Equal(strictly(with(say, "thread_id", id)), wire.Reason(""))
		}
	})
	spec.Check(t, "seed-001#38: direct_id has its prefix and 32 lower-case hex digits", func(t *spec.T) {
		direct := with(say, "surface", `"direct"`, "thread_id", "")
		accepts(t, with(direct, "direct_id", quoted("direct_"+repeat("0a", 16))))
		for _, bad := range []string{"direct_" + repeat("0A", 16), "direct_" + repeat("0", 31), "direct_" + repeat("0", 33), "thread_" + repeat("0", 32)} {
			rejects(t, wire.Malformed, with(direct, "direct_id", quoted(bad)))
		}
	})
	spec.Check(t, "seed-001#39: from has 1 to 128 characters", func(t *spec.T) {
		accepts(t, with(say, "from", `"a"`), with(say, "from", quoted(repeat("a", 128))))
		rejects(t, wire.Malformed, with(say, "from", `""`), with(say, "from", quoted(repeat("a", 129))))
	})
	spec.Check(t, "seed-001#40: from has no upper case, at sign, space or leading sign", func(t *spec.T) {
		for _, bad := range []string{"Crane", "a@b", "a b", ".a", "_a", "-a"} {
			rejects(t, wire.Malformed, with(say, "from", quoted(bad)))
		}
	})
	spec.Check(t, "seed-001#42: to is a peer id or null", func(t *spec.T) {
		accepts(t, with(say, "to", `"tug.s02"`), with(say, "to", "null"))
		rejects(t, wire.Malformed, with(say, "to", `""`), with(say, "to", `"Bad Peer"`), with(say, "to", "5"))
	})
	spec.Check(t, "seed-001#45 seed-001#46: receipts and traces are about work", func(t *spec.T) {
		rejects(t, wire.Malformed, with(receipt, "work_id", ""), with(trace, "work_id", ""))
	})
	spec.Check(t, "seed-001#47 seed-001#48: work is optional in what is said", func(t *spec.T) {
		accepts(t, say, with(say, "work_id", `"work_1"`), capability, with(capability, "work_id", `"work_1"`))
	})
	spec.Check(t, "seed-001#49: greet and whois take no work_id", func(t *spec.T) {
		rejects(t, wire.Malformed, with(greet, "work_id", `"work_1"`), with(whois, "work_id", `"work_1"`))
	})
	spec.Check(t, "seed-001#50: work_id has its prefix and 1 to 64 characters", func(t *spec.T) {
		accepts(t, with(say, "work_id", quoted("work_"+repeat("a", 64))), with(say, "work_id", `"work_Az0-_"`))
		for _, bad := range []string{"work_", "work_" + repeat("a", 65), "job_1", "work_a.b"} {
			rejects(t, wire.Malformed, with(say, "work_id", quoted(bad)))
		}
	})
	spec.Check(t, "seed-001#51 seed-001#52: reply_to of whois", func(t *spec.T) {
		rejects(t, wire.Malformed, with(answer, "reply_to", ""))
		accepts(t, answer, whois)
	})
	spec.Check(t, "seed-001#53: optional elsewhere, and unchanged", func(t *spec.T) {
		for _, data := range [][]byte{say, capability, receipt, trace} {
			e, err := wire.Decode(with(data, "reply_to", `"m-0"`), lax)
			t.NoError(err)
			t.Equal(e.ReplyTo, "m-0")
			out, err := e.AppendJSON(nil)
			t.NoError(err)
			t.Contains(string(out), `"reply_to":"m-0"`)
			accepts(t, data)
		}
	})
	spec.Check(t, "seed-001#54: reply_to is a string that is not empty", func(t *spec.T) {
		for _, bad := range []string{`""`, "null", "5", "[]"} {
			t.Equal(strictly(with(say, "reply_to", bad)), wire.Malformed)
		}
	})
	spec.Check(t, "seed-001#56 seed-001#58: other references", func(t *spec.T) {
		for _, name := range []string{"trace_id", "causation_id"} {
			rejects(t, wire.Malformed, with(say, name, `""`), with(say, name, "5"), with(say, name, "{}"))
			accepts(t, with(say, name, `"x"`))
		}
	})
	spec.Check(t, "seed-001#59: ts is an integer, 0 or more", func(t *spec.T) {
		for _, bad := range []string{`"1776366000"`, "1776366000.5", "-1", "null"} {
			rejects(t, wire.Malformed, with(say, "ts", bad))
		}
	})
	spec.Check(t, "seed-001#60: a ts of 0 is judged by freshness alone", func(t *spec.T) {
		rejects(t, wire.Expired, with(say, "ts", "0"))
		for _, strict := range []bool{false, true} {
			t.Equal(reason(with(say, "ts", "0"), wire.Options{Now: 300, Strict: strict}), wire.Reason(""))
		}
		accepts(t, with(say, "ts", "0", "expires_at", "1776366001"))
	})
	spec.Check(t, "seed-001#62: expires_at is absent or an integer, 0 or more", func(t *spec.T) {
		accepts(t, with(say, "expires_at", "1776366001"), say)
		for _, bad := range []string{`"1776366300"`, "1776366300.5", "-1", "null"} {
			t.Equal(strictly(with(say, "expires_at", bad)), wire.Malformed)
		}
	})
	spec.Check(t, "seed-001#64: body is an object", func(t *spec.T) {
		rejects(t, wire.Malformed, with(say, "body", "null"), with(say, "body", "[]"), with(say, "body", `"x"`), with(say, "body", "5"))
	})
	spec.Check(t, "seed-001#65: body has the shape of its kind", func(t *spec.T) {
		for kind, data := range kinds() {
			t.True(strictly(with(data, "body", `{"other":1}`)) == wire.Malformed, "%s with a body of another shape", kind)
		}
	})
	spec.Check(t, "seed-001#68: ext is absent or an object", func(t *spec.T) {
		for _, bad := range []string{"[]", `"x"`, "null"} {
			t.Equal(strictly(with(say, "ext", bad)), wire.Malformed)
		}
		accepts(t, with(say, "ext", "{}"))
	})
	spec.Check(t, "seed-001#69: unknown keys change nothing in how it is read", func(t *spec.T) {
		for _, data := range kinds() {
			plain, err := wire.Decode(data, lax)
			t.NoError(err)
			e, err := wire.Decode(with(data, "ext", `{"acme.x":{"deep":[1]},"y":null}`), lax)
			t.NoError(err)
			e.Ext = nil
			t.Equal(e, plain)
		}
	})
	spec.Check(t, "seed-001#76: thread_id and direct_id together are rejected", func(t *spec.T) {
		for _, surface := range []string{`"thread"`, `"direct"`, "", "null"} {
			rejects(t, wire.InvalidSurface, with(say, "surface", surface, "direct_id", room))
		}
	})
	spec.Check(t, "seed-001#84 seed-001#85: discovery belongs to no conversation", func(t *spec.T) {
		for _, data := range [][]byte{greet, whois} {
			for _, c := range [][2]string{{"surface", `"thread"`}, {"thread_id", `"thread_x"`}, {"direct_id", room}, {"work_id", `"work_1"`}} {
				t.True(strictly(with(data, c[0], c[1])) != "", "%s with %s is rejected", data, c[0])
			}
		}
	})
	spec.Check(t, "seed-001#86: greet and whois are written without the four members", func(t *spec.T) {
		for _, data := range [][]byte{greet, whois, answer} {
			e, err := wire.Decode(data, lax)
			t.NoError(err)
			out, err := e.AppendJSON(nil)
			t.NoError(err)
			for _, name := range []string{"surface", "thread_id", "direct_id", "work_id"} {
				t.False(strings.Contains(string(out), `"`+name+`"`), "%s is written", name)
			}
		}
	})
	spec.Check(t, "seed-001#90: surface and ids are checked before the body", func(t *spec.T) {
		rejects(t, wire.InvalidSurface, with(say, "surface", "", "body", `{}`), with(say, "thread_id", "", "body", `{"text":""}`))
		_, err := wire.Decode(with(say, "work_id", `"job"`, "body", `{}`), lax)
		t.Equal(rejected(err).Member, "work_id")
	})
	spec.Check(t, "seed-001#91: the body is judged wherever it goes", func(t *spec.T) {
		rejects(t, wire.Malformed, with(say, "to", `"nobody.here"`, "body", `{}`))
	})
	spec.Check(t, "seed-001#137: ours have a prefix and a dot", func(t *spec.T) {
		var card wire.PeerCard
		t.NoError(card.Offer([]wire.CapabilityDoc{{ID: "a", Summary: "s", Outcome: "o"}}))
		catalog, err := wire.AppendCatalogExt(nil, nil)
		t.NoError(err)
		for _, ext := range [][]byte{card.Ext, catalog} {
			t.True(strings.HasPrefix(string(ext), `{"agh.`), "%s", ext)
		}
	})
	spec.Check(t, "seed-001#138: an extension key needs no namespace", func(t *spec.T) { accepts(t, with(say, "ext", `{"priority":"high"}`)) })
	spec.Check(t, "seed-001#139: whatever is emitted is valid without ext", func(t *spec.T) {
		for _, data := range kinds() {
			e, err := wire.Decode(with(data, "ext", `{"agh.workflow_id":"w"}`), lax)
			t.NoError(err)
			out, err := e.AppendJSON(nil)
			t.NoError(err)
			bare, err := wire.Decode(with(out, "ext", ""), lax)
			t.NoError(err)
			e.Ext = nil
			t.Equal(bare, e)
		}
	})
	spec.Check(t, "seed-001#141: the smallest envelope is accepted", func(t *spec.T) { accepts(t, say) })
}

func TestSeedSamples(t *testing.T) {
	t.Parallel()
	thread, direct := read(t, "seed-thread.json"), read(t, "seed-direct.json")
	at := func(data []byte, seconds int64) wire.Reason {
		return reason(data, wire.Options{Now: seconds, Strict: true})
	}
	const sent, end = 1776366000, 1776366300
	spec.Check(t, "seed-001#104: the thread sample is accepted before its expires_at", func(t *spec.T) {
		for _, seconds := range []int64{sent - 300, sent, end - 1} {
			t.Equal(at(thread, seconds), wire.Reason(""))
		}
	})
	spec.Check(t, "seed-001#105: the thread sample is expired from its expires_at on", func(t *spec.T) {
		for _, seconds := range []int64{end, end + 1, end + 100_000} {
			t.Equal(at(thread, seconds), wire.Expired)
		}
	})
	spec.Check(t, "seed-001#112: as read and as written", func(t *spec.T) {
		e, err := wire.Decode(thread, wire.Options{Now: sent})
		t.NoError(err)
		say := e.Content.(*wire.SayBody)
		t.Equal([]string{say.Text, say.Intent}, []string{"Run the migration smoke test against the staging branch and report blockers.", "request"})
		t.Contains(string(say.Artifacts), `"repo": "github.com/acme/app"`)
		out, err := e.AppendJSON(nil)
		t.NoError(err)
		t.Contains(string(out), string(e.Body))
	})
	spec.Check(t, "seed-001#113: the sample's unknown ext key is kept", func(t *spec.T) {
		e, err := wire.Decode(thread, wire.Options{Now: sent})
		t.NoError(err)
		t.Contains(string(e.Ext), `"acme.priority": "high"`)
	})
	for _, c := range []struct {
		n       string
		changes []string
		want    wire.Reason
	}{
		{"115: without thread_id", []string{"thread_id", ""}, wire.InvalidSurface},
		{"116: with a direct_id too", []string{"direct_id", room}, wire.InvalidSurface},
		{"117: on the direct surface", []string{"surface", `"direct"`}, wire.InvalidSurface},
		{"118: without surface", []string{"surface", ""}, wire.InvalidSurface},
		{"119: as a greet", []string{"kind", `"greet"`}, wire.InvalidSurface},
		{"120: of the retired kind direct", []string{"kind", `"direct"`}, wire.UnsupportedKind},
		{"121: of another protocol version", []string{"protocol", `"agh-network/v1"`}, wire.Malformed},
		{"122: an upper-case channel", []string{"channel", `"Builders"`}, wire.Malformed},
		{"123: an at sign", []string{"from", `"ops@session-42"`}, wire.Malformed},
		{"123: an upper-case letter", []string{"from", `"Ops.session-42"`}, wire.Malformed},
		{"124: ts as text", []string{"ts", `"1776366000"`}, wire.Malformed},
		{"125: body as text", []string{"body", `"text"`}, wire.Malformed},
		{"126: text removed", []string{"body", `{"intent":"request"}`}, wire.Malformed},
		{"126: text blank", []string{"body", `{"text":"  "}`}, wire.Malformed},
		{"127: proof as text", []string{"proof", `"none"`}, wire.Malformed},
		{"128: ext as a list", []string{"ext", `["acme"]`}, wire.Malformed},
		{"129: a work_id of another prefix", []string{"work_id", `"job_17"`}, wire.Malformed},
		{"130: an unknown member", []string{"priority", `"high"`}, wire.Malformed},
		{"131: as a receipt", []string{"kind", `"receipt"`}, wire.Malformed},
	} {
		spec.Check(t, "seed-001#"+c.n, func(t *spec.T) {
			t.Equal(at(thread, sent), wire.Reason(""))
			t.Equal(at(with(thread, c.changes...), sent), c.want)
			if strings.HasPrefix(c.n, "131:") {
				_, err := wire.Decode(with(thread, c.changes...), wire.Options{Now: sent})
				t.True(strings.HasPrefix(rejected(err).Member, "body."), "it is the body's fault: %v", err)
			}
		})
	}
	spec.Check(t, "seed-001#132: the direct sample is fresh for 300 seconds", func(t *spec.T) {
		for seconds, want := range map[int64]wire.Reason{1776366260: "", 1776366560: "", 1776366561: wire.Expired} {
			t.Equal(at(direct, seconds), want)
		}
	})
	spec.Check(t, "seed-001#134: the direct sample is a say too and differs in surface and container", func(t *spec.T) {
		a, err := wire.Decode(thread, wire.Options{Now: sent})
		t.NoError(err)
		b, err := wire.Decode(direct, wire.Options{Now: sent + 260})
		t.NoError(err)
		t.Equal([]any{b.Kind, b.From, b.To, b.Channel, b.Workspace, b.Trace}, []any{wire.Say, a.From, a.To, a.Channel, a.Workspace, a.Trace})
		t.Equal([]any{a.Surface, a.Direct, b.Surface, b.Thread}, []any{wire.Thread, "", wire.Direct, ""})
	})
	spec.Check(t, "seed-001#135: the direct sample without its direct_id, or with a wrong one, is rejected", func(t *spec.T) {
		t.Equal(at(with(direct, "direct_id", ""), 1776366260), wire.InvalidSurface)
		t.Equal(at(with(direct, "direct_id", `"direct_99401D24BEE62651D189E5A561785466"`), 1776366260), wire.Malformed)
		t.Equal(at(with(direct, "direct_id", `"direct_99401d24bee62651"`), 1776366260), wire.Malformed)
	})
	spec.Check(t, "seed-001#136: the direct sample on a thread surface is rejected", func(t *spec.T) { t.Equal(at(with(direct, "surface", `"thread"`), 1776366260), wire.InvalidSurface) })
}
