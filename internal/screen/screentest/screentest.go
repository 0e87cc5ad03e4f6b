// Package screentest checks the screens of models in tests.
package screentest

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// Screen is a model under test. Its zero value lacks T and Model.
type Screen struct {
	T     *testing.T
	Model tea.Model
	Cmd   tea.Cmd // of the newest message
}

// Send has the model take messages, one after another.
func (s *Screen) Send(messages ...tea.Msg) {
	for _, msg := range messages {
		s.Model, s.Cmd = s.Model.Update(msg)
	}
}

// Type presses the keys of a text.
func (s *Screen) Type(text string) {
	for _, r := range text {
		s.Send(tea.KeyPressMsg{Code: r, Text: string(r)})
	}
}

// Text returns the screen without its colours.
func (s *Screen) Text() string { return ansi.Strip(s.Model.View().Content) }

// Shows checks that each text is on the screen.
func (s *Screen) Shows(texts ...string) {
	s.T.Helper()
	for _, text := range texts {
		if !strings.Contains(s.Text(), text) {
			s.T.Errorf("the screen does not show %q:\n%s", text, s.Text())
		}
	}
}

// Hides checks that a text is not on the screen.
func (s *Screen) Hides(text string) {
	s.T.Helper()
	if strings.Contains(s.Text(), text) {
		s.T.Errorf("the screen shows %q:\n%s", text, s.Text())
	}
}
