package message_test

import (
	"math"
	"testing"
	"time"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/value"
)

// The samples of the seed.
const (
	seedCallRow = `{"role":"assistant","content":"AI ACTION (Turn 1): Executing Wiki Upsert","metadata":` +
		`{"type":"tool_call","tool_name":"wiki_upsert","parameters":{"title":"Example"},"turn":1}}`
	seedCall = `{"schema":"agents-api.message","version":1,"type":"tool_call","role":"assistant",` +
		`"content":"AI ACTION (Turn 1): Executing Wiki Upsert",` +
		`"payload":{"tool_name":"wiki_upsert","parameters":{"title":"Example"},"turn":1},` +
		`"metadata":{"type":"tool_call","tool_name":"wiki_upsert","parameters":{"title":"Example"},"turn":1}}`
	seedEnvelope = `{"schema":"agents-api.message","version":1,"type":"text","role":"assistant",` +
		`"content":"Message text or provider-neutral content blocks","payload":[],"metadata":[],` +
		`"id":"stable-message-id","created_at":"2026-04-28 12:00:00","updated_at":"2026-04-28 12:00:00"}`
)

func TestSeedShape(t *testing.T) {
	t.Parallel()
	text := envelope("text", "user", `"x"`, `{}`, `{}`)
	holds(t, "seed-004#4: another schema is rewritten", `{"schema":"mine","version":1,"type":"text","role":"user","content":"x"}`, text)
	holds(t, "seed-004#4: a missing schema is supplied", `{"role":"user","content":"x"}`, text)
	holds(t, "seed-004#5: a version in text is rewritten", `{"schema":"s","version":"1.9","type":"text","role":"user","content":"x"}`, text)
	holds(t, "seed-004#5: a missing version is supplied", `{"role":"user","content":"x"}`, text)
	for row, typ := range map[string]string{
		`{}`: "text", `{"metadata":{"type":"heartbeat"}}`: "text", `{"metadata":{"type":"Text"}}`: "text", `{"content":[]}`: "multimodal_part",
		`{"metadata":{"error":1}}`: "error", `{"metadata":{"type":"heartbeat","error":1}}`: "error", `{"metadata":{"type":"multimodal"}}`: "multimodal_part",
	} {
		spec.Check(t, "seed-004#6: of "+row, func(t *spec.T) {
			t.Equal(object(t, normalized(row)).At("type"), any(typ))
		})
	}
	holds(t, "seed-004#7: a missing role is supplied", `{"content":"x"}`, envelope("text", "assistant", `"x"`, `{}`, `{}`))
	holds(t, "seed-004#7: never empty", `{"role":"","content":"x"}`, refusedRole)
	holds(t, "seed-004#7: never anything else", `{"role":1,"content":"x"}`, refusedRole)
	holds(t, "seed-004#8: content may be a string", `{"role":"user","content":"a\u0000 é\n"}`, envelope("text", "user", `"a\u0000 é\n"`, `{}`, `{}`))
	holds(t, "seed-004#9: content may be provider-neutral content blocks (a list)", `{"version":1,"type":"text","role":"user","content":[{"type":"text","text":"hi"},{"z":1.0,"a":[]}],"payload":{}}`,
		envelope("text", "user", `[{"type":"text","text":"hi"},{"z":1.0,"a":[]}]`, `{}`, `{}`))
	holds(t, "seed-004#10: an empty payload is present", `{"role":"user","content":"x"}`, text)
	holds(t, "seed-004#10: an empty array is read", `{"version":1,"type":"text","role":"user","content":"x","payload":[]}`, text)
	holds(t, "seed-004#10: a payload is kept", `{"version":1,"type":"text","role":"user","content":"x","payload":{"k":[]}}`, envelope("text", "user", `"x"`, `{"k":[]}`, `{}`))
	holds(t, "seed-004#11: empty metadata is present", `{"role":"user","content":"x"}`, text)
	holds(t, "seed-004#11: an empty array is read", `{"role":"user","content":"x","metadata":[]}`, text)
	holds(t, "seed-004#11: metadata is kept", `{"role":"user","content":"x","metadata":{"k":{}}}`, envelope("text", "user", `"x"`, `{}`, `{"k":{}}`))
	for name, v := range map[string]any{"NaN": math.NaN(), "text that is no UTF-8": "\xe9", "a function": func() {}} {
		for _, field := range []string{"payload", "metadata"} {
			spec.Check(t, "seed-004#12: "+name+" in "+field, func(t *spec.T) {
				_, err := message.Normalize(map[string]any{"version": 1, "type": "delta", "data": nil, field: map[string]any{"k": v}})
				t.Equal(err.Error(), refusedSerializable)
			})
		}
	}
	full := `{"schema":"agents-api.message","version":1,"type":"text","role":"user","content":"x","payload":{},"metadata":{},"id":"i","created_at":"2026-04-28 12:00:00","updated_at":"someday"}`
	holds(t, "seed-004#13: of a plain row", `{"id":"i","updated_at":"someday","created_at":"2026-04-28 12:00:00","role":"user","content":"x"}`, full)
	holds(t, "seed-004#13: of an envelope", full, full)
	holds(t, "seed-004#14: created_at, when present, is preserved verbatim", full, full)
	holds(t, "seed-004#15: updated_at, when present, is preserved verbatim", full, full)
	spec.Check(t, "seed-004#16: our own dates are UTC, to the second", func(t *spec.T) {
		paris := time.FixedZone("CET", 3600)
		t.Equal(message.FormatTime(time.Date(2026, 4, 28, 13, 2, 3, 999, paris)), "2026-04-28 12:02:03")
	})
	holds(t, "seed-004#17: id and dates are never invented", `{"role":"user","content":"x"}`, text)

	for n, typ := range map[string]string{
		"18": "text", "19": "tool_call", "20": "tool_result", "21": "input_required", "22": "approval_required",
		"23": "final_result", "24": "error", "25": "delta", "26": "multimodal_part",
	} {
		holds(t, "seed-004#"+n+": in an envelope", `{"schema":"s","version":1,"type":"`+typ+`","role":"user","content":"x","payload":{"k":1}}`,
			envelope(typ, "user", `"x"`, `{"k":1}`, `{}`))
		holds(t, "seed-004#"+n+": in a plain row", `{"role":"user","content":"x","metadata":{"type":"`+typ+`"}}`,
			envelope(typ, "user", `"x"`, `{}`, `{"type":"`+typ+`"}`))
	}
	for _, typ := range []string{"telemetry", "Text", "multimodal", ""} {
		holds(t, "seed-004#27: refused type "+typ, `{"schema":"s","version":1,"type":"`+typ+`","role":"user","content":"x"}`, refusedType)
	}
}

func TestSeedReading(t *testing.T) {
	t.Parallel()
	spec.Check(t, "seed-004#28: a call and its result are paired by the payload's tool_name", func(t *spec.T) {
		orphans, err := message.Orphans(decoded(t, `[
			{"version":1,"type":"tool_call","payload":{"tool_name":"a"},"metadata":{"tool_name":"x"}},
			{"version":1,"type":"tool_result","payload":{"tool_name":"a"},"metadata":{"tool_name":"y"}}]`))
		t.NoError(err)
		t.Equal(orphans, []message.Orphan{})
	})
	spec.Check(t, "seed-004#28: metadata alone does not name a tool", func(t *spec.T) {
		e, err := message.NormalizeJSON([]byte(`{"version":1,"type":"tool_call","payload":{"tool_name":"a"},"metadata":{"tool_name":"x"}}`))
		t.NoError(err)
		t.Equal(e.ToolName(), "a")
		e, err = message.NormalizeJSON([]byte(`{"version":1,"type":"tool_call","payload":{},"metadata":{"tool_name":"x"}}`))
		t.NoError(err)
		t.Equal(e.ToolName(), "")
	})
	extension := `{"vendor":{"signature":"sig","n":9007199254740993,"f":1.0},"empty":{},"list":[],"null":null,"tool_name":"t"}`
	holds(t, "seed-004#29: of a plain row", `{"role":"user","content":"x","metadata":`+extension+`}`, envelope("text", "user", `"x"`, `{}`, extension))
	holds(t, "seed-004#29: of an envelope", `{"version":1,"type":"delta","role":"user","content":"x","payload":{},"metadata":`+extension+`}`,
		envelope("delta", "user", `"x"`, `{}`, extension))
	holds(t, "seed-004#30: normalize accepts a plain role/content/metadata row", `{"role":"user","content":"x","metadata":{"k":1}}`, envelope("text", "user", `"x"`, `{}`, `{"k":1}`))
	spec.Check(t, "seed-004#31: normalize accepts a versioned envelope and returns it equal", func(t *spec.T) {
		t.True(value.Equal(decoded(t, normalized(seedEnvelope)), decoded(t, seedEnvelope)), "the seed's sample comes back equal")
	})
	holds(t, "seed-004#31: the second time to the letter", seedCall, seedCall)
	holds(t, "seed-004#32: type fields under data come back under payload", `{"schema":"agents-api.message","version":1,"type":"delta","role":"user","content":"x","data":{"index":4},"metadata":{}}`,
		envelope("delta", "user", `"x"`, `{"index":4}`, `{}`))
	for _, row := range []string{
		`{"version":1,"type":"delta","data":{"a":1}}`, `{"version":1,"type":"delta","data":{"a":1},"payload":{"b":1}}`, `{"data":{"a":1}}`, `{"version":1,"type":"delta","data":5}`,
	} {
		spec.Check(t, "seed-004#33: no data key from "+row, func(t *spec.T) {
			out := object(t, normalized(row))
			t.False(out.Has("data"), "data is a key of the output")
			t.Equal(out.Keys(), []string{"schema", "version", "type", "role", "content", "payload", "metadata"})
		})
	}
	holds(t, "seed-004#34: when both are given, a non-empty payload wins over data", `{"version":1,"type":"delta","role":"user","content":"x","data":{"a":1},"payload":{"b":2}}`,
		envelope("delta", "user", `"x"`, `{"b":2}`, `{}`))
	holds(t, "seed-004#35: a row without metadata gets an empty one", `{"role":"user","content":"x"}`, envelope("text", "user", `"x"`, `{}`, `{}`))

	projects(t, "seed-004#37: one envelope becomes role, content and metadata", `{"version":1,"type":"final_result","role":"user","content":"x","payload":{"s":1},"metadata":{"k":2}}`,
		`{"role":"user","content":"x","metadata":{"k":2,"type":"final_result","s":1}}`)
	spec.Check(t, "seed-004#38: to_provider_messages does so for a list, in order", func(t *spec.T) {
		projected, err := message.ToProviderAll(decoded(t, `[{"role":"system","content":"s"},{"role":"user","content":"u"},`+seedCallRow+`]`))
		t.NoError(err)
		var out []string
		for _, p := range projected {
			out = append(out, written(p, nil))
		}
		t.Equal(out, []string{`{"role":"system","content":"s"}`, `{"role":"user","content":"u"}`, seedCallRow})
	})
	projects(t, "seed-004#39: provider metadata has the envelope's type", `{"version":1,"type":"delta","role":"user","content":"x","payload":{}}`, `{"role":"user","content":"x","metadata":{"type":"delta"}}`)
	projects(t, "seed-004#40: the projection puts the payload's members into provider metadata", `{"version":1,"type":"delta","role":"user","content":"x","payload":{"a":1,"b":{"c":[]}}}`,
		`{"role":"user","content":"x","metadata":{"type":"delta","a":1,"b":{"c":[]}}}`)
	projects(t, "seed-004#41: the projection drops schema and version", seedEnvelope, `{"role":"assistant","content":"Message text or provider-neutral content blocks"}`)

	spec.Check(t, "seed-004#42: a plain tool-call row becomes a tool_call", func(t *spec.T) {
		e, err := message.NormalizeJSON([]byte(seedCallRow))
		t.NoError(err)
		t.Equal(e.Type, message.TypeToolCall)
	})
	spec.Check(t, "seed-004#43: that row's role and content stay as they were", func(t *spec.T) {
		e, err := message.NormalizeJSON([]byte(seedCallRow))
		t.NoError(err)
		t.Equal(e.Role, "assistant")
		t.Equal(e.Content, any("AI ACTION (Turn 1): Executing Wiki Upsert"))
	})
	spec.Check(t, "seed-004#44: its payload is tool_name, parameters and turn", func(t *spec.T) {
		e, err := message.NormalizeJSON([]byte(seedCallRow))
		t.NoError(err)
		t.Equal(written(e.Payload, nil), `{"tool_name":"wiki_upsert","parameters":{"title":"Example"},"turn":1}`)
	})
	spec.Check(t, "seed-004#45: that row's metadata keeps all four of its keys, type included", func(t *spec.T) {
		e, err := message.NormalizeJSON([]byte(seedCallRow))
		t.NoError(err)
		t.Equal(written(e.Metadata, nil), `{"type":"tool_call","tool_name":"wiki_upsert","parameters":{"title":"Example"},"turn":1}`)
	})
	spec.Check(t, "seed-004#46: projecting it gives back the row", func(t *spec.T) {
		t.Equal(normalized(seedCallRow), seedCall)
		t.Equal(provided(seedCall), seedCallRow)
	})
	projects(t, "seed-004#47: provider metadata has both payload and metadata", `{"version":1,"type":"tool_call","role":"assistant","content":"x","payload":{"tool_name":"t","turn":1},"metadata":{"vendor":{"sig":"s"}},"id":"i"}`,
		`{"role":"assistant","content":"x","metadata":{"vendor":{"sig":"s"},"type":"tool_call","tool_name":"t","turn":1}}`)
}
