package message_test

import (
	"math"
	"strings"
	"testing"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/message"
)

// Statements 1–36 of agent-message: shape, path, type, payload.
func TestNormalizeStatements(t *testing.T) {
	t.Parallel()
	text := func(role, content string) string { return envelope("text", role, content, `{}`, `{}`) }

	holds(t, "agent-message#1: an empty object is an empty assistant text", `{}`, text("assistant", `""`))
	holds(t, "agent-message#2: exactly seven keys",
		`{"role":"user","content":"x","name":"n","tool_calls":[]}`, text("user", `"x"`))
	holds(t, "agent-message#2: id and dates when non-empty strings",
		`{"role":"user","content":"x","updated_at":"u","created_at":"c","id":"i"}`,
		`{"schema":"agents-api.message","version":1,"type":"text","role":"user","content":"x","payload":{},"metadata":{},"id":"i","created_at":"c","updated_at":"u"}`)
	for _, v := range []string{`""`, `41`, `null`, `true`, `["i"]`, `{"i":1}`} {
		holds(t, "agent-message#2: no "+v+" as id or date",
			`{"role":"user","content":"x","id":`+v+`,"created_at":`+v+`,"updated_at":`+v+`}`, text("user", `"x"`))
	}
	for _, schema := range []string{`"other.message"`, `0`, `false`, `[]`, `""`} {
		holds(t, "agent-message#3: schema "+schema,
			`{"schema":`+schema+`,"version":1,"type":"delta","role":"user","content":"x"}`,
			envelope("delta", "user", `"x"`, `{}`, `{}`))
	}
	holds(t, "agent-message#4: from a string", `{"schema":"s","version":"1","type":"text","role":"user","content":"v"}`, text("user", `"v"`))
	holds(t, "agent-message#4: from a row without one", `{"role":"user","content":"v"}`, text("user", `"v"`))
	holds(t, "agent-message#4: from a row with another", `{"version":99,"role":"user","content":"v"}`, text("user", `"v"`))

	for _, version := range []string{`"1abc"`, `" 1"`, `"1.9"`, `"+1"`, `"01"`, `"1e0"`, `"10e-1"`, `1`, `"\t\n\r\u000b\f1"`, `".1e1"`, `"1."`, `"1e"`, `"1.e0"`} {
		holds(t, "agent-message#5: accepted version "+version, `{"version":`+version+`,"type":"text","role":"user","content":"v","payload":{}}`, text("user", `"v"`))
	}
	for _, version := range []string{
		`1.0`, `true`, `[1]`, `""`, `0`, `2`, `-1`, `1e0`, `"v1"`, `"0x1"`, `"2"`, `"-1"`, `false`, `{"major":1}`,
		`"."`, `"+"`, `"e1"`, `"0.9"`, `"\u00001"`, `18446744073709551617`, `"\u00a01"`, `"1e1"`,
	} {
		holds(t, "agent-message#6: refused version "+version, `{"version":`+version+`,"type":"text","role":"user","content":"v","payload":{}}`, refusedVersion)
	}
	holds(t, "agent-message#7: version:null gives plain path, no error", `{"schema":"s","version":null,"type":"delta","role":"user","content":"x","payload":{"i":1}}`, text("user", `"x"`))
	holds(t, "agent-message#8: type:null gives plain path", `{"schema":"s","version":1,"type":null,"role":"user","content":"x","payload":{"i":1}}`, text("user", `"x"`))
	holds(t, "agent-message#9: envelope without version loses top-level type and payload", `{"schema":"agents-api.message","type":"tool_call","role":"assistant","content":"x","payload":{"tool_name":"t"}}`, text("assistant", `"x"`))
	holds(t, "agent-message#10: version+type without schema/payload/data gives plain", `{"version":1,"type":"error","role":"assistant","content":"x"}`, text("assistant", `"x"`))
	holds(t, "agent-message#10: whatever the version", `{"version":99,"type":"error","role":"assistant","content":"x"}`, text("assistant", `"x"`))
	holds(t, "agent-message#10: schema null is none", `{"schema":null,"version":1,"type":"error","content":"x"}`, text("assistant", `"x"`))
	holds(t, "agent-message#11: payload:null qualifies as envelope marker", `{"version":1,"type":"delta","content":"x","payload":null}`, envelope("delta", "assistant", `"x"`, `{}`, `{}`))
	holds(t, "agent-message#12: data null qualifies as an envelope marker too", `{"version":1,"type":"delta","content":"x","data":null}`, envelope("delta", "assistant", `"x"`, `{}`, `{}`))
	holds(t, "agent-message#13: envelope type:'multimodal' gives unsupported type", `{"version":1,"type":"multimodal","role":"user","content":"x","payload":{}}`, refusedType)
	for _, typ := range []string{`"TEXT"`, `" text"`, `""`, `3`, `"text "`, `true`, `["text"]`} {
		holds(t, "agent-message#14: refused type "+typ, `{"version":1,"type":`+typ+`,"role":"user","content":"x","payload":{}}`, refusedType)
	}
	for _, typ := range []string{`"heartbeat"`, `"ERROR"`, `" error "`, `["error"]`, `7`} {
		holds(t, "agent-message#15: metadata with unknown type "+typ, `{"role":"user","content":"x","metadata":{"type":`+typ+`}}`,
			envelope("text", "user", `"x"`, `{}`, `{"type":`+typ+`}`))
	}
	holds(t, "agent-message#15: the content decides", `{"role":"user","content":[],"metadata":{"type":"heartbeat"}}`,
		envelope("multimodal_part", "user", `[]`, `{}`, `{"type":"heartbeat"}`))
	holds(t, "agent-message#15: then the error", `{"role":"user","content":"x","metadata":{"type":"heartbeat","error":0}}`,
		envelope("error", "user", `"x"`, `{}`, `{"type":"heartbeat","error":0}`))
	holds(t, "agent-message#16: also with an error", `{"role":"user","content":"x","metadata":{"type":"multimodal","error":"e"}}`,
		envelope("multimodal_part", "user", `"x"`, `{}`, `{"type":"multimodal","error":"e"}`))
	holds(t, "agent-message#16: metadata.type:'multimodal' gives multimodal_part", `{"role":"user","content":"x","metadata":{"type":"multimodal"}}`,
		envelope("multimodal_part", "user", `"x"`, `{}`, `{"type":"multimodal"}`))
	holds(t, "agent-message#17: plain content: [] gives multimodal_part", `{"role":"user","content":[]}`, envelope("multimodal_part", "user", `[]`, `{}`, `{}`))
	holds(t, "agent-message#18: plain content: {} gives multimodal_part", `{"role":"user","content":{}}`, envelope("multimodal_part", "user", `{}`, `{}`, `{}`))
	holds(t, "agent-message#19: supported metadata.type beats list content", `{"role":"user","content":["b"],"metadata":{"type":"delta","error":1}}`,
		envelope("delta", "user", `["b"]`, `{}`, `{"type":"delta","error":1}`))
	holds(t, "agent-message#20: list content beats metadata.error", `{"role":"user","content":["b"],"metadata":{"error":"e"}}`,
		envelope("multimodal_part", "user", `["b"]`, `{}`, `{"error":"e"}`))
	for _, set := range []string{`false`, `0`, `""`, `[]`, `{}`, `"e"`} {
		holds(t, "agent-message#21: metadata with error "+set, `{"role":"user","content":"x","metadata":{"error":`+set+`}}`,
			envelope("error", "user", `"x"`, `{}`, `{"error":`+set+`}`))
	}
	holds(t, "agent-message#22: metadata.error:null gives text", `{"role":"user","content":"x","metadata":{"error":null}}`, envelope("text", "user", `"x"`, `{}`, `{"error":null}`))
	holds(t, "agent-message#23: envelope text with list content stays text", `{"version":1,"type":"text","role":"user","content":["b"],"payload":{}}`, envelope("text", "user", `["b"]`, `{}`, `{}`))
	holds(t, "agent-message#24: envelope ignores metadata.type", `{"version":1,"type":"text","role":"user","content":"x","payload":{},"metadata":{"type":"error","error":1}}`,
		envelope("text", "user", `"x"`, `{}`, `{"type":"error","error":1}`))
	holds(t, "agent-message#24: nothing is lifted", `{"version":1,"type":"tool_call","content":"x","payload":{},"metadata":{"tool_name":"t"}}`,
		envelope("tool_call", "assistant", `"x"`, `{}`, `{"tool_name":"t"}`))

	call := `{"turn":3,"type":"tool_call","parameters":{"h":1},"tool_name":"ping","tool_call_id":"c9","success":true}`
	holds(t, "agent-message#25: a legacy tool_call lifts three keys, in order", `{"role":"assistant","content":"x","metadata":`+call+`}`,
		envelope("tool_call", "assistant", `"x"`, `{"tool_name":"ping","parameters":{"h":1},"turn":3}`, call))
	res := `{"error":"e","media":[1],"tool_data":{"ms":12},"turn":3,"success":false,"tool_name":"ping","type":"tool_result","tool_call_id":"c9","parameters":{}}`
	holds(t, "agent-message#26: a legacy tool_result lifts six keys, in order", `{"role":"user","content":"x","metadata":`+res+`}`,
		envelope("tool_result", "user", `"x"`, `{"tool_name":"ping","success":false,"turn":3,"tool_data":{"ms":12},"media":[1],"error":"e"}`, res))
	holds(t, "agent-message#27: lifted keys remain in metadata", `{"role":"assistant","content":"x","metadata":{"type":"tool_call","tool_name":"p","trace":"t9"}}`,
		envelope("tool_call", "assistant", `"x"`, `{"tool_name":"p"}`, `{"type":"tool_call","tool_name":"p","trace":"t9"}`))
	holds(t, "agent-message#28: null-valued keys are lifted", `{"role":"user","content":"x","metadata":{"type":"tool_result","error":null,"turn":null}}`,
		envelope("tool_result", "user", `"x"`, `{"turn":null,"error":null}`, `{"type":"tool_result","error":null,"turn":null}`))
	holds(t, "agent-message#29: of a call", `{"role":"user","content":"x","metadata":{"type":"tool_call","tool_call_id":"c"}}`,
		envelope("tool_call", "user", `"x"`, `{}`, `{"type":"tool_call","tool_call_id":"c"}`))
	holds(t, "agent-message#29: of a result", `{"role":"user","content":"x","metadata":{"type":"tool_result","tool_call_id":"c"}}`,
		envelope("tool_result", "user", `"x"`, `{}`, `{"type":"tool_result","tool_call_id":"c"}`))
	for _, typ := range []string{"text", "input_required", "approval_required", "final_result", "error", "delta", "multimodal_part"} {
		metadata := `{"type":"` + typ + `","tool_name":"t","parameters":{},"turn":1,"success":true,"error":"e"}`
		holds(t, "agent-message#30: no payload is lifted for "+typ, `{"role":"user","content":"x","metadata":`+metadata+`}`, envelope(typ, "user", `"x"`, `{}`, metadata))
	}
	for name, payload := range map[string]string{
		"missing": ``, "null": `,"payload":null`, "scalar": `,"payload":12`, "text": `,"payload":"p"`, "[]": `,"payload":[]`, "{}": `,"payload":{}`,
	} {
		holds(t, "agent-message#31: payload "+name, `{"version":1,"type":"delta","role":"user","content":"x","data":{"a":1}`+payload+`}`,
			envelope("delta", "user", `"x"`, `{"a":1}`, `{}`))
	}
	holds(t, "agent-message#31: data may be an array", `{"version":1,"type":"delta","role":"user","content":"x","data":["a"]}`,
		envelope("delta", "user", `"x"`, `{"0":"a"}`, `{}`))
	holds(t, "agent-message#32: data ignored when payload is non-empty", `{"version":1,"type":"delta","role":"user","content":"x","data":{"a":1},"payload":{"b":2}}`,
		envelope("delta", "user", `"x"`, `{"b":2}`, `{}`))
	holds(t, "agent-message#32: an array", `{"version":1,"type":"delta","role":"user","content":"x","data":{"a":1},"payload":[2]}`,
		envelope("delta", "user", `"x"`, `{"0":2}`, `{}`))
	for _, data := range []string{`7`, `"d"`, `true`} {
		holds(t, "agent-message#33: ignored data "+data, `{"version":1,"type":"delta","role":"user","content":"x","data":`+data+`}`,
			envelope("delta", "user", `"x"`, `{}`, `{}`))
	}
	holds(t, "agent-message#34: of an envelope", `{"version":1,"type":"delta","role":"user","content":"x","data":{"a":1},"payload":{"b":2}}`,
		envelope("delta", "user", `"x"`, `{"b":2}`, `{}`))
	holds(t, "agent-message#34: of a plain row", `{"role":"user","content":"x","data":{"a":1}}`, text("user", `"x"`))
	for _, scalar := range []string{`"z"`, `9`, `true`, `null`} {
		holds(t, "agent-message#35: ignored scalar "+scalar, `{"version":1,"type":"delta","role":"user","content":"x","payload":`+scalar+`,"metadata":`+scalar+`}`,
			envelope("delta", "user", `"x"`, `{}`, `{}`))
		holds(t, "agent-message#35: ignored scalar "+scalar+" in a plain row", `{"role":"user","content":"x","metadata":`+scalar+`}`, text("user", `"x"`))
	}
	holds(t, "agent-message#36: array payload gives index-keyed object", `{"version":1,"type":"delta","role":"user","content":"x","payload":[1,"two",null],"metadata":["m"]}`,
		envelope("delta", "user", `"x"`, `{"0":1,"1":"two","2":null}`, `{"0":"m"}`))
}

// Statements 37–55: role, content, precedence, ids, serializability, lists.
func TestNormalizeRefusalStatements(t *testing.T) {
	t.Parallel()
	for _, typ := range message.Types() {
		role := map[message.Type]string{"tool_result": "tool", "input_required": "tool", "approval_required": "tool"}[typ]
		if role == "" {
			role = "assistant"
		}
		for name, given := range map[string]string{"missing": ``, "null": `"role":null,`} {
			holds(t, "agent-message#37: role "+name+" in "+string(typ), `{`+given+`"version":1,"type":"`+string(typ)+`","content":"x","payload":{}}`,
				envelope(string(typ), role, `"x"`, `{}`, `{}`))
			holds(t, "agent-message#37: role "+name+" in a plain "+string(typ), `{`+given+`"content":"x","metadata":{"type":"`+string(typ)+`"}}`,
				envelope(string(typ), role, `"x"`, `{}`, `{"type":"`+string(typ)+`"}`))
		}
	}
	for _, role := range []string{`""`, `5`, `false`, `["user"]`, `{}`, `1.5`} {
		holds(t, "agent-message#38: refused role "+role, `{"role":`+role+`,"content":"x"}`, refusedRole)
		holds(t, "agent-message#38: refused role "+role+" in an envelope", `{"version":1,"type":"text","payload":{},"role":`+role+`,"content":"x"}`, refusedRole)
	}
	for _, role := range []string{" ", "0", "narrator", "User"} {
		holds(t, "agent-message#39: accepted role "+role, `{"role":"`+role+`","content":"x"}`, envelope("text", role, `"x"`, `{}`, `{}`))
	}
	holds(t, "agent-message#40: null content is empty", `{"role":"user","content":null}`, envelope("text", "user", `""`, `{}`, `{}`))
	holds(t, "agent-message#40: missing content is empty", `{"role":"user"}`, envelope("text", "user", `""`, `{}`, `{}`))
	holds(t, "agent-message#40: in an envelope", `{"version":1,"type":"error","payload":{},"role":"user","content":null}`, envelope("error", "user", `""`, `{}`, `{}`))
	for _, content := range []string{`5`, `true`, `1.25`, `false`, `0`} {
		holds(t, "agent-message#41: refused content "+content, `{"role":"user","content":`+content+`}`, refusedContent)
		holds(t, "agent-message#41: refused content "+content+" in an envelope", `{"version":1,"type":"delta","payload":{},"role":"user","content":`+content+`}`, refusedContent)
	}
	holds(t, "agent-message#42: role error precedes content error", `{"role":"","content":5}`, refusedRole)
	holds(t, "agent-message#43: version error precedes type error", `{"schema":"s","version":2,"type":"nope","role":"","content":5}`, refusedVersion)
	holds(t, "agent-message#44: type error precedes role error", `{"schema":"s","version":1,"type":"nope","role":"","content":5}`, refusedType)
	holds(t, "agent-message#45: a number is dropped", `{"role":"user","content":"x","id":41}`, envelope("text", "user", `"x"`, `{}`, `{}`))
	for _, id := range []string{"41", "0", " "} {
		holds(t, "agent-message#45: the string "+id+" is kept", `{"role":"user","content":"x","id":"`+id+`"}`,
			`{"schema":"agents-api.message","version":1,"type":"text","role":"user","content":"x","payload":{},"metadata":{},"id":"`+id+`"}`)
	}
	holds(t, "agent-message#46: dates kept verbatim even if nonsense", `{"role":"user","content":"x","created_at":" yesterday-ish\t","updated_at":" 2031-02-30 "}`,
		`{"schema":"agents-api.message","version":1,"type":"text","role":"user","content":"x","payload":{},"metadata":{},"created_at":" yesterday-ish\t","updated_at":" 2031-02-30 "}`)
	holds(t, "agent-message#47: unknown keys dropped", `{"role":"user","content":"x","name":"n","tool_calls":[1],"tool_call_id":"c","parts":[],"timestamp":1}`,
		envelope("text", "user", `"x"`, `{}`, `{}`))

	hostile := map[string]any{"NaN": math.NaN(), "Infinity": math.Inf(1), "-Infinity": math.Inf(-1), "a channel": make(chan int)}
	for name, v := range hostile {
		for _, place := range []string{"content", "payload", "metadata"} {
			spec.Check(t, "agent-message#48: not serializable: "+name+" in "+place, func(t *spec.T) {
				_, err := message.Normalize(map[string]any{
					"version": 1, "type": "text", "role": "user", place: map[string]any{"deep": []any{"a", v}}, "data": nil,
				})
				t.ErrorIs(err, message.ErrSerializable)
				t.Equal(err.Error(), refusedSerializable)
			})
		}
		spec.Check(t, "agent-message#48: harmless is "+name+" in a dropped key", func(t *spec.T) {
			e, err := message.Normalize(map[string]any{"role": "user", "content": "x", "extra": []any{v}, "id": v})
			t.Equal(written(e, err), envelope("text", "user", `"x"`, `{}`, `{}`))
		})
	}
	keyed := `{"0":` + nested(510) + `}`
	for place, want := range map[string]string{
		"content":  envelope("multimodal_part", "user", nested(511), `{}`, `{}`),
		"payload":  envelope("multimodal_part", "user", `""`, keyed, `{}`),
		"metadata": envelope("multimodal_part", "user", `""`, `{}`, keyed),
	} {
		row := func(depth int) string {
			return `{"version":1,"type":"multimodal_part","role":"user","data":null,"` + place + `":` + nested(depth) + `}`
		}
		holds(t, "agent-message#49: 512 in "+place, row(511), want)
		holds(t, "agent-message#49: 513 in "+place, row(512), refusedSerializable)
	}
	objects := func(n int) string { return strings.Repeat(`{"k":`, n-1) + `{}` + strings.Repeat("}", n-1) }
	holds(t, "agent-message#49: 512 objects", `{"role":"user","content":`+objects(511)+`}`, envelope("multimodal_part", "user", objects(511), `{}`, `{}`))
	holds(t, "agent-message#49: 513 objects", `{"role":"user","content":`+objects(512)+`}`, refusedSerializable)
	spec.Check(t, "agent-message#49: in a dropped key", func(t *spec.T) {
		t.Equal(normalized(`{"role":"user","content":"x","extra":`+nested(2000)+`}`), envelope("text", "user", `"x"`, `{}`, `{}`))
	})
	for name, input := range map[string]map[string]any{
		"in content":  {"role": "user", "content": "caf\xe9"},
		"in a block":  {"role": "user", "content": []any{"caf\xe9"}},
		"in metadata": {"role": "user", "metadata": map[string]any{"k": "\xff"}},
		"in a key":    {"role": "user", "metadata": map[string]any{"\xff": 1}},
		"in a role":   {"role": "\xff"},
		"in an id":    {"role": "user", "id": "\xff"},
		"in a date":   {"role": "user", "updated_at": "\xff"},
		"in created":  {"role": "user", "created_at": "\xff"},
		"in payload":  {"role": "user", "version": 1, "type": "text", "payload": map[string]any{"k": []any{"\xff"}}},
	} {
		spec.Check(t, "agent-message#50: invalid UTF-8 "+name, func(t *spec.T) {
			_, err := message.Normalize(input)
			t.ErrorIs(err, message.ErrSerializable)
		})
	}
	spec.Check(t, "agent-message#50: in JSON", func(t *spec.T) {
		t.Equal(normalized("{\"role\":\"user\",\"content\":\"caf\xe9\"}"), refusedSerializable)
	})
	for _, input := range []string{
		`{}`, `[]`, `{"role":"user","content":["b"],"metadata":{"error":1}}`, `{"role":"user","metadata":{"type":"tool_call","turn":1}}`,
		`{"version":"1","type":"delta","data":[1],"id":"i"}`, `{"version":1,"type":"text","schema":0,"content":{},"metadata":["m"]}`,
	} {
		spec.Check(t, "agent-message#51: normalized twice, "+input, func(t *spec.T) {
			once := normalized(input)
			t.Equal(normalized(once), once)
		})
	}
	spec.Check(t, "agent-message#52: input not mutated", func(t *spec.T) {
		const source = `{"role":"user","metadata":{"type":"tool_call","tool_name":"t","parameters":{"a":[1]}},"content":[{"b":2}],"n":1}`
		input := object(t, source)
		e, err := message.Normalize(input)
		t.NoError(err)
		e.Metadata.Set("new", 1).Delete("type")
		e.Payload.Set("new", 1)
		t.Equal(written(input, nil), source)
	})
	for _, field := range []string{"payload", "data"} {
		spec.Check(t, "agent-message#52: nor with the envelope made of its "+field, func(t *spec.T) {
			source := `{"version":1,"type":"delta","role":"user","` + field + `":{"k":1},"metadata":{"m":1}}`
			input := object(t, source)
			e, err := message.Normalize(input)
			t.NoError(err)
			e.Metadata.Set("new", 1).Delete("m")
			e.Payload.Set("new", 1).Delete("k")
			t.Equal(written(input, nil), source)
		})
	}
	holds(t, "agent-message#53: nested {} and [] preserved as received", `{"version":1,"type":"text","role":"user","content":[{},[]],"payload":{"o":{},"l":[],"lo":[{}]},"metadata":{"a":{"b":[]},"c":[],"n":1.0}}`,
		envelope("text", "user", `[{},[]]`, `{"o":{},"l":[],"lo":[{}]}`, `{"a":{"b":[]},"c":[],"n":1.0}`))

	many := func(list string) (any, error) {
		envelopes, err := message.NormalizeAll(decoded(t, list))
		out := []string{}
		for _, e := range envelopes {
			out = append(out, written(e, nil))
		}
		return out, err
	}
	for list, want := range map[string]error{
		`[{"role":"user"},{"role":""},"s"]`: message.ErrRole, `[{"role":"user"},"s",{"role":""}]`: message.ErrNotContainer,
		`[null]`: message.ErrNotContainer, `[7]`: message.ErrNotContainer, `[true]`: message.ErrNotContainer,
	} {
		spec.Check(t, "agent-message#54: the first bad entry of "+list, func(t *spec.T) {
			out, err := many(list)
			t.Equal(out, any([]string{}))
			t.Equal(err.Error(), want.Error())
		})
	}
	spec.Check(t, "agent-message#54: the text of a string entry", func(t *spec.T) {
		_, err := many(`["s"]`)
		t.Equal(err.Error(), refusedContainer)
	})
	spec.Check(t, "agent-message#55: object input to list operations yields a dense list", func(t *spec.T) {
		out, err := many(`{"x":{"role":"user","content":"a"},"7":{"role":"tool","content":"b"}}`)
		t.NoError(err)
		t.Equal(out, any([]string{envelope("text", "user", `"a"`, `{}`, `{}`), envelope("text", "tool", `"b"`, `{}`, `{}`)}))
	})
	const keys = `{"x":{"role":"user","content":"a"},"7":{"metadata":{"type":"tool_call"}}}`
	spec.Check(t, "agent-message#55: an object is projected as a list", func(t *spec.T) {
		projected, err := message.ToProviderAll(decoded(t, keys))
		t.NoError(err)
		out := []string{}
		for _, p := range projected {
			out = append(out, written(p, nil))
		}
		t.Equal(out, []string{`{"role":"user","content":"a"}`, `{"role":"assistant","content":"","metadata":{"type":"tool_call"}}`})
	})
	spec.Check(t, "agent-message#55: an object is coalesced as a list", func(t *spec.T) {
		t.Equal(coalesced(keys), []string{envelope("text", "user", `"a"`, `{}`, `{}`), envelope("tool_call", "assistant", `""`, `{}`, `{"type":"tool_call"}`)})
	})
	spec.Check(t, "agent-message#55: its tool pairs, by index", func(t *spec.T) {
		pruned, err := message.Prune(decoded(t, keys))
		t.NoError(err)
		t.Equal(written(pruned.Canonical(), nil), `{"messages":[{"role":"user","content":"a"}],"removed":[{"index":1,"kind":"orphan_tool_call","type":"tool_call","tool_name":""}],`+
			`"events":[{"type":"tool_pair_pruned","metadata":{"total_messages":2,"orphan_count":1,"retained_count":1,"removed_indices":[1],"orphans":[{"index":1,"kind":"orphan_tool_call","type":"tool_call","tool_name":""}]}}]}`)
	})
}
