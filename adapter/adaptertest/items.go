package adaptertest

import (
	"fmt"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
)

// items checks that a reader accepts every log, that two readers return the same
// items, and that reading changes no envelope.
func (s Subject) items(t *rapid.T) {
	m := s.Metadata(t)
	log := s.log(t, m)
	odd := s.draw(t, m)
	odd.Data = rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
	log = append(log, odd)
	before := make([]*envelope.Envelope, len(log))
	for i, e := range log {
		before[i] = e.Clone()
	}
	one, two := s.read(m, log), s.read(m.Clone(), log)
	if diff := cmp.Diff(one, two); diff != "" {
		t.Fatalf("two readers differ:\n%s", diff)
	}
	for i, e := range log {
		if diff := cmp.Diff(before[i], e); diff != "" {
			t.Fatalf("a reader changed an envelope:\n%s", diff)
		}
	}
	if _, stateless := channel.ReaderOf(s.Adapter, m).(channel.ItemFunc); stateless {
		at := rapid.IntRange(0, len(log)).Draw(t, "resumed at")
		if diff := cmp.Diff(one, append(s.read(m, log[:at]), s.read(m, log[at:])...)); diff != "" {
			t.Fatalf("a reader that remembers nothing depends on where it begins:\n%s", diff)
		}
	}
}

// read shows items as text.
func (s Subject) read(m *channel.Metadata, log []*envelope.Envelope) []string {
	reader := channel.ReaderOf(s.Adapter, m)
	shown := []string{}
	for _, e := range log {
		for _, i := range reader.Read(nil, e) {
			text := fmt.Sprintln(i.Kind, i.Envelope.ID, i.Speaker, i.Name, i.ID, i.Text, i.State, i.To, i.At)
			if i.Message != nil {
				text += fmt.Sprint(i.Message.Type, i.Message.Role, i.Message.Content)
			}
			shown = append(shown, text)
		}
	}
	return shown
}
