package gemini_test

import (
	"testing"

	"github.com/parley-hub/parley/message/provider"
	"github.com/parley-hub/parley/message/provider/gemini"
	"github.com/parley-hub/parley/message/provider/internal/golden"
)

const cases = "../testdata/cases"

func TestRequests(t *testing.T) {
	t.Parallel()
	golden.Requests(t, cases, "testdata/request", gemini.Contents, gemini.History)
}

func TestReplies(t *testing.T) {
	t.Parallel()
	golden.Replies(t, "testdata/reply", gemini.Reply)
}

func TestStreams(t *testing.T) {
	t.Parallel()
	golden.Streams(t, "testdata/stream", func(o provider.ReadOptions) provider.Stream { return gemini.NewStream(o) })
}
