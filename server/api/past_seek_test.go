package api_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
)

// counting is an adapter that counts what it folds.
type counting struct {
	channel.Adapter
	folds *atomic.Int64
}

func (c counting) Fold(s channel.State, e *envelope.Envelope) channel.State {
	c.folds.Add(1)
	return c.Adapter.Fold(s, e)
}

// The first seek folds the log and keeps states on its way; each one after it
// folds what lies behind the nearest of them.
func TestASecondSeekFoldsAtMost1024(t *testing.T) {
	t.Parallel()
	const events = 100_000
	var folds atomic.Int64
	adapters := adapter.All()
	for i, a := range adapters {
		adapters[i] = counting{a, &folds}
	}
	s := newSiteOn(t, hub.Options{Adapters: adapters})
	a, b := s.agent("a"), s.agent("b")
	s.unbounded("b")
	none := 0
	ch, err := s.hub.Open(t.Context(), hub.Opening{Creator: a, Type: "discussion", Participants: []string{b}, RequiredAcks: &none})
	if err != nil {
		t.Fatal(err)
	}
	for from := 0; from < events; from += hub.MaxAdmitAll {
		var list []*envelope.Envelope
		for n := range min(hub.MaxAdmitAll, events-from) {
			list = append(list, &envelope.Envelope{Channel: ch.ID, Sender: a, Type: "app.note", Data: fmt.Appendf(nil, `{"text":"line %d"}`, from+n)})
		}
		if _, err := s.hub.AdmitAll(t.Context(), list, nil).Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	seek := func(to int) int64 {
		before := folds.Load()
		var p pastState
		s.past(fmt.Sprintf("/v1/channels/%s/state?at=%d", ch.ID, to), &p)
		if p.At.Sequence != uint64(to) {
			t.Fatalf("after %d: %+v", to, p.At)
		}
		return folds.Load() - before
	}
	if n := seek(events); n < events-1024 {
		t.Errorf("the first seek folds %d of %d: the count says nothing", n, events)
	}
	for _, to := range []int{events - 1, 1, 1023, 1024, 1025, 50_000, 51_199, 51_200, 99_327, 2047} {
		if n := seek(to); n > 1024 {
			t.Errorf("a seek to %d folds %d events", to, n)
		}
	}
}
