package screen

import (
	"charm.land/bubbles/v2/textinput"
)

// maxInput bounds what is typed into an input line.
const maxInput = 64 << 10

// NewInput returns an input line with the terminal's own cursor. It never runs
// a program to paste; terminals paste by themselves.
func NewInput(prompt string) textinput.Model {
	in := textinput.New()
	in.Prompt = prompt
	in.CharLimit = maxInput
	in.SetVirtualCursor(false)
	in.SetStyles(textinput.Styles{})
	in.KeyMap.Paste.SetEnabled(false)
	return in
}
