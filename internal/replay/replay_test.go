package replay_test

import (
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/parley-hub/parley/adapter/conversation"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/internal/bundle"
	"github.com/parley-hub/parley/internal/replay"
)

func made(e *envelope.Envelope) bool { return e.Origin.Dialect == "hub" }

func talk() *channel.Metadata {
	m := &channel.Metadata{ID: "c", Manifest: &channel.Manifest{Type: "conversation", Version: 1}, Creator: "a", State: channel.Closed, CloseReason: "done"}
	for i, id := range []string{"a", "b"} {
		m.Participants = append(m.Participants, channel.Participant{Agent: id, Order: i})
	}
	return m
}

func said(by ...string) iter.Seq2[bundle.Entry, error] {
	return func(yield func(bundle.Entry, error) bool) {
		for n, sender := range by {
			if sender == "" {
				yield(bundle.Entry{}, errors.New("cut off"))
				return
			}
			if !yield(bundle.Entry{Envelope: &envelope.Envelope{ID: string(rune('0' + n)), Seq: uint64(n + 1), Sender: sender, Type: envelope.TypeText, Data: []byte(`{"text":"x"}`)}}, nil) {
				return
			}
		}
	}
}

// outcome returns what a fold of the envelopes ends with.
func outcome(t *testing.T, by ...string) replay.Outcome {
	t.Helper()
	fold, err := replay.New(conversation.Adapter{}, talk(), made)
	if err != nil {
		t.Fatal(err)
	}
	for e := range said(by...) {
		fold.Next(e.Envelope)
	}
	state, err := fold.State()
	if err != nil {
		t.Fatal(err)
	}
	return replay.Outcome{State: state, Expected: fold.Expected()}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		sent []string
		end  replay.Outcome
		want []string
	}{
		"as it was":       {[]string{"a", "b", "a"}, outcome(t, "a", "b", "a"), nil},
		"a stranger":      {[]string{"a", "z"}, outcome(t, "a", "z"), []string{"what z sent was accepted, and would be refused"}},
		"another state":   {[]string{"a", "b"}, outcome(t, "a"), []string{"the folded state was"}},
		"another speaker": {[]string{"a"}, replay.Outcome{Expected: "q"}, []string{"at the end q was to speak"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := replay.Compare(conversation.Adapter{}, talk(), said(tt.sent...), func() replay.Outcome { return tt.end }, made)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range tt.want {
				ok := false
				for _, d := range found {
					ok = ok || strings.Contains(d.Says, want)
				}
				if !ok {
					t.Errorf("%v does not say %q", found, want)
				}
			}
			if len(tt.want) == 0 && len(found) > 0 {
				t.Errorf("found %v", found)
			}
		})
	}
	if _, err := replay.Compare(conversation.Adapter{}, talk(), said("a", ""), func() replay.Outcome { return replay.Outcome{} }, made); err == nil {
		t.Error("a log that was cut off was replayed")
	}
}
