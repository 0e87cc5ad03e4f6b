package providers_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/provider"
	"github.com/parley-hub/parley/message/provider/gemini"
)

// geminiRequest is the part of a request that the SDK has types for.
type geminiRequest struct {
	SystemInstruction *genai.Content   `json:"systemInstruction,omitempty"`
	Contents          []*genai.Content `json:"contents"`
	Tools             []*genai.Tool    `json:"tools,omitempty"`
}

func TestGeminiRequests(t *testing.T) {
	t.Parallel()
	eachCase(t, func(t *testing.T, messages []message.Envelope) {
		ours := body(t, gemini.Contents(messages, provider.Options{Tools: tools}))
		ours = floats(ours)
		var params geminiRequest
		decode(t, ours, &params)
		sameJSON(t, withoutEmpty(ours), withoutEmpty(encode(t, params)))
	})
}

// withoutEmpty leaves out empty arguments: the SDK does not write them.
func withoutEmpty(data []byte) []byte {
	return bytes.ReplaceAll(data, []byte(`,"args":{}`), nil)
}

// What the SDK's own constructors write is read.
func TestGeminiHistoryOfTheSDK(t *testing.T) {
	t.Parallel()
	call := genai.NewPartFromFunctionCall("harbour_x2f_tides", map[string]any{"harbour": "Roscoff"})
	call.FunctionCall.ID, call.ThoughtSignature = "fc-1", []byte("sig")
	answer := genai.NewPartFromFunctionResponse("harbour_x2f_tides", map[string]any{"error": "no station"})
	answer.FunctionResponse.ID = "fc-1"
	request := geminiRequest{
		SystemInstruction: genai.NewContentFromText("Be kind.", genai.RoleUser),
		Contents: []*genai.Content{
			genai.NewContentFromText("Tides?", genai.RoleUser),
			genai.NewContentFromParts([]*genai.Part{{Text: "Hm.", Thought: true}, genai.NewPartFromText("I look."), call}, genai.RoleModel),
			genai.NewContentFromParts([]*genai.Part{answer}, genai.RoleUser),
			genai.NewContentFromText("Unknown.", genai.RoleModel),
			genai.NewContentFromParts([]*genai.Part{
				genai.NewPartFromText("This?"), genai.NewPartFromBytes([]byte("png"), "image/png"), genai.NewPartFromURI("gs://a/b.pdf", "application/pdf"),
			}, genai.RoleUser),
		},
	}
	request.SystemInstruction.Role = ""
	theirs := encode(t, request)
	history := gemini.History(object(t, theirs), provider.ReadOptions{})
	want := []string{
		"system text: Be kind.", "user text: Tides?", "assistant text: I look.",
		`assistant tool_call harbour/tides fc-1 {"harbour":"Roscoff"}`,
		"user tool_result harbour/tides fc-1: no station", "assistant text: Unknown.", "user multimodal_part",
	}
	if diff := cmp.Diff(want, said(history.Messages)); diff != "" {
		t.Error(diff)
	}
	sameJSON(t, body(t, gemini.Contents(history.Messages, provider.Options{})), theirs)
}

// What the SDK reads and writes again is read like what came.
func TestGeminiReplies(t *testing.T) {
	t.Parallel()
	for name, in := range archives(t, providers+"/gemini/testdata/reply") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			response := floats(in["response.json"])
			var theirs genai.GenerateContentResponse
			decode(t, response, &theirs)
			ours, err := gemini.Reply(response, provider.ReadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if len(theirs.Candidates) == 0 {
				if ours.Failure == nil {
					t.Error("the SDK sees no answer, and we no error")
				}
				return
			}
			again, err := gemini.Reply(encode(t, theirs), provider.ReadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(said(ours.Messages), said(again.Messages)); diff != "" && name != "media" {
				t.Errorf("encoded by the SDK (-came +encoded):\n%s", diff)
			}
			if ours.FinishRaw != string(theirs.Candidates[0].FinishReason) || ours.ResponseID != theirs.ResponseID || ours.Model != theirs.ModelVersion {
				t.Errorf("got %+v", ours)
			}
			var calls []string
			for _, e := range ours.Messages {
				if e.Type == message.TypeToolCall {
					calls = append(calls, e.ToolName())
				}
			}
			if len(calls) != len(theirs.FunctionCalls()) {
				t.Errorf("got %v, the SDK has %d", calls, len(theirs.FunctionCalls()))
			}
			if u := theirs.UsageMetadata; u != nil && (ours.Usage.Prompt != int64(u.PromptTokenCount) ||
				ours.Usage.Completion != int64(u.CandidatesTokenCount+u.ThoughtsTokenCount) || ours.Usage.Total != int64(u.TotalTokenCount)) {
				t.Errorf("usage: got %+v", ours.Usage)
			}
		})
	}
}

// Each chunk is read by the SDK; the texts of all are the text of the reply.
func TestGeminiStreams(t *testing.T) {
	t.Parallel()
	in := archives(t, providers+"/gemini/testdata/stream")["calls"]
	stream := gemini.NewStream(provider.ReadOptions{})
	var want string
	for event, err := range provider.Events(bytes.NewReader(in["stream.sse"]), 0) {
		if err != nil {
			t.Fatal(err)
		}
		var chunk genai.GenerateContentResponse
		decode(t, event, &chunk)
		want += chunk.Text()
		if _, err := stream.Add(encode(t, chunk)); err != nil {
			t.Fatal(err)
		}
	}
	var text string
	for _, e := range stream.Reply().Messages {
		said, _ := e.Text()
		text += said
	}
	if text != want {
		t.Errorf("got %q, the SDK has %q", text, want)
	}
}
