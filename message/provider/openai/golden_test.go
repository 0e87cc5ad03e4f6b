package openai_test

import (
	"testing"

	"github.com/parley-hub/parley/message/provider"
	"github.com/parley-hub/parley/message/provider/internal/golden"
	"github.com/parley-hub/parley/message/provider/openai"
)

const cases = "../testdata/cases"

func TestChatRequests(t *testing.T) {
	t.Parallel()
	golden.Requests(t, cases, "testdata/chat", openai.Chat, openai.ChatHistory)
}

func TestResponsesRequests(t *testing.T) {
	t.Parallel()
	golden.Requests(t, cases, "testdata/responses", openai.Responses, openai.ResponsesHistory)
}

func TestChatReplies(t *testing.T) {
	t.Parallel()
	golden.Replies(t, "testdata/chat-reply", openai.ChatReply)
}

func TestResponsesReplies(t *testing.T) {
	t.Parallel()
	golden.Replies(t, "testdata/responses-reply", openai.ResponsesReply)
}

func TestChatStreams(t *testing.T) {
	t.Parallel()
	golden.Streams(t, "testdata/chat-stream", func(o provider.ReadOptions) provider.Stream { return openai.NewChatStream(o) })
}

func TestResponsesStreams(t *testing.T) {
	t.Parallel()
	golden.Streams(t, "testdata/responses-stream", func(o provider.ReadOptions) provider.Stream { return openai.NewResponsesStream(o) })
}
