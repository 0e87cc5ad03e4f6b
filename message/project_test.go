package message_test

import (
	"strings"
	"testing"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/value"
)

func projects(t *testing.T, statement, input, want string) {
	t.Helper()
	spec.Check(t, statement, func(t *spec.T) { t.Equal(provided(input), want) })
}

// Statements 56–67: the provider shape, and the builders.
func TestProjectionStatements(t *testing.T) {
	t.Parallel()
	env := func(typ, payload, metadata string) string {
		return `{"version":1,"type":"` + typ + `","role":"user","content":"c","payload":` + payload + `,"metadata":` + metadata + `}`
	}
	projects(t, "agent-message#56: bare text projects to two keys", env("text", `{}`, `[]`), `{"role":"user","content":"c"}`)
	for _, typ := range message.Types()[1:] {
		projects(t, "agent-message#57: metadata has the type "+string(typ), env(string(typ), `{}`, `{}`), `{"role":"user","content":"c","metadata":{"type":"`+string(typ)+`"}}`)
	}
	projects(t, "agent-message#58: with metadata", env("text", `{}`, `{"lang":"fi"}`), `{"role":"user","content":"c","metadata":{"lang":"fi","type":"text"}}`)
	projects(t, "agent-message#58: with a payload", env("text", `{"score":1}`, `{}`), `{"role":"user","content":"c","metadata":{"type":"text","score":1}}`)
	projects(t, "agent-message#59: private metadata.type is overwritten", `{"role":"user","content":"x","metadata":{"a":0,"type":"nudge","k":1}}`,
		`{"role":"user","content":"x","metadata":{"a":0,"type":"text","k":1}}`)
	projects(t, "agent-message#59: also of what is not text", env("delta", `{}`, `{"type":"error","k":1}`),
		`{"role":"user","content":"c","metadata":{"type":"delta","k":1}}`)
	spec.Check(t, "agent-message#59: in the projection only", func(t *spec.T) {
		const nudge = `{"role":"user","content":"x","metadata":{"type":"nudge"}}`
		e, err := message.NormalizeJSON([]byte(nudge))
		t.NoError(err)
		t.Equal(written(e.Provider(), nil), `{"role":"user","content":"x","metadata":{"type":"text"}}`)
		t.Equal(written(e, nil), normalized(nudge))
	})
	projects(t, "agent-message#60: metadata beats payload, also with null", env("tool_result", `{"tool_name":"p","x":1}`, `{"tool_name":"m"}`),
		`{"role":"user","content":"c","metadata":{"tool_name":"m","type":"tool_result","x":1}}`)
	projects(t, "agent-message#60: with null", env("delta", `{"k":1}`, `{"k":null}`), `{"role":"user","content":"c","metadata":{"k":null,"type":"delta"}}`)
	projects(t, "agent-message#61: payload key type never shows", env("final_result", `{"type":"inner","k":null}`, `{}`), `{"role":"user","content":"c","metadata":{"type":"final_result","k":null}}`)
	projects(t, "agent-message#61: of a text", env("text", `{"type":"inner"}`, `{}`), `{"role":"user","content":"c","metadata":{"type":"text"}}`)
	projects(t, "agent-message#62: id/dates not projected", `{"role":"user","content":"c","id":"i","created_at":"a","updated_at":"b"}`, `{"role":"user","content":"c"}`)
	projects(t, "agent-message#62: beside metadata", `{"version":1,"type":"delta","role":"user","content":"c","payload":{"i":4},"id":"i","created_at":"a","updated_at":"b"}`,
		`{"role":"user","content":"c","metadata":{"type":"delta","i":4}}`)
	for _, row := range []string{
		`{"role":"assistant","content":"x","metadata":{"turn":3,"type":"tool_call","parameters":{"h":1},"tool_name":"ping","extra":[]}}`,
		`{"role":"user","content":"x","metadata":{"error":null,"type":"tool_result","media":[],"tool_name":"ping","tool_call_id":"c"}}`,
		`{"role":"user","content":"plain"}`,
		`{"role":"user","content":"x","metadata":{"type":"delta","index":4}}`,
	} {
		projects(t, "agent-message#63: round trip of "+row, row, row)
	}
	const blocks = `{"version":1,"type":"text","role":"user","content":["b"],"payload":{},"metadata":{}}`
	spec.Check(t, "agent-message#64: text + list content + nothing else returns as multimodal_part", func(t *spec.T) {
		t.Equal(provided(blocks), `{"role":"user","content":["b"]}`)
		t.Equal(normalized(provided(blocks)), envelope("multimodal_part", "user", `["b"]`, `{}`, `{}`))
	})
	spec.Check(t, "agent-message#64: with metadata or a payload it stays a text", func(t *spec.T) {
		t.Equal(normalized(provided(`{"version":1,"type":"text","role":"user","content":["b"],"payload":{},"metadata":{"k":1}}`)),
			envelope("text", "user", `["b"]`, `{}`, `{"k":1,"type":"text"}`))
		t.Equal(normalized(provided(`{"version":1,"type":"text","role":"user","content":["b"],"payload":{"k":1}}`)),
			envelope("text", "user", `["b"]`, `{}`, `{"type":"text","k":1}`))
	})

	for _, c := range []struct {
		clause, metadata string
		content          any
		want             string
	}{
		{"a text", `{}`, "hi", envelope("text", "narrator", `"hi"`, `{}`, `{}`)},
		{"blocks", `{}`, []any{"b"}, envelope("multimodal_part", "narrator", `["b"]`, `{}`, `{}`)},
		{"an object of blocks", `{"error":1}`, map[string]any{}, envelope("multimodal_part", "narrator", `{}`, `{}`, `{"error":1}`)},
		{"the alias", `{"type":"multimodal"}`, "hi", envelope("multimodal_part", "narrator", `"hi"`, `{}`, `{"type":"multimodal"}`)},
		{"a private type", `{"type":"nudge","error":null}`, "hi", envelope("text", "narrator", `"hi"`, `{}`, `{"type":"nudge","error":null}`)},
		{"an error", `{"error":false}`, "hi", envelope("error", "narrator", `"hi"`, `{}`, `{"error":false}`)},
		{"a named type", `{"type":"delta"}`, []any{}, envelope("delta", "narrator", `[]`, `{}`, `{"type":"delta"}`)},
		{"a call lifts nothing", `{"type":"tool_call","turn":1}`, "hi", envelope("tool_call", "narrator", `"hi"`, `{}`, `{"type":"tool_call","turn":1}`)},
	} {
		spec.Check(t, "agent-message#65: type inferred from "+c.clause, func(t *spec.T) {
			e, err := message.Text("narrator", c.content, object(t, c.metadata))
			t.Equal(written(e, err), c.want)
		})
	}
	spec.Check(t, "agent-message#66: a result", func(t *spec.T) {
		e, err := message.ToolResult("ok", "ping", object(t, `{"success":true}`), nil)
		t.Equal(written(e, err), envelope("tool_result", "user", `"ok"`, `{"success":true,"tool_name":"ping"}`, `{}`))
	})
	spec.Check(t, "agent-message#66: an approval", func(t *spec.T) {
		e, err := message.ApprovalRequired("Approve?", object(t, `{"action_id":"a3"}`), object(t, `{"k":1}`))
		t.Equal(written(e, err), envelope("approval_required", "tool", `"Approve?"`, `{"action_id":"a3"}`, `{"k":1}`))
	})
	spec.Check(t, "agent-message#67: toolResult overwrites payload.tool_name", func(t *spec.T) {
		payload := object(t, `{"tool_name":"ignored","success":true}`)
		e, err := message.ToolResult("ok", "ping", payload, object(t, `{"tool_call_id":"c"}`))
		t.Equal(written(e, err), envelope("tool_result", "user", `"ok"`, `{"tool_name":"ping","success":true}`, `{"tool_call_id":"c"}`))
		t.Equal(payload.At("tool_name"), any("ignored"))
	})
}

func TestBuilders(t *testing.T) {
	t.Parallel()
	e, err := message.ToolCall("", "ping", map[string]any{"b": 1, "a": 2.5}, 2, object(t, `{"tool_call_id":"c"}`))
	if got, want := written(e, err), envelope("tool_call", "assistant", `""`, `{"tool_name":"ping","parameters":{"a":2.5,"b":1},"turn":2}`, `{"tool_call_id":"c"}`); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for name, build := range map[string]func(content any) (message.Envelope, error){
		"text":     func(c any) (message.Envelope, error) { return message.Text("user", c, nil) },
		"call":     func(c any) (message.Envelope, error) { return message.ToolCall(c, "t", nil, 1, nil) },
		"result":   func(c any) (message.Envelope, error) { return message.ToolResult(c, "t", nil, nil) },
		"approval": func(c any) (message.Envelope, error) { return message.ApprovalRequired(c, nil, nil) },
	} {
		if _, err := build(5); err == nil || err.Error() != refusedContent {
			t.Errorf("%s: content 5: %v", name, err)
		}
		// Builders leave it to Normalize to refuse what cannot be serialized.
		e, err := build("caf\xe9")
		if err != nil {
			t.Errorf("%s: invalid UTF-8: %v", name, err)
		}
		if _, err := message.Normalize(e); err == nil || err.Error() != refusedSerializable {
			t.Errorf("%s: normalized: %v", name, err)
		}
	}
	if _, err := message.Text("", "x", nil); err == nil || err.Error() != refusedRole {
		t.Errorf("an empty role: %v", err)
	}
	e, err = message.Text("user", []string{"b"}, nil)
	if got, want := written(e, err), envelope("multimodal_part", "user", `["b"]`, `{}`, `{}`); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	metadata := object(t, `{"k":1}`)
	e, _ = message.Text("user", "x", metadata)
	e.Metadata.Set("new", true)
	if metadata.Len() != 1 {
		t.Error("a builder shares the caller's metadata")
	}
}

// Statements 68–72: merging neighbours.
func TestCoalesceStatements(t *testing.T) {
	t.Parallel()
	row := func(role, content string) string { return `{"role":"` + role + `","content":"` + content + `"}` }
	part := func(role, content string) string { return envelope("text", role, `"`+content+`"`, `{}`, `{}`) }
	list := func(items ...string) string { return "[" + strings.Join(items, ",") + "]" }
	merges := func(statement, input string, want ...string) {
		t.Helper()
		spec.Check(t, statement, func(t *spec.T) { t.Equal(coalesced(input), want) })
	}
	merges("agent-message#68: equal ones", list(row("user", "a"), row("user", "b"), row("assistant", "c")),
		envelope("multimodal_part", "user", `"a\n\nb"`, `{"parts":[`+part("user", "a")+`,`+part("user", "b")+`]}`, `{}`), part("assistant", "c"))
	merges("agent-message#68: none that are apart", list(row("user", "a"), row("assistant", "b"), row("user", "c")),
		part("user", "a"), part("assistant", "b"), part("user", "c"))
	merges("agent-message#68: none that differ by case", list(row("user", "a"), row("User", "b")), part("user", "a"), part("User", "b"))
	merges("agent-message#68: none that differ by a space", list(row("user", "a"), row(" user", "b")), part("user", "a"), part(" user", "b"))
	merges("agent-message#68: whatever the role", list(row("user", "a"), row("system", "b"), row("system", "c")),
		part("user", "a"), envelope("multimodal_part", "system", `"b\n\nc"`, `{"parts":[`+part("system", "b")+`,`+part("system", "c")+`]}`, `{}`))

	call := envelope("tool_call", "assistant", `"Calling"`, `{"tool_name":"p"}`, `{}`)
	blocks := envelope("text", "assistant", `["b"]`, `{}`, `{}`)
	empty := envelope("text", "assistant", `""`, `{}`, `{}`)
	final := envelope("final_result", "assistant", `"Done"`, `{}`, `{}`)
	merges("agent-message#69: joined content uses only text parts", list(row("assistant", "a"), call, blocks, empty, final, row("assistant", "z")),
		envelope("multimodal_part", "assistant", `"a\n\nz"`,
			`{"parts":[`+strings.Join([]string{part("assistant", "a"), call, blocks, empty, final, part("assistant", "z")}, ",")+`]}`, `{}`))
	merges("agent-message#69: a blank is a text", list(row("user", " "), row("user", "0"), row("user", "a ")),
		envelope("multimodal_part", "user", `" \n\n0\n\na "`, `{"parts":[`+part("user", " ")+`,`+part("user", "0")+`,`+part("user", "a ")+`]}`, `{}`))
	untyped := `{"content":"u"},{"type":"TEXT","content":"v"},{"type":"text","content":5}`
	merges("agent-message#69: what has not the type is no text part", list(`{"version":1,"type":"multimodal_part","role":"user","payload":{"parts":[`+untyped+`]}}`, row("user", "q")),
		envelope("multimodal_part", "user", `"q"`, `{"parts":[`+untyped+`,`+part("user", "q")+`]}`, `{}`))
	merges("agent-message#69: nothing to join", list(call, blocks),
		envelope("multimodal_part", "assistant", `""`, `{"parts":[`+call+`,`+blocks+`]}`, `{}`))

	first := `{"role":"user","content":"a","metadata":{"m":1},"id":"i","created_at":"c","updated_at":"u"}`
	second := `{"role":"user","content":"b","metadata":{"m":2,"n":3},"id":"j","created_at":"d","updated_at":"v"}`
	merges("agent-message#70: first metadata survives, ids do not", list(first, second),
		envelope("multimodal_part", "user", `"a\n\nb"`, `{"parts":[`+normalized(first)+`,`+normalized(second)+`]}`, `{"m":1}`))
	merges("agent-message#70: also if it is empty", list(row("user", "a"), second, first),
		envelope("multimodal_part", "user", `"a\n\nb\n\na"`, `{"parts":[`+part("user", "a")+`,`+normalized(second)+`,`+normalized(first)+`]}`, `{}`))

	spec.Check(t, "agent-message#70: as the merged one's own", func(t *spec.T) {
		envelopes, err := message.NormalizeAll(decoded(t, list(first, second)))
		t.NoError(err)
		message.CoalesceEnvelopes(envelopes)[0].Metadata.Set("m", "changed")
		t.Equal(written(envelopes[0], nil), normalized(first))
	})

	inner := `{"type":"multimodal_part","content":"deep","payload":{"parts":[{"type":"text","content":"deeper"}]}}`
	multi := `{"version":1,"type":"multimodal_part","role":"user","content":"lost","payload":{"parts":[{"type":"text","content":"p","5":0,"05":1,"-3":0,"-0":2},` + inner + `,"scalar",["list"]]}}`
	merges("agent-message#71: existing parts are flattened one level", list(multi, row("user", "q")),
		envelope("multimodal_part", "user", `"p\n\nq"`, `{"parts":[{"type":"text","content":"p","05":1,"-0":2},`+inner+`,{},`+part("user", "q")+`]}`, `{}`))
	merges("agent-message#71: of a later one too", list(row("user", "q"), multi),
		envelope("multimodal_part", "user", `"q\n\np"`, `{"parts":[`+part("user", "q")+`,{"type":"text","content":"p","05":1,"-0":2},`+inner+`,{}]}`, `{}`))
	merges("agent-message#71: an object of parts", list(`{"version":1,"type":"multimodal_part","role":"user","payload":{"parts":{"x":{"type":"text","content":"p"}}}}`, row("user", "q")),
		envelope("multimodal_part", "user", `"p\n\nq"`, `{"parts":[{"type":"text","content":"p"},`+part("user", "q")+`]}`, `{}`))
	merges("agent-message#71: empty parts contribute nothing", list(`{"version":1,"type":"multimodal_part","role":"user","content":"lost","payload":{"parts":[]}}`, row("user", "q")),
		envelope("multimodal_part", "user", `"q"`, `{"parts":[`+part("user", "q")+`]}`, `{}`))
	merges("agent-message#71: parts that are no container are no parts", list(`{"version":1,"type":"multimodal_part","role":"user","content":"x","payload":{"parts":"p"}}`, row("user", "q")),
		envelope("multimodal_part", "user", `"q"`, `{"parts":[`+envelope("multimodal_part", "user", `"x"`, `{"parts":"p"}`, `{}`)+`,`+part("user", "q")+`]}`, `{}`))
	merges("agent-message#71: of another type are not taken apart", list(`{"version":1,"type":"delta","role":"user","content":"x","payload":{"parts":[{"type":"text","content":"p"}]}}`, row("user", "q")),
		envelope("multimodal_part", "user", `"q"`, `{"parts":[`+envelope("delta", "user", `"x"`, `{"parts":[{"type":"text","content":"p"}]}`, `{}`)+`,`+part("user", "q")+`]}`, `{}`))

	spec.Check(t, "agent-message#72: coalesce twice = once", func(t *spec.T) {
		once := coalesced(list(multi, row("user", "q"), call, row("assistant", "z"), row("user", "end"), row("user", "")))
		t.Equal(len(once), 3)
		t.Equal(coalesced(list(once...)), once)
	})
	merges("agent-message#72: an unmerged one stays untouched", list(multi), normalized(multi))
	merges("agent-message#72: a bad entry refuses all", list(row("user", "a"), `"zzz"`), refusedContainer)
	merges("agent-message#72: an empty list stays empty", `[]`, []string{}...)
}

func TestProjectionLaws(t *testing.T) {
	t.Parallel()
	if _, err := message.ToProviderAll(decoded(t, `[{"role":"user"},7]`)); err == nil || err.Error() != refusedContainer {
		t.Errorf("a bad entry: %v", err)
	}
	list, err := message.ToProviderAll(decoded(t, `{"a":{"role":"user","content":"1"},"b":{"content":"2"}}`))
	if err != nil || len(list) != 2 || written(list[0], nil) != `{"role":"user","content":"1"}` || written(list[1], nil) != `{"role":"assistant","content":"2"}` {
		t.Errorf("an object: %v %v", list, err)
	}
	if got := provided(`{"role":"","content":"x"}`); got != refusedRole {
		t.Errorf("a refusal: %s", got)
	}
	p := message.ProviderMessage{Role: "user", Content: "x"}
	if v := value.Of(p); !value.Equal(v, decoded(t, `{"role":"user","content":"x"}`)) {
		t.Errorf("as a value: %v", v)
	}
}
