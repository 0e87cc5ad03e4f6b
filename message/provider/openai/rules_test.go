package openai_test

import (
	"strings"
	"testing"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/provider"
	"github.com/parley-hub/parley/message/provider/openai"
	"github.com/parley-hub/parley/message/value"
	"github.com/parley-hub/parley/message/value/valuetest"
)

func envelopes(t testing.TB, text string) []message.Envelope {
	t.Helper()
	list, err := message.NormalizeAll(valuetest.Decode(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// A part of a kind that is not known is kept as it was; what is no object is
// no part.
func TestChatKeepsUnknownParts(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`[{"type":"map","map":{"at":[48.7,-3.9]}}]`: `[{"type":"provider_block","provider":"openai_chat","block":{"type":"map","map":{"at":[48.7,-3.9]}}}]`,
		`[{"type":"text","text":"a"},{"x":1},7]`:    `[{"type":"text","text":"a"},{"type":"provider_block","provider":"openai_chat","block":{"x":1}}]`,
		`[7,null,"a",[1]]`:                          `null`,
	} {
		body := valuetest.Decode(t, `{"messages":[{"role":"user","content":`+in+`}]}`).(*value.Map)
		history := openai.ChatHistory(body, provider.ReadOptions{})
		var content any
		if len(history.Messages) == 1 {
			content = history.Messages[0].Content
		}
		if got := valuetest.Write(content); got != want || len(history.Messages) > 1 {
			t.Errorf("%s: got %s in %d messages, want %s", in, got, len(history.Messages), want)
		}
	}
}

func TestChatNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 64)
	for name, legal := range map[string]bool{
		"azAZ09_-": true, "a": true, "z": true, "A": true, "Z": true, "0": true, "9": true, long: true,
		"`": false, "{": false, "@": false, "[": false, "/": false, ":": false, "a b": false, "é": false, long + "n": false,
	} {
		list := envelopes(t, `[{"role":"user","content":"hi"}]`)
		list[0].Metadata.Set("name", name)
		request := openai.Chat(list, provider.Options{})
		want := `[{"role":"user","content":"hi"}]`
		if legal {
			want = `[{"role":"user","content":"hi","name":"` + name + `"}]`
		}
		if got := valuetest.Write(request.Body.At("messages")); got != want {
			t.Errorf("%q: got %s, want %s", name, got, want)
		}
	}
}

func TestChatBeginsWithACall(t *testing.T) {
	t.Parallel()
	request := openai.Chat(envelopes(t, `[
		{"version":1,"type":"tool_call","payload":{"tool_name":"tides"},"metadata":{"tool_call_id":"c1"}},
		{"version":1,"type":"tool_result","role":"user","content":"high","payload":{"tool_name":"tides"},"metadata":{"tool_call_id":"c1"}}]`), provider.Options{})
	const want = `[{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"tides","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c1","content":"high"}]`
	if got := valuetest.Write(request.Body.At("messages")); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// An item without a type is a message if it has a role.
func TestResponsesReadsShortMessages(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"role":"user","content":"hi"}`:                  `user hi`,
		`{"type":"message","role":"user","content":"hi"}`: `user hi`,
		`{"content":"hi"}`:                                `assistant`, // kept as it is, beside an empty text
	} {
		history := openai.ResponsesHistory(valuetest.Decode(t, `{"input":[`+in+`]}`).(*value.Map), provider.ReadOptions{})
		got := ""
		for _, e := range history.Messages {
			got += e.Role + " " + value.Text(e.Content)
		}
		if strings.TrimSpace(got) != want {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
}

// A refusal may be a part of the content; it stays a refusal.
func TestChatReadsRefusals(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`"content":[{"type":"refusal","refusal":"No."}]`:                                                         `[{"role":"assistant","content":null,"refusal":"No."}]`,
		`"content":[{"type":"text","text":"Hm."},{"type":"refusal","refusal":"No."}]`:                            `[{"role":"assistant","content":"Hm.","refusal":"No."}]`,
		`"content":[{"type":"refusal","refusal":"No."},{"type":"refusal","refusal":"Never."}]`:                   `[{"role":"assistant","content":null,"refusal":"No.\n\nNever."}]`,
		`"content":[{"type":"refusal","refusal":"No."}],"refusal":"Never."`:                                      `[{"role":"assistant","content":null,"refusal":"No.\n\nNever."}]`,
		`"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]`:                                      `[{"role":"assistant","content":"a\n\nb"}]`,
		`"content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"https://x.test/a.png"}}]`: `[{"role":"assistant","content":"a"}]`,
	} {
		body := valuetest.Decode(t, `{"messages":[{"role":"assistant",`+in+`}]}`).(*value.Map)
		history := openai.ChatHistory(body, provider.ReadOptions{})
		if got := valuetest.Write(openai.Chat(history.Messages, provider.Options{}).Body.At("messages")); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
		if noted := len(history.Notes) > 0; noted != strings.Contains(in, "image_url") {
			t.Errorf("%s: noted %v", in, history.Notes)
		}
	}
	two := envelopes(t, `[{"role":"assistant","content":[{"type":"refusal","text":"No."},{"type":"refusal","text":"Never."}]}]`)
	if got := valuetest.Write(openai.Chat(two, provider.Options{}).Body.At("messages")); got != `[{"role":"assistant","content":null,"refusal":"No.\n\nNever."}]` {
		t.Error(got)
	}
}

// What a stream said before it was cut keeps its kind and its parts.
func TestResponsesStreamThatWasCut(t *testing.T) {
	t.Parallel()
	const added = `{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m1","role":"assistant","content":[]}}`
	for name, c := range map[string]struct {
		events []string
		want   string
	}{
		"a refusal": {
			[]string{`{"type":"response.refusal.delta","output_index":0,"content_index":0,"delta":"I ca"}`, `{"type":"response.refusal.delta","output_index":0,"content_index":0,"delta":"nnot"}`},
			`refusal I cannot`,
		},
		"two parts": {
			[]string{
				`{"type":"response.output_text.delta","output_index":0,"content_index":1,"delta":"two"}`, `{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"on"}`,
				`{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"e"}`,
			},
			`one|two`,
		},
		"a text and a refusal": {
			[]string{`{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"Hm."}`, `{"type":"response.refusal.delta","output_index":0,"content_index":1,"delta":"No"}`},
			`Hm.|refusal No`,
		},
		"nothing yet": {nil, ``},
	} {
		stream := openai.NewResponsesStream(provider.ReadOptions{})
		for _, event := range append([]string{added}, c.events...) {
			if _, err := stream.Add([]byte(event)); err != nil {
				t.Fatal(err)
			}
		}
		var said []string
		for _, e := range stream.Reply().Messages {
			kind := ""
			if e.Metadata.At("refusal") == true {
				kind = "refusal "
			}
			said = append(said, kind+value.Text(e.Content))
		}
		if got := strings.Join(said, "|"); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// A call that is not of a function is given back as it was.
func TestChatGivesCustomCallsBack(t *testing.T) {
	t.Parallel()
	const want = `[{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"custom","custom":{"name":"sql","input":"select 1"}},` +
		`{"id":"c2","type":"function","function":{"name":"t","arguments":"{\"a\":"}}]},` +
		`{"role":"tool","tool_call_id":"c1","content":"1"},{"role":"tool","tool_call_id":"c2","content":"2"}]`
	history := openai.ChatHistory(valuetest.Decode(t, `{"messages":`+want+`}`).(*value.Map), provider.ReadOptions{})
	if got := valuetest.Write(openai.Chat(history.Messages, provider.Options{}).Body.At("messages")); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if e := history.Messages[0]; e.ToolName() != "sql" || e.Payload.At("arguments_text") != "select 1" {
		t.Errorf("read was %+v", e)
	}
}

// Files whose type is not known keep their form.
func TestFilesWithoutATypeKeepTheirForm(t *testing.T) {
	t.Parallel()
	const chat = `[{"role":"user","content":[{"type":"file","file":{"file_data":"JVBE","filename":"a.pdf"}}]}]`
	history := openai.ChatHistory(valuetest.Decode(t, `{"messages":`+chat+`}`).(*value.Map), provider.ReadOptions{})
	if got := valuetest.Write(openai.Chat(history.Messages, provider.Options{}).Body.At("messages")); got != chat {
		t.Errorf("got  %s\nwant %s", got, chat)
	}
	const items = `[{"type":"message","role":"user","content":[{"type":"input_file","file_data":"JVBE","filename":"a.pdf"}]}]`
	history = openai.ResponsesHistory(valuetest.Decode(t, `{"input":`+items+`}`).(*value.Map), provider.ReadOptions{})
	if got := valuetest.Write(openai.Responses(history.Messages, provider.Options{}).Body.At("input")); got != items {
		t.Errorf("got  %s\nwant %s", got, items)
	}
}
