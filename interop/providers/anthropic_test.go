package providers_test

import (
	"bytes"
	"testing"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/provider"
	"github.com/parley-hub/parley/message/provider/anthropic"
	"github.com/parley-hub/parley/message/value"
)

func TestAnthropicRequests(t *testing.T) {
	t.Parallel()
	eachCase(t, func(t *testing.T, messages []message.Envelope) {
		ours := body(t, anthropic.Messages(messages, provider.Options{Tools: tools}))
		// The interface without its betas knows no files by id.
		ours = bytes.ReplaceAll(ours, []byte(`{"type":"file","file_id":"file-img"}`), []byte(`{"type":"url","url":"file-img"}`))
		ours = bytes.ReplaceAll(ours, []byte(`{"type":"file","file_id":"file-7"}`), []byte(`{"type":"url","url":"file-7"}`))
		ours = floats(ours)
		var params sdk.MessageNewParams
		decode(t, ours, &params)
		keys := []string{"system", "messages", "tools"}
		sameJSON(t, members(t, ours, keys...), members(t, encode(t, params), keys...))
	})
}

// What the SDK's own constructors write is read.
func TestAnthropicHistoryOfTheSDK(t *testing.T) {
	t.Parallel()
	params := sdk.MessageNewParams{
		Model: "m", MaxTokens: 1, System: []sdk.TextBlockParam{{Text: "Be kind."}},
		Messages: []sdk.MessageParam{
			sdk.NewUserMessage(sdk.NewTextBlock("Tides?")),
			sdk.NewAssistantMessage(sdk.NewThinkingBlock("sig==", "Tides."), sdk.NewTextBlock("I look."),
				sdk.NewToolUseBlock("toolu_1", map[string]any{"harbour": "Roscoff"}, "harbour_x2f_tides")),
			sdk.NewUserMessage(sdk.NewToolResultBlock("toolu_1", "no station", true), sdk.NewTextBlock("And this?"),
				sdk.NewImageBlockBase64("image/png", "iVBORw==")),
		},
	}
	theirs := encode(t, params)
	history := anthropic.History(object(t, theirs), provider.ReadOptions{})
	want := []string{
		"system text: Be kind.", "user text: Tides?", "assistant text: I look.",
		`assistant tool_call harbour/tides toolu_1 {"harbour":"Roscoff"}`,
		"user tool_result harbour/tides toolu_1: no station", "user multimodal_part",
	}
	if diff := cmp.Diff(want, said(history.Messages)); diff != "" {
		t.Error(diff)
	}
	again := object(t, body(t, anthropic.Messages(history.Messages, provider.Options{})))
	var reread sdk.MessageNewParams
	text, err := again.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	decode(t, text, &reread)
	// The SDK writes a result's text as a block, we as the string it may be.
	for i := range reread.Messages {
		for _, block := range reread.Messages[i].Content {
			if r := block.OfToolResult; r != nil && len(r.Content) != 1 {
				t.Errorf("a result became %d blocks", len(r.Content))
			}
		}
	}
	sameJSON(t, members(t, encode(t, reread), "system", "messages"), members(t, theirs, "system", "messages"))
}

// The SDK and we read the same answer alike, and what it makes of an answer to
// send it back is what we send.
func TestAnthropicReplies(t *testing.T) {
	t.Parallel()
	for name, in := range archives(t, providers+"/anthropic/testdata/reply") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ours, err := anthropic.Reply(in["response.json"], provider.ReadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if ours.Failure != nil {
				return
			}
			var theirs sdk.Message
			decode(t, in["response.json"], &theirs)
			compareAnthropic(t, ours, &theirs)
			back := anthropic.Messages(answered(t, ours.Messages), provider.Options{}).Body.At("messages").([]any)
			text, err := value.Append(nil, back[1]) // the opening stands first
			if err != nil {
				t.Fatal(err)
			}
			var sent sdk.MessageParam
			decode(t, text, &sent)
			sameJSON(t, encode(t, sent), encode(t, theirs.ToParam()))
		})
	}
}

func compareAnthropic(t *testing.T, ours provider.Reply, theirs *sdk.Message) {
	t.Helper()
	var text, wantText string
	var calls, wantCalls []string
	for _, e := range ours.Messages {
		said, _ := e.Text()
		text += said
		if e.Type == message.TypeToolCall {
			calls = append(calls, e.ToolCallID())
		}
	}
	for _, block := range theirs.Content {
		switch block := block.AsAny().(type) {
		case sdk.TextBlock:
			wantText += block.Text
		case sdk.ToolUseBlock:
			wantCalls = append(wantCalls, block.ID)
		}
	}
	if text != wantText || ours.ResponseID != theirs.ID || ours.FinishRaw != string(theirs.StopReason) || ours.Model != theirs.Model {
		t.Errorf("got %q %+v, the SDK has %q", text, ours, wantText)
	}
	if diff := cmp.Diff(wantCalls, calls); diff != "" {
		t.Error(diff)
	}
	if ours.Usage != nil {
		u := theirs.Usage
		if ours.Usage.Prompt != u.InputTokens+u.CacheCreationInputTokens+u.CacheReadInputTokens || ours.Usage.Completion != u.OutputTokens {
			t.Errorf("usage: got %+v", ours.Usage)
		}
	}
}

// The SDK adds a stream up to what we do.
func TestAnthropicStreams(t *testing.T) {
	t.Parallel()
	for name, in := range archives(t, providers+"/anthropic/testdata/stream") {
		if name == "cut" || name == "error" {
			continue // the SDK gives these up, we keep what came
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stream := anthropic.NewStream(provider.ReadOptions{})
			var theirs sdk.Message
			for event, err := range provider.Events(bytes.NewReader(in["stream.sse"]), 0) {
				if err != nil {
					t.Fatal(err)
				}
				if _, err := stream.Add(event); err != nil {
					t.Fatal(err)
				}
				var chunk sdk.MessageStreamEventUnion
				decode(t, event, &chunk)
				if chunk.Type == "ping" {
					continue
				}
				if err := theirs.Accumulate(chunk); err != nil {
					t.Fatal(err)
				}
			}
			compareAnthropic(t, stream.Reply(), &theirs)
		})
	}
}
