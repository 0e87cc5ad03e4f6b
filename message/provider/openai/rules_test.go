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
