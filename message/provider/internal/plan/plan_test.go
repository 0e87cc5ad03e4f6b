package plan_test

import (
	"testing"

	"github.com/parley-hub/parley/message/provider/anthropic"
	"github.com/parley-hub/parley/message/provider/gemini"
	"github.com/parley-hub/parley/message/provider/internal/golden"
	"github.com/parley-hub/parley/message/provider/openai"
)

// The plan is visible in the requests to providers: all of their files hold it.
func TestPlansShowInRequests(t *testing.T) {
	t.Parallel()
	const cases, root = "../../testdata/cases", "../../"
	for dir, m := range map[string]struct {
		write golden.Writer
		read  golden.Reader
	}{
		"openai/testdata/chat":       {openai.Chat, openai.ChatHistory},
		"openai/testdata/responses":  {openai.Responses, openai.ResponsesHistory},
		"anthropic/testdata/request": {anthropic.Messages, anthropic.History},
		"gemini/testdata/request":    {gemini.Contents, gemini.History},
	} {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			golden.Requests(t, cases, root+dir, m.write, m.read)
		})
	}
}
