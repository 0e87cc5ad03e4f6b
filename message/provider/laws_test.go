package provider_test

import (
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/provider"
	"github.com/parley-hub/parley/message/provider/anthropic"
	"github.com/parley-hub/parley/message/provider/gemini"
	"github.com/parley-hub/parley/message/provider/openai"
	"github.com/parley-hub/parley/message/value"
)

type mapping struct {
	write func([]message.Envelope, provider.Options) provider.Request
	read  func(*value.Map, provider.ReadOptions) provider.History
}

var mappings = map[string]mapping{
	"openai-chat":      {openai.Chat, openai.ChatHistory},
	"openai-responses": {openai.Responses, openai.ResponsesHistory},
	"anthropic":        {anthropic.Messages, anthropic.History},
	"gemini":           {gemini.Contents, gemini.History},
}

// anything draws messages in any order, with any partner missing.
func anything(t *rapid.T) []message.Envelope {
	draw := rapid.Custom(func(t *rapid.T) message.Envelope {
		kind := rapid.SampledFrom(message.Types()).Draw(t, "type")
		role := rapid.SampledFrom([]string{"user", "assistant", "system", "tool", "developer", "odd"}).Draw(t, "role")
		e := message.Envelope{
			Type: kind, Role: role, Content: rapid.SampledFrom([]any{
				"", "text",
				[]any{},
				[]any{"a", value.New().Set("type", "text").Set("text", "b")},
				[]any{value.New().Set("type", "image_url").Set("image_url", value.New().Set("url", "https://x.test/a.png"))},
				value.New().Set("type", "file").Set("file_path", "lost"),
			}).Draw(t, "content"), Payload: value.New(), Metadata: value.New(),
		}
		if kind == message.TypeToolCall || kind == message.TypeToolResult {
			e.Payload.Set("tool_name", rapid.SampledFrom([]string{"a", "b/c", ""}).Draw(t, "tool"))
		}
		if id := rapid.SampledFrom([]string{"", "", "c1", "c2", "ü"}).Draw(t, "id"); id != "" {
			rapid.SampledFrom([]*value.Map{e.Payload, e.Metadata}).Draw(t, "where").Set("tool_call_id", id)
		}
		return e
	})
	return rapid.SliceOfN(draw, 0, 12).Draw(t, "messages")
}

func written(t *rapid.T, m *value.Map) string {
	data, err := m.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// A request that is read back and written again is the same, so whatever the
// provider's form can express survives.
func TestReadingBackIsWrittenAsItWas(t *testing.T) {
	t.Parallel()
	for name, m := range mappings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				first := m.write(anything(t), provider.Options{})
				history := m.read(first.Body, provider.ReadOptions{})
				second := m.write(history.Messages, provider.Options{})
				if a, b := written(t, first.Body), written(t, second.Body); a != b {
					t.Fatalf("first  %s\nsecond %s", a, b)
				}
				if len(second.Notes) > 0 || len(history.Notes) > 0 {
					t.Fatalf("what the form itself said is noted: %v %v", second.Notes, history.Notes)
				}
				for _, e := range history.Messages {
					if again, err := message.Normalize(e); err != nil || text(again) != text(e) {
						t.Fatalf("%s is not canonical: %v", text(e), err)
					}
				}
			})
		})
	}
}

// sayable draws conversations that every provider can express in full.
func sayable(t *rapid.T) []message.Envelope {
	var list []message.Envelope
	add := func(role, content string) {
		list = append(list, message.Envelope{
			Type: message.TypeText, Role: role, Content: content, Payload: value.New(), Metadata: value.New(),
		})
	}
	if rapid.Bool().Draw(t, "system") {
		add("system", "Be kind.")
	}
	ids := 0
	for turn := range rapid.IntRange(1, 4).Draw(t, "turns") {
		add("user", "question "+strconv.Itoa(turn))
		if rapid.Bool().Draw(t, "says") {
			add("assistant", "I look.")
		}
		calls := rapid.IntRange(1, 3).Draw(t, "calls")
		for c := range calls {
			ids++
			list = append(list, message.Envelope{
				Type: message.TypeToolCall, Role: "assistant", Content: "",
				Payload: value.New().
					Set("tool_name", rapid.SampledFrom([]string{"tides", "harbour/wind", "x.y"}).Draw(t, "tool")).
					Set("parameters", value.New().Set("n", value.Number("9007199254740993")).Set("empty", []any{}).Set("c", value.Int(c))).
					Set("turn", value.Int(turn+1)),
				Metadata: value.New().Set("tool_call_id", "call_"+strconv.Itoa(ids)),
			})
		}
		for _, call := range list[len(list)-calls:] {
			list = append(list, message.Envelope{
				Type: message.TypeToolResult, Role: "user", Content: "answer",
				Payload:  value.New().Set("tool_name", call.ToolName()),
				Metadata: value.New().Set("tool_call_id", call.ToolCallID()),
			})
		}
		add("assistant", "done")
	}
	return list
}

func TestWhatBothSidesCanSaySurvives(t *testing.T) {
	t.Parallel()
	for name, m := range mappings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				list := sayable(t)
				request := m.write(list, provider.Options{})
				if len(request.Notes) > 0 {
					t.Fatalf("noted %v", request.Notes)
				}
				back := m.read(request.Body, provider.ReadOptions{})
				if len(back.Messages) != len(list) {
					t.Fatalf("%d messages became %d", len(list), len(back.Messages))
				}
				for i, want := range list {
					got := back.Messages[i]
					// Two of the forms cannot mark a result as failed.
					got.Payload.Delete("success")
					if text(got) != text(want) {
						t.Fatalf("message %d:\ngot  %s\nwant %s", i, text(got), text(want))
					}
				}
			})
		})
	}
}

// For any input, each call that is written is answered directly after it and
// only once, and roles alternate where they must.
func TestRequestsAreWellFormed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		list := anything(t)
		var open []string
		for _, item := range values(openai.Chat(list, provider.Options{}).Body.At("messages")) {
			if item.At("role") == "tool" {
				id := item.At("tool_call_id").(string)
				at := indexOf(open, id)
				if at < 0 {
					t.Fatalf("%s answers no open call", id)
				}
				open = append(open[:at], open[at+1:]...)
				continue
			}
			if len(open) > 0 {
				t.Fatalf("%v are open when somebody else speaks", open)
			}
			for _, call := range values(item.At("tool_calls")) {
				open = append(open, call.At("id").(string))
			}
		}
		if len(open) > 0 {
			t.Fatalf("%v are never answered", open)
		}
		alternates(t, values(anthropic.Messages(list, provider.Options{}).Body.At("messages")), "assistant")
		alternates(t, values(gemini.Contents(list, provider.Options{}).Body.At("contents")), "model")
	})
}

func alternates(t *rapid.T, items []*value.Map, other string) {
	want := map[bool]string{true: "user", false: other}
	for i, item := range items {
		if item.At("role") != want[i%2 == 0] {
			t.Fatalf("message %d is %v's", i, item.At("role"))
		}
	}
}

// Without ids in payloads and requests that wait, what is dropped is what the
// pairs check of the message contract calls an orphan.
func TestOrphansAreThoseOfTheContract(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var list []message.Envelope
		for _, e := range anything(t) {
			if e.Type != message.TypeInputRequired && e.Type != message.TypeApprovalRequired {
				e.Payload.Delete("tool_call_id")
				list = append(list, e)
			}
		}
		var want, got []int
		for _, o := range message.OrphansOf(list) {
			want = append(want, o.Index)
		}
		for _, n := range openai.Chat(list, provider.Options{}).Notes {
			if n.Code == provider.NoteOrphan {
				got = append(got, n.Index)
			}
		}
		if len(got) != len(want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("got %v, want %v", got, want)
			}
		}
	})
}

func values(v any) []*value.Map {
	list, _ := v.([]any)
	found := make([]*value.Map, 0, len(list))
	for _, item := range list {
		found = append(found, item.(*value.Map))
	}
	return found
}

func indexOf(list []string, text string) int {
	for i, s := range list {
		if s == text {
			return i
		}
	}
	return -1
}
