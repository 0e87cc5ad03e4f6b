package provider_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/provider"
	"github.com/parley-hub/parley/message/provider/anthropic"
	"github.com/parley-hub/parley/message/provider/gemini"
	"github.com/parley-hub/parley/message/provider/openai"
)

// FuzzReplies gives arbitrary provider output to every reader: none panics,
// what they read is canonical, and it can be written for every provider.
func FuzzReplies(f *testing.F) {
	paths, err := filepath.Glob("*/testdata/*/*.txtar")
	if err != nil || len(paths) == 0 {
		f.Fatal(len(paths), err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for _, section := range txtar.Parse(text).Files {
			if section.Name == "response.json" {
				f.Add(section.Data)
			}
		}
	}
	f.Add([]byte(`{"choices":[7,{"message":{"tool_calls":[null,{"function":[]}]}}],"output":[{"type":"message","content":[5]}]}`))
	f.Add([]byte(`{"output":[{"type":"message","role":"assistant","content":[5]},{"role":"","content":[{}]},{"type":"message","content":"x"}]}`))
	f.Add([]byte(`{"content":[{"type":"tool_use","input":[1]}],"candidates":[{"content":{"parts":[{"functionCall":{"args":[]}}]}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for name, read := range map[string]func([]byte, provider.ReadOptions) (provider.Reply, error){
			"chat": openai.ChatReply, "responses": openai.ResponsesReply, "anthropic": anthropic.Reply, "gemini": gemini.Reply,
		} {
			reply, err := read(data, provider.ReadOptions{})
			if err == nil {
				canonical(t, name, reply.Messages)
			}
		}
		for name, s := range map[string]provider.Stream{
			"chat": openai.NewChatStream(provider.ReadOptions{}), "responses": openai.NewResponsesStream(provider.ReadOptions{}),
			"anthropic": anthropic.NewStream(provider.ReadOptions{}), "gemini": gemini.NewStream(provider.ReadOptions{}),
		} {
			deltas, err := s.Add(data)
			if err == nil {
				canonical(t, name, deltas)
				canonical(t, name, s.Reply().Messages)
			}
		}
	})
}

func canonical(t *testing.T, name string, messages []message.Envelope) {
	t.Helper()
	for _, e := range messages {
		again, err := message.Normalize(e)
		if err != nil || text(again) != text(e) {
			t.Fatalf("%s: %s is not canonical: %v", name, text(e), err)
		}
	}
	for _, m := range mappings {
		m.write(messages, provider.Options{})
	}
}
