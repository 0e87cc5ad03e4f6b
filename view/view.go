// Package view projects a channel's log onto one participant: who said what,
// as a model or a person should read it. A projection is a deterministic
// function of its input and shows nothing that the participant may not see. It
// never reads a log itself.
package view

import (
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
)

// View is one way to project a log.
type View interface {
	Name() string
	Project(in Input) []Event
}

// Input is all that a projection depends on.
type Input struct {
	Log         []*envelope.Envelope
	Participant string
	// Render turns envelopes into text; nil shows texts only.
	Render channel.Renderer
	// Visible reports what the participant may read; nil applies AG2's audience rule.
	Visible func(*envelope.Envelope) bool
	// Adapter and Channel say how the log reads as items; without them only the
	// hub's own envelopes are known.
	Adapter channel.Adapter
	Channel *channel.Metadata
	// Name resolves an id to a registered name; nil, and an empty answer, keep
	// the id.
	Name func(id string) string
}

// Event is one entry of a projection.
type Event struct {
	Kind Kind
	Text string
	// Elided is how many envelopes a summary replaces.
	Elided int
	// Content is set only by an application's own views, for what is not text.
	Content any
}

// Kind says who is speaking, from the participant's point of view.
type Kind int

const (
	User      Kind = iota // somebody else
	Assistant             // the participant itself
	Summary               // what the window left out
)

func (k Kind) String() string {
	switch k {
	case User:
		return "user"
	case Assistant:
		return "assistant"
	case Summary:
		return "summary"
	}
	return "unknown"
}

const summaryHead = "[Summary of earlier conversation]\n"

// Message returns the event as a model gets it: a summary is a user's message
// under a heading.
func (e Event) Message() (Kind, string) {
	if e.Kind == Summary {
		return User, summaryHead + e.Text
	}
	return e.Kind, e.Text
}

// visible reports whether the participant may read an envelope.
func (in *Input) visible(e *envelope.Envelope) bool {
	if in.Visible != nil {
		return in.Visible(e)
	}
	return e.VisibleTo(in.Participant)
}

// render returns the text of an envelope, if it is shown.
func (in *Input) render(e *envelope.Envelope) (string, bool) {
	if in.Render != nil {
		return in.Render.Render(e)
	}
	return TextOnly{}.Render(e)
}

func (in *Input) name(id string) string {
	if in.Name != nil {
		if name := in.Name(id); name != "" {
			return name
		}
	}
	return id
}
