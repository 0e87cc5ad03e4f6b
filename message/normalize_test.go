package message_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/sample"
	"github.com/parley-hub/parley/message/value"
)

func TestNormalizeBadInput(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ input, want string }{
		"a string":             {`"s"`, refusedContainer},
		"a number":             {`7`, refusedContainer},
		"null":                 {`null`, refusedContainer},
		"true":                 {`true`, refusedContainer},
		"an array is empty":    {`[{"role":"user"}]`, envelope("text", "assistant", `""`, `{}`, `{}`)},
		"a list is empty":      {`[]`, envelope("text", "assistant", `""`, `{}`, `{}`)},
		"no text":              {``, refusedSerializable},
		"half a message":       {`{"role":"user"`, refusedSerializable},
		"two messages":         {`{} {}`, refusedSerializable},
		"NaN":                  {`{"content":NaN}`, refusedSerializable},
		"a key twice":          {`{"role":"user","role":"assistant"}`, refusedSerializable},
		"an inner key twice":   {`{"metadata":{"k":{"a":1,"a":2}}}`, refusedSerializable},
		"a lone surrogate":     {`{"content":"\ud800"}`, refusedSerializable},
		"past 2^53":            {`{"metadata":{"a":9007199254740993,"b":123456789012345678901234567890,"c":-0,"d":1e400,"e":1E+2}}`, envelope("text", "assistant", `""`, `{}`, `{"a":9007199254740993,"b":123456789012345678901234567890,"c":-0,"d":1e400,"e":1E+2}`)},
		"far too deep":         {`{"metadata":{"k":` + nested(20000) + `}}`, refusedSerializable},
		"far too deep, unused": {`{"role":"user","content":"x","k":` + nested(9000) + `}`, envelope("text", "user", `"x"`, `{}`, `{}`)},
		"white space":          {" {\n\t\"role\" : \"user\" ,\r\n \"content\" : [ 1 , { } , [ ] ] }\n ", envelope("multimodal_part", "user", `[1,{},[]]`, `{}`, `{}`)},
		"escapes":              {`{"role":"us\u0065r","content":"a\"\\\/\b\f\n\r\té\ud83c\udf0a"}`, envelope("text", "user", `"a\"\\/\b\f\n\r\té🌊"`, `{}`, `{}`)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := normalized(c.input); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestNormalizeHostValues(t *testing.T) {
	t.Parallel()
	want := envelope("delta", "user", `["a",1]`, `{"f":1.5,"i":7,"u":18446744073709551615}`, `{"k":{"a":null,"b":true}}`)
	e, err := message.Normalize(map[string]any{
		"version": json.Number("1"), "type": "delta", "role": "user", "content": []any{"a", int8(1)},
		"payload":  map[string]any{"i": 7, "f": 1.5, "u": uint64(18446744073709551615)},
		"metadata": map[string]any{"k": map[string]any{"b": true, "a": nil}},
	})
	if got := written(e, err); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for name, again := range map[string]any{"an envelope": e, "a pointer to one": &e, "its map": e.Canonical()} {
		same, err := message.Normalize(again)
		if got := written(same, err); got != want {
			t.Errorf("%s: got %s", name, got)
		}
	}
	for name, v := range map[string]any{"nil": nil, "a struct": struct{}{}, "a string": "s", "an int": 1, "a nil map": (*value.Map)(nil)} {
		if _, err := message.Normalize(v); !errors.Is(err, message.ErrNotContainer) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := message.NormalizeAll(v); !errors.Is(err, message.ErrNotContainer) {
			t.Errorf("a list that is %s: %v", name, err)
		}
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	_, err := message.NormalizeJSON([]byte(`{"content":`))
	var refusal *message.Error
	if !errors.As(err, &refusal) {
		t.Fatalf("%v is no *Error", err)
	}
	if refusal.Code != "invalid_ai_message_envelope" || refusal.Reason != "envelope must be JSON serializable" || refusal.Unwrap() == nil {
		t.Errorf("got %q %q, cause %v", refusal.Code, refusal.Reason, refusal.Unwrap())
	}
	if errors.Is(err, message.ErrRole) || !errors.Is(err, message.ErrSerializable) || errors.Is(errors.New(refusedRole), message.ErrRole) {
		t.Error("errors are compared by reason")
	}
	if errors.Is(&message.Error{Code: "other", Reason: message.ErrRole.Reason}, message.ErrRole) {
		t.Error("errors are compared by code")
	}
	_, err = message.Normalize(map[string]any{"content": "\xff"})
	if cause := errors.Unwrap(err); cause == nil || cause.Error() != `"\xff" is not valid UTF-8` {
		t.Errorf("the cause is %v", cause)
	}
}

func TestTypeOf(t *testing.T) {
	t.Parallel()
	if typ, err := message.TypeOf(map[string]any{"content": []any{}}); typ != message.TypeMultimodalPart || err != nil {
		t.Errorf("%s %v", typ, err)
	}
	if _, err := message.TypeOf(map[string]any{"version": 1, "type": "zzz", "payload": nil}); !errors.Is(err, message.ErrType) {
		t.Errorf("%v", err)
	}
	if message.Type("").Supported() || message.Type("Text").Supported() {
		t.Error("unknown types count as supported")
	}
}

func TestNormalizeSeq(t *testing.T) {
	t.Parallel()
	var got []string
	for e, err := range message.NormalizeSeq(slices.Values([]any{map[string]any{"content": "a"}, "bad", map[string]any{"content": "b"}, "never"})) {
		if len(got) == 3 {
			break
		}
		got = append(got, written(e, err))
	}
	want := []string{envelope("text", "assistant", `"a"`, `{}`, `{}`), refusedContainer, envelope("text", "assistant", `"b"`, `{}`, `{}`)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestEnvelopeJSON(t *testing.T) {
	t.Parallel()
	var read []message.Envelope
	if err := json.Unmarshal([]byte(`[{"role":"user","content":"x","id":"i"},{"content":[1.0],"updated_at":"u","created_at":"c"}]`), &read); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(read)
	want := `[{"schema":"agents-api.message","version":1,"type":"text","role":"user","content":"x","payload":{},"metadata":{},"id":"i"},` +
		`{"schema":"agents-api.message","version":1,"type":"multimodal_part","role":"assistant","content":[1.0],"payload":{},"metadata":{},"created_at":"c","updated_at":"u"}]`
	if err != nil || string(text) != want {
		t.Errorf("got  %s %v\nwant %s", text, err, want)
	}
	if err := json.Unmarshal([]byte(`{"role":""}`), new(message.Envelope)); err == nil || !strings.Contains(err.Error(), "role must be") {
		t.Errorf("a refusal: %v", err)
	}
	bare, err := message.Envelope{Type: "text", Role: "user", Content: ""}.AppendJSON([]byte("x"))
	if want := "x" + envelope("text", "user", `""`, `{}`, `{}`); err != nil || string(bare) != want {
		t.Errorf("got %s %v", bare, err)
	}
	if got := written(message.Envelope{Type: "text", Role: "user", Content: ""}.Canonical(), nil); "x"+got != string(bare) {
		t.Errorf("as a map: %s", got)
	}
	for _, e := range []message.Envelope{
		{Role: "\xff"}, {Content: make(chan int)}, {Payload: value.New().Set("k", "\xff")}, {Metadata: value.New().Set("\xff", 1)}, {ID: "\xff"},
	} {
		if _, err := e.MarshalJSON(); err == nil {
			t.Errorf("%v was written", e)
		}
	}
	if text, isText := (message.Envelope{Content: []any{}}).Text(); isText || text != "" {
		t.Error("blocks are no text")
	}
}

func TestSampleConversation(t *testing.T) {
	t.Parallel()
	var types []message.Type
	for line := range strings.Lines(string(sample.Conversation())) {
		e, err := message.NormalizeJSON([]byte(line))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		types = append(types, e.Type)
	}
	want := []message.Type{"text", "text", "tool_call", "tool_result", "input_required", "multimodal_part", "final_result"}
	if diff := cmp.Diff(want, types); diff != "" {
		t.Error(diff)
	}
	if e, err := message.NormalizeJSON(sample.Typical()); err != nil || e.Type != message.TypeToolResult || e.Payload.Len() != 6 {
		t.Errorf("the typical message is %v, %v", e, err)
	}
	if lines := sample.Lines(10000); len(lines) < 10000 || len(lines) > 20000 || lines[len(lines)-1] != '\n' {
		t.Errorf("%d bytes of lines", len(lines))
	}
}
