package view

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
)

// Names of the four transcripts.
const (
	FullTranscript       = "full_transcript"
	NamedTranscript      = "named_transcript"
	WindowedSummary      = "windowed_summary"
	NamedWindowedSummary = "named_windowed_summary"
)

// Transcript is the view behind all four names: with or without a window, with
// or without the speakers' names. Its zero value shows everything, unnamed.
type Transcript struct {
	recent int // 0: all
	named  bool
}

// Full shows every message.
func Full() Transcript { return Transcript{} }

// Named shows every message, those of others under their names.
func Named() Transcript { return Transcript{named: true} }

// Windowed shows the last recent messages after one line about the earlier ones.
func Windowed(recent int) (Transcript, error) {
	if recent < 1 {
		return Transcript{}, fault.New(fault.Invalid, "recent_n is how many messages a window shows: at least 1, not %d", recent)
	}
	return Transcript{recent: recent}, nil
}

// NamedWindowed is Windowed with the names of the others.
func NamedWindowed(recent int) (Transcript, error) {
	t, err := Windowed(recent)
	t.named = err == nil
	return t, err
}

// Window returns the size that fits a channel: ten messages for a pair, two for
// each of a larger group.
func Window(participants int) int {
	if participants == 2 {
		return 10
	}
	return GroupWindow(participants)
}

// GroupWindow is two messages for each participant and at least four.
func GroupWindow(participants int) int { return max(2*participants, 4) }

// Name returns the transcript's name in manifests.
func (t Transcript) Name() string {
	switch {
	case t.recent == 0 && t.named:
		return NamedTranscript
	case t.recent == 0:
		return FullTranscript
	case t.named:
		return NamedWindowedSummary
	}
	return WindowedSummary
}

// Recent returns the size of the window; 0 shows all.
func (t Transcript) Recent() int { return t.recent }

type line struct {
	sender, text string
}

// Project first leaves out what may not be seen, then what has no text, and
// only then cuts the window.
func (t Transcript) Project(in Input) []Event {
	lines := in.lines()
	var events []Event
	if t.recent > 0 && len(lines) > t.recent {
		cut := len(lines) - t.recent
		events = append(events, t.summary(&in, lines[:cut]))
		lines = lines[cut:]
	}
	for _, l := range lines {
		switch {
		case l.sender == in.Participant:
			events = append(events, Event{Kind: Assistant, Text: l.text})
		case t.named:
			events = append(events, Event{Text: "[" + in.name(l.sender) + "]: " + l.text})
		default:
			events = append(events, Event{Text: l.text})
		}
	}
	return events
}

func (in *Input) lines() []line {
	var lines []line
	for _, e := range in.Log {
		if text, ok := in.show(e); ok {
			lines = append(lines, line{e.Sender, text})
		}
	}
	return lines
}

func (in *Input) show(e *envelope.Envelope) (string, bool) {
	if !in.visible(e) {
		return "", false
	}
	return in.render(e)
}

func (t Transcript) summary(in *Input, elided []line) Event {
	seen := map[string]bool{}
	for _, l := range elided {
		speaker := l.sender
		if t.named {
			speaker = in.name(speaker)
		}
		seen[speaker] = true
	}
	speakers := slices.Sorted(maps.Keys(seen))
	plural := "s"
	if len(elided) == 1 {
		plural = ""
	}
	return Event{
		Kind:   Summary,
		Text:   fmt.Sprintf("Earlier in this channel: %d message%s from %s.", len(elided), plural, strings.Join(speakers, ", ")),
		Elided: len(elided),
	}
}
