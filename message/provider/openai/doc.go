// Package openai maps canonical messages to the JSON of OpenAI's two interfaces
// and back: chat completions and responses. Many other servers speak the first
// one too.
//
// It talks to nobody and keeps nothing: what OpenAI wants back verbatim lives
// in the messages' metadata under "openai".
package openai

import (
	"github.com/parley-hub/parley/message/provider"
	"github.com/parley-hub/parley/message/provider/internal/plan"
	"github.com/parley-hub/parley/message/value"
)

// Vendor is the key of OpenAI's own in metadata.
const Vendor = "openai"

// speaker puts a name in front of what is said where it has no field.
func speaker(e *plan.Entry, o provider.Options, notes *provider.Notes) {
	if e.Name == "" {
		return
	}
	if !o.Speakers || len(e.Blocks) == 0 {
		notes.Add(e.Index, provider.Dropped, provider.NoteName, "the speaker's name %q has no place", e.Name)
		return
	}
	prefix := "[" + e.Name + "]: "
	if e.Blocks[0].Kind == plan.Text {
		e.Blocks[0].Text = prefix + e.Blocks[0].Text
		return
	}
	e.Blocks = append([]plan.Block{{Text: prefix}}, e.Blocks...)
}

// failure reads an error object.
func failure(m *value.Map) *provider.Failure {
	code := plan.Str(m, "code")
	if code == "" {
		code = plan.Str(m, "type")
	}
	f := &provider.Failure{Provider: Vendor, Code: code, Message: plan.Str(m, "message")}
	for _, name := range []string{code, plan.Str(m, "type")} {
		switch name {
		case "server_error", "rate_limit_exceeded", "internal_error", "timeout", "overloaded":
			f.Retryable = true
		}
	}
	return f
}

// failed is a reply that is an error.
func failed(m *value.Map) provider.Reply {
	f := failure(m)
	return provider.Reply{
		Messages: []envelope{f.Envelope(m)},
		Finish:   provider.FinishError,
		Failure:  f,
	}
}
