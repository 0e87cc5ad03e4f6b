package plan

import "github.com/parley-hub/parley/message/provider"

// Unnamed notes a name that is not sent.
func Unnamed(e *Entry, notes *provider.Notes) {
	if e.Name != "" {
		notes.Add(e.Index, provider.Dropped, provider.NoteName, "the speaker's name %q is not sent", e.Name)
	}
}

// Speak puts a name in front of a text if the provider has no field for it.
func Speak(e *Entry, o provider.Options, notes *provider.Notes) {
	if e.Name == "" || !o.Speakers || len(e.Blocks) == 0 {
		Unnamed(e, notes)
		return
	}
	prefix := "[" + e.Name + "]: "
	if e.Blocks[0].Kind == Text {
		e.Blocks[0].Text = prefix + e.Blocks[0].Text
		return
	}
	e.Blocks = append([]Block{{Text: prefix}}, e.Blocks...)
}
