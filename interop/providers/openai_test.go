package providers_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/provider"
	"github.com/parley-hub/parley/message/provider/openai"
	"github.com/parley-hub/parley/message/value"
)

func body(t *testing.T, request provider.Request) []byte {
	t.Helper()
	data, err := request.Body.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func object(t *testing.T, data []byte) *value.Map {
	t.Helper()
	v, err := value.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	return value.MapOrEmpty(v)
}

func TestChatRequests(t *testing.T) {
	t.Parallel()
	eachCase(t, func(t *testing.T, messages []message.Envelope) {
		ours := body(t, openai.Chat(messages, provider.Options{Tools: tools}))
		var params sdk.ChatCompletionNewParams
		decode(t, ours, &params)
		sameJSON(t, members(t, ours, "messages", "tools"), members(t, encode(t, params), "messages", "tools"))
	})
}

// members keeps some members of an object.
func members(t *testing.T, data []byte, keys ...string) []byte {
	t.Helper()
	m, kept := object(t, data), value.New()
	for _, key := range keys {
		if v, ok := m.Get(key); ok {
			kept.Set(key, v)
		}
	}
	out, err := kept.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestResponsesRequests(t *testing.T) {
	t.Parallel()
	eachCase(t, func(t *testing.T, messages []message.Envelope) {
		ours := body(t, openai.Responses(messages, provider.Options{Tools: tools, Previous: "resp_0"}))
		var params responses.ResponseNewParams
		decode(t, ours, &params)
		// Four of the SDK's types have the type message, and it decodes all of
		// them as the one without an id; those with one are held to their own.
		input, _ := object(t, ours).At("input").([]any)
		for i, item := range input {
			m := item.(*value.Map)
			if m.At("role") != "assistant" || !m.Has("id") {
				continue
			}
			text, err := m.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			var output responses.ResponseOutputMessageParam
			decode(t, text, &output)
			sameJSON(t, text, encode(t, output))
			params.Input.OfInputItemList[i] = responses.ResponseInputItemUnionParam{OfOutputMessage: &output}
		}
		keys := []string{"input", "tools", "previous_response_id"}
		sameJSON(t, members(t, ours, keys...), members(t, encode(t, params), keys...))
	})
}

// What the SDK's own constructors write is read.
func TestChatHistoryOfTheSDK(t *testing.T) {
	t.Parallel()
	call := sdk.ChatCompletionMessageToolCallUnionParam{OfFunction: &sdk.ChatCompletionMessageFunctionToolCallParam{
		ID: "call_1",
		Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{
			Name: "harbour_x2f_tides", Arguments: `{"harbour":"Roscoff"}`,
		},
	}}
	asked := sdk.AssistantMessage("I look.")
	asked.OfAssistant.ToolCalls = append(asked.OfAssistant.ToolCalls, call)
	params := sdk.ChatCompletionNewParams{Model: "m", Messages: []sdk.ChatCompletionMessageParamUnion{
		sdk.SystemMessage("Be kind."), sdk.DeveloperMessage("Be brief."), sdk.UserMessage("Tides?"),
		asked, sdk.ToolMessage("05:42", "call_1"), sdk.AssistantMessage("At 05:42."),
		sdk.UserMessage([]sdk.ChatCompletionContentPartUnionParam{
			sdk.TextContentPart("This?"), sdk.ImageContentPart(sdk.ChatCompletionContentPartImageImageURLParam{URL: "https://x.test/a.png"}),
		}),
	}}
	theirs := encode(t, params)
	history := openai.ChatHistory(object(t, theirs), provider.ReadOptions{})
	want := []string{
		"system text: Be kind.", "developer text: Be brief.", "user text: Tides?", "assistant text: I look.",
		`assistant tool_call harbour/tides call_1 {"harbour":"Roscoff"}`, "user tool_result harbour/tides call_1: 05:42",
		"assistant text: At 05:42.", "user multimodal_part",
	}
	if diff := cmp.Diff(want, said(history.Messages)); diff != "" {
		t.Error(diff)
	}
	again := body(t, openai.Chat(history.Messages, provider.Options{}))
	sameJSON(t, again, members(t, theirs, "messages"))
}

// The SDK and we read the same answer alike, and what it makes of an answer to
// send it back is what we send.
func TestChatReplies(t *testing.T) {
	t.Parallel()
	for name, in := range archives(t, providers+"/openai/testdata/chat-reply") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var theirs sdk.ChatCompletion
			decode(t, in["response.json"], &theirs)
			ours, err := openai.ChatReply(in["response.json"], provider.ReadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if len(theirs.Choices) == 0 {
				if ours.Failure == nil {
					t.Error("the SDK sees no answer, and we no error")
				}
				return
			}
			choice := theirs.Choices[0]
			if ours.FinishRaw != choice.FinishReason || ours.ResponseID != theirs.ID || ours.Model != theirs.Model {
				t.Errorf("got %+v", ours)
			}
			usage := provider.Usage{}
			if ours.Usage != nil {
				usage = *ours.Usage
			}
			if usage.Prompt != theirs.Usage.PromptTokens || usage.Completion != theirs.Usage.CompletionTokens || usage.Total != theirs.Usage.TotalTokens {
				t.Errorf("usage: got %+v", usage)
			}
			calls := 0
			for _, e := range ours.Messages {
				if e.Type == message.TypeToolCall && calls < len(choice.Message.ToolCalls) {
					if call := choice.Message.ToolCalls[calls]; call.ID != e.ToolCallID() && call.ID != " " {
						t.Errorf("call %d: got %s, the SDK has %s", calls, e.ToolCallID(), call.ID)
					}
					calls++
				}
			}
			if calls != len(choice.Message.ToolCalls) {
				t.Errorf("%d of %d calls", calls, len(choice.Message.ToolCalls))
			}
		})
	}
}

// The SDK's accumulator adds a stream up to what we do.
func TestChatStreams(t *testing.T) {
	t.Parallel()
	for name, in := range archives(t, providers+"/openai/testdata/chat-stream") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stream := openai.NewChatStream(provider.ReadOptions{})
			var theirs sdk.ChatCompletionAccumulator
			for event, err := range provider.Events(bytes.NewReader(in["stream.sse"]), 0) {
				if err != nil {
					t.Fatal(err)
				}
				if _, err := stream.Add(event); err != nil {
					t.Fatal(err)
				}
				var chunk sdk.ChatCompletionChunk
				decode(t, event, &chunk)
				theirs.AddChunk(chunk)
			}
			reply := stream.Reply()
			var text, refusal string
			var calls []string
			for _, e := range reply.Messages {
				said, _ := e.Text()
				switch {
				case e.Type == message.TypeToolCall:
					parameters, _ := value.Append(nil, e.Payload.At("parameters"))
					calls = append(calls, e.ToolCallID()+string(parameters))
				case e.Metadata.At("refusal") == true:
					refusal += said
				case e.Type == message.TypeText:
					text += said
				}
			}
			choice := theirs.Choices[0].Message
			var want []string
			for _, call := range choice.ToolCalls {
				want = append(want, call.ID+call.Function.Arguments)
			}
			if text != choice.Content || refusal != choice.Refusal {
				t.Errorf("got %q and %q, the SDK has %q and %q", text, refusal, choice.Content, choice.Refusal)
			}
			if diff := cmp.Diff(want, calls); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestResponsesReplies(t *testing.T) {
	t.Parallel()
	for name, in := range archives(t, providers+"/openai/testdata/responses-reply") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var theirs responses.Response
			decode(t, in["response.json"], &theirs)
			ours, err := openai.ResponsesReply(in["response.json"], provider.ReadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var text string
			var calls, want []string
			for _, e := range ours.Messages {
				switch e.Type {
				case message.TypeText:
					if said, _ := e.Text(); e.Metadata.At("refusal") != true {
						text += said
					}
				case message.TypeToolCall:
					calls = append(calls, e.ToolCallID())
				}
			}
			for _, item := range theirs.Output {
				if item.Type == "function_call" {
					want = append(want, item.AsFunctionCall().CallID)
				}
			}
			if text != theirs.OutputText() || ours.ResponseID != theirs.ID || ours.FinishRaw != string(theirs.Status) {
				t.Errorf("got %q %+v, the SDK has %q", text, ours, theirs.OutputText())
			}
			if diff := cmp.Diff(want, calls); diff != "" {
				t.Error(diff)
			}
			if ours.Usage != nil && (ours.Usage.Prompt != theirs.Usage.InputTokens || ours.Usage.Completion != theirs.Usage.OutputTokens || ours.Usage.Total != theirs.Usage.TotalTokens) {
				t.Errorf("usage: got %+v", ours.Usage)
			}
			// Sent back, it is what came, and the SDK takes it. Texts come first.
			if name == "calls" || ours.Failure != nil {
				return
			}
			back := body(t, openai.Responses(ours.Messages, provider.Options{}))
			var params responses.ResponseNewParams
			decode(t, back, &params)
			if len(calls) == 0 {
				sent := object(t, back).At("input")
				came := object(t, in["response.json"]).At("output")
				a, _ := value.Append(nil, sent)
				b, _ := value.Append(nil, came)
				sameJSON(t, a, b)
			}
		})
	}
}
