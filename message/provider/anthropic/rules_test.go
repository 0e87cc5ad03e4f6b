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
