package hub_test

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

func each(list []*envelope.Envelope, last error) iter.Seq2[*envelope.Envelope, error] {
	return func(yield func(*envelope.Envelope, error) bool) {
		for _, e := range list {
			if !yield(e.Clone(), nil) {
				return
			}
		}
		if last != nil {
			yield(nil, last)
		}
	}
}

// An imported channel has its envelopes' ids, times and senders, has ended, says
// where it came from, stays after a restart, and nobody was told.
func TestImport(t *testing.T) {
	t.Parallel()
	stored(t, "a conversation", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		id := r.open("conversation", a, b)
		r.say(a, id, "one")
		r.say(b, id, "two")
		original, history := r.channel(id), r.log(id)
		before := len(a.inbox()) + len(b.inbox())
		m, err := r.Import(ctx, hub.Imported{Metadata: original, Envelopes: each(history, nil)})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			got := r.channel(m.ID)
			if got.State != channel.Closed || got.CloseReason != "imported" || got.Labels[hub.LabelImported] != id || got.ID == id || got.Creator != a.id {
				t.Errorf("got %+v", got)
			}
			copied := r.log(m.ID)
			for n, e := range copied {
				want := history[n].Clone()
				if want.Channel = m.ID; cmp.Diff(want, e) != "" {
					t.Error(cmp.Diff(want, e))
				}
			}
			if len(copied) != len(history) {
				t.Errorf("%d envelopes of %d", len(copied), len(history))
			}
			r.restart()
		}
		if n := len(a.inbox()) + len(b.inbox()); n != before {
			t.Errorf("%d envelopes were told of the import", n-before)
		}
		if _, err := r.Turns(ctx, b.id); err != nil {
			t.Error(err)
		}
		if list, _, err := r.Channels(ctx, hub.ListOptions{Open: true}); err != nil || len(list) != 1 {
			t.Errorf("%d channels are open, %v", len(list), err)
		}
		if list, _, err := r.Channels(ctx, hub.ListOptions{Label: []hub.Label{{Key: hub.LabelImported, Value: id}}}); err != nil || len(list) != 1 {
			t.Errorf("%d channels by label, %v", len(list), err)
		}
	})
}

// Agents of another hub need not be known here; a kind of channel must be.
func TestImportFromElsewhere(t *testing.T) {
	t.Parallel()
	runs(t, "of strangers", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		m := *r.channel(r.open("discussion", a, b))
		m.Creator = "0123456789abcdef0123456789abcdef"
		m.Participants = []channel.Participant{{Agent: m.Creator, Role: channel.Initiator}, {Agent: "ffffffffffffffffffffffffffffffff", Role: channel.Member, Order: 1}}
		said := &envelope.Envelope{ID: "000000000000000000000000000000aa", Sender: m.Creator, Type: envelope.TypeText, Data: []byte(`{"text":"hi"}`), CreatedAt: time.Unix(1, 0).UTC()}
		got, err := r.Import(ctx, hub.Imported{Metadata: &m, Envelopes: each([]*envelope.Envelope{said}, nil), From: "elsewhere"})
		if err != nil || got.Labels[hub.LabelImported] != "elsewhere" {
			t.Fatalf("%+v, %v", got, err)
		}
		if e := r.log(got.ID)[0]; e.ID != said.ID || !e.CreatedAt.Equal(said.CreatedAt) || e.Sender != m.Creator {
			t.Errorf("got %+v", e)
		}
		other := *m.Manifest
		other.Type = "seance"
		m.Manifest = &other
		if _, err := r.Import(ctx, hub.Imported{Metadata: &m, Envelopes: each(nil, nil)}); err == nil || !strings.Contains(err.Error(), "seance") {
			t.Errorf("got %v", err)
		}
	})
}

// What turns out to be damaged, or breaks a bound, leaves nothing behind.
func TestABrokenImportLeavesNothing(t *testing.T) {
	t.Parallel()
	runs(t, "at each place", hub.Options{Limits: hub.Limits{EventBytes: 1000}}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		id := r.open("conversation", a, b)
		m := r.channel(id)
		var many []*envelope.Envelope
		for n := range 1200 {
			many = append(many, &envelope.Envelope{ID: fmt.Sprintf("%032x", n+1), Sender: a.id, Type: envelope.TypeText, Data: []byte(`{"text":"x"}`)})
		}
		large := many[3].Clone()
		large.ID, large.Data = fmt.Sprintf("%032x", 5000), []byte(`{"text":"`+strings.Repeat("x", 1000)+`"}`)
		for name, in := range map[string]iter.Seq2[*envelope.Envelope, error]{
			"an error":          each(many, errors.New("cut off")),
			"an early error":    each(nil, errors.New("cut off")),
			"too large":         each(append(append([]*envelope.Envelope{}, many...), large), nil),
			"ids that go back":  each(append(append([]*envelope.Envelope{}, many...), many[0]), nil),
			"one of the future": each([]*envelope.Envelope{{ID: strings.Repeat("f", 32), Sender: a.id, Type: envelope.TypeText, Data: []byte(`{}`)}}, nil),
		} {
			if _, err := r.Import(ctx, hub.Imported{Metadata: m, Envelopes: in}); err == nil {
				t.Errorf("%s was imported", name)
			}
		}
		if list, _, err := r.Channels(ctx, hub.ListOptions{}); err != nil || len(list) != 1 {
			t.Errorf("%d channels, %v", len(list), err)
		}
		wide := *m
		for n := range 10_000 {
			wide.Participants = append(wide.Participants, channel.Participant{Agent: fmt.Sprint(n)})
		}
		if _, err := r.Import(ctx, hub.Imported{Metadata: &wide, Envelopes: each(nil, nil)}); fault.CodeOf(err) != fault.TooLarge {
			t.Errorf("got %v", err)
		}
	})
}
