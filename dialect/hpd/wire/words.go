package wire

import (
	"strings"

	"github.com/parley-hub/parley/view/branch"
)

// Words splits the text of messages after each space, as a model streams it.
func Words(messages []ChatMessage) []string {
	var text strings.Builder
	for _, m := range messages {
		for _, c := range m.Contents {
			if c.Type == branch.TextContent && c.Text != nil {
				text.WriteString(*c.Text)
			}
		}
	}
	return strings.SplitAfter(text.String(), " ")
}
