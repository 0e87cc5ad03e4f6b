package api_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/server/api"
)

// The states of limits.states channels are kept, and those of the channel that was
// looked at least recently make room: it is folded from its beginning again.
func TestStatesOfSoManyChannelsAreKept(t *testing.T) {
	t.Parallel()
	const events = 1500 // one state on the way is kept
	var folds atomic.Int64
	adapters := adapter.All()
	for i, a := range adapters {
		adapters[i] = counting{a, &folds}
	}
	s := newSiteOn(t, hub.Options{Adapters: adapters}, func(c *api.Config) { c.Limits.States = 2 })
	a, b := s.agent("a"), s.agent("b")
	s.unbounded("b")
	var ids []string
	for range 3 {
		none := 0
		ch, err := s.hub.Open(t.Context(), hub.Opening{Creator: a, Type: "discussion", Participants: []string{b}, RequiredAcks: &none})
		if err != nil {
			t.Fatal(err)
		}
		for from := 0; from < events; from += 500 {
			var list []*envelope.Envelope
			for range 500 {
				list = append(list, &envelope.Envelope{Channel: ch.ID, Sender: a, Type: "app.note", Data: []byte(`{}`)})
			}
			if _, err := s.hub.AdmitAll(t.Context(), list, nil).Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		ids = append(ids, ch.ID)
	}
	whole := func(n int) bool {
		t.Helper()
		before := folds.Load()
		var p pastState
		s.past(fmt.Sprintf("/v1/channels/%s/state?at=%d", ids[n], events), &p)
		if p.At.Sequence != events {
			t.Fatalf("channel %d: %+v", n, p.At)
		}
		return folds.Load()-before >= events
	}
	for i, step := range []struct {
		channel int
		whole   bool
	}{{0, true}, {1, true}, {0, false}, {2, true}, {0, false}, {2, false}, {1, true}, {2, false}, {0, true}} {
		if got := whole(step.channel); got != step.whole {
			t.Errorf("look %d, at channel %d: folded from the beginning %v, want %v", i+1, step.channel, got, step.whole)
		}
	}
}
