package anthropic_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/provider"
	"github.com/parley-hub/parley/message/provider/anthropic"
	"github.com/parley-hub/parley/message/value"
	"github.com/parley-hub/parley/message/value/valuetest"
)

// Only what is said in a system message can have moved.
func TestSystemMessagesMove(t *testing.T) {
	t.Parallel()
	const (
		user  = `{"role":"user","content":"hi"}`
		text  = `{"role":"system","content":"Be brief."}`
		image = `{"role":"system","content":[{"type":"image_url","image_url":{"url":"https://pics.test/a.png"}}]}`
		moved = "a system message is moved before the conversation"
		media = "media are accepted from users and tools only"
	)
	for name, c := range map[string]struct {
		in   string
		want []string
	}{
		"first":             {"[" + text + "," + user + "]", nil},
		"behind":            {"[" + user + "," + text + "]", []string{"message 1: moved: " + moved}},
		"nothing in it":     {"[" + user + "," + image + "]", []string{"message 1: dropped: " + media}},
		"nothing, in front": {"[" + image + "," + user + "]", []string{"message 0: dropped: " + media}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, err := value.Decode([]byte(c.in))
			if err != nil {
				t.Fatal(err)
			}
			messages, err := message.NormalizeAll(v)
			if err != nil {
				t.Fatal(err)
			}
			var notes []string
			for _, n := range anthropic.Messages(messages, provider.Options{}).Notes {
				notes = append(notes, n.String())
			}
			if diff := cmp.Diff(c.want, notes); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The interface refuses a request in which a text is white space alone.
func TestBlankTextsAreLeftOut(t *testing.T) {
	t.Parallel()
	const (
		hi   = `{"role":"user","content":"hi"}`
		call = `{"role":"assistant","content":"","metadata":{"type":"tool_call","tool_name":"t","parameters":{},"tool_call_id":"c"}}`
	)
	image := `{"type":"image_url","image_url":{"url":"https://pics.test/a.png"}}`
	for name, c := range map[string]struct{ in, want string }{
		"of a user":      {`[` + hi + `,{"role":"user","content":" \n"}]`, `[{"role":"user","content":[{"type":"text","text":"hi"}]}]`},
		"of a system":    {`[{"role":"system","content":"\t"},` + hi + `]`, `[{"role":"user","content":[{"type":"text","text":"hi"}]}]`},
		"of a model":     {`[` + hi + `,{"role":"assistant","content":" "}]`, `[{"role":"user","content":[{"type":"text","text":"hi"}]}]`},
		"beside another": {`[{"role":"user","content":[" ","hi"]}]`, `[{"role":"user","content":[{"type":"text","text":"hi"}]}]`},
		"of a result": {
			`[` + hi + `,` + call + `,{"role":"tool","content":[" ",` + image + `],"metadata":{"type":"tool_result","tool_call_id":"c"}}]`,
			`[{"role":"user","content":[{"type":"text","text":"hi"}]},` +
				`{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"t","input":{}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"image","source":{"type":"url","url":"https://pics.test/a.png"}}],"is_error":false}]}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			messages, err := message.NormalizeAll(valuetest.Decode(t, c.in))
			if err != nil {
				t.Fatal(err)
			}
			request := anthropic.Messages(messages, provider.Options{})
			if got := valuetest.Write(request.Body.At("messages")); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			const want = "a text of white space alone is not accepted"
			if len(request.Notes) != 1 || request.Notes[0].Text != want || request.Body.Has("system") {
				t.Errorf("%v, %v", request.Notes, request.Body.At("system"))
			}
		})
	}
}

// Usage that was not counted is not reported as zero.
func TestStreamedUsage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		chunks []string
		want   string
	}{
		"none": {
			[]string{`{"type":"message_start","message":{"role":"assistant","content":[]}}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`},
			"",
		},
		"at the end": {
			[]string{`{"type":"message_start","message":{"role":"assistant","content":[]}}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5}}`},
			`{"prompt_tokens":0,"completion_tokens":5,"total_tokens":5} {"output_tokens":5}`,
		},
		"at both ends": {
			[]string{`{"type":"message_start","message":{"role":"assistant","content":[],"usage":{"input_tokens":3,"output_tokens":1}}}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5}}`},
			`{"prompt_tokens":3,"completion_tokens":5,"total_tokens":8} {"input_tokens":3,"output_tokens":5}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stream := anthropic.NewStream(provider.ReadOptions{})
			for _, chunk := range c.chunks {
				if _, err := stream.Add([]byte(chunk)); err != nil {
					t.Fatal(err)
				}
			}
			got := ""
			if u := stream.Reply().Usage; u != nil {
				got = valuetest.Write(u.Canonical()) + " " + valuetest.Write(u.Raw)
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
