package hub_test

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

// estate is the model of homes: for each home its channels by name, with the number
// of their notes.
type estate struct {
	*rig
	rt    *rapid.T
	a     *agent
	homes map[string]*estateHome
	gone  []hub.Home
}

type estateHome struct {
	hub.Home
	channels map[string]*estateChannel
}

type estateChannel struct {
	id    string
	notes int
}

var errBroken = errors.New("the seed breaks off")

// TestLawHomesHoldWhatWasAcknowledged checks that each home holds the acknowledged
// channels, found by name and in lists, and nothing of any other, whatever is made,
// seeded and deleted, and whenever the hub stops or the power fails.
func TestLawHomesHoldWhatWasAcknowledged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(timeless{t}, func(rt *rapid.T) {
			r := newRig(quiet{t, rt}, hub.Options{Adapters: append(adapter.All(), board{}), EvictAfter: time.Minute})
			defer r.stop()
			w := &estate{rig: r, rt: rt, a: r.agent("alice"), homes: map[string]*estateHome{}}
			for range rapid.IntRange(1, 12).Draw(rt, "steps") {
				w.step()
				w.check()
			}
			if err := r.stored.RebuildIndex(ctx); err != nil {
				rt.Fatal(err)
			}
			w.check()
		})
	})
}

// step does one thing in a home, which it creates if necessary.
func (w *estate) step() {
	name := rapid.SampledFrom([]string{"x", "y"}).Draw(w.rt, "home")
	in := w.homes[name]
	if in == nil {
		in = &estateHome{w.home("hpd", name), map[string]*estateChannel{}}
		w.homes[name] = in
	}
	o := hub.Opening{Creator: w.a.id, Type: "board", Home: in.ID, Name: rapid.SampledFrom([]string{"1", "2", "3"}).Draw(w.rt, "channel")}
	held := in.channels[o.Name]
	switch rapid.IntRange(0, 7).Draw(w.rt, "step") {
	case 0, 1:
		w.say(in, o, held)
	case 2:
		opened, err := w.Open(ctx, o)
		w.opened(in, o, held, 0, opened, err)
	case 3, 4:
		w.seed(in, o, held)
	case 5:
		if held != nil {
			w.must(w.Delete(ctx, held.id, theOperator))
			delete(in.channels, o.Name)
		}
	case 6:
		w.must(w.DeleteHome(ctx, in.ID, theOperator))
		delete(w.homes, name)
		w.gone = append(w.gone, in.Home)
	case 7:
		switch rapid.IntRange(0, 3).Draw(w.rt, "turmoil") {
		case 0:
			w.restart()
		case 1:
			w.crash()
		case 2:
			w.Evict()
		case 3:
			w.pass(2 * time.Hour)
		}
	}
}

// say posts to the channel with a name, which opens it if it does not exist.
func (w *estate) say(in *estateHome, o hub.Opening, held *estateChannel) {
	p := w.AdmitNamed(ctx, o, &envelope.Envelope{Sender: w.a.id, Type: "board.note", Data: []byte(`{}`)}, nil)
	_, err := p.Wait(ctx)
	w.must(err)
	if p.Opened() != (held == nil) || held != nil && p.Channel() != held.id {
		w.rt.Fatalf("posted to %s, opened %v; the name is that of %+v", p.Channel(), p.Opened(), held)
	}
	if held == nil {
		held = &estateChannel{id: p.Channel()}
		in.channels[o.Name] = held
	}
	held.notes++
}

// seed begins a channel with a history, which may be interrupted, or lost in a
// power failure.
func (w *estate) seed(in *estateHome, o hub.Opening, held *estateChannel) {
	n := rapid.SampledFrom([]int{0, 1, 511, 600}).Draw(w.rt, "notes")
	at := rapid.IntRange(0, 2*n+1).Draw(w.rt, "break")
	if lost := rapid.IntRange(0, 2).Draw(w.rt, "power") == 0; !lost || at >= n || held != nil {
		opened, err := w.Seed(ctx, o, w.upTo(n, at, func() error { return errBroken }))
		if at < n && held == nil {
			if !errors.Is(err, errBroken) {
				w.rt.Fatalf("a seed that breaks off is answered with %v", err)
			}
			return
		}
		if held == nil || err == nil || !errors.Is(err, errBroken) {
			w.opened(in, o, held, n, opened, err)
		}
		return
	}
	answer := make(chan error, 1)
	go func() {
		_, err := w.Seed(ctx, o, w.upTo(n, at, func() error {
			w.hold() // until the crash
			return nil
		}))
		answer <- err
	}()
	w.settle()
	w.engine.Faults().Crash()
	if err := <-answer; !fault.Retryable(err) {
		w.rt.Fatalf("a seed that was lost is answered with %v", err)
	}
	w.restart()
}

func (w *estate) upTo(n, at int, do func() error) iter.Seq2[*envelope.Envelope, error] {
	return notes(n, func(i int) error {
		if i == at {
			return do()
		}
		return nil
	})
}

// opened records a new channel; a name that is taken must be refused.
func (w *estate) opened(in *estateHome, o hub.Opening, held *estateChannel, notes int, opened hub.Opened, err error) {
	if held != nil {
		if fault.CodeOf(err) != fault.Conflict {
			w.rt.Fatalf("a taken name: %v", err)
		}
		return
	}
	w.must(err)
	in.channels[o.Name] = &estateChannel{opened.ID, notes}
}

func (w *estate) must(err error) {
	if err != nil {
		w.rt.Fatal(err)
	}
}

// check compares names, lists, folds and logs with the model.
func (w *estate) check() {
	var all []string
	for name, in := range w.homes {
		found, err := w.FindHome(ctx, "hpd", name)
		if err != nil || found.ID != in.ID {
			w.rt.Fatalf("home %s is %+v, %v", name, found, err)
		}
		for _, own := range []string{"1", "2", "3"} {
			id, err := w.Named(ctx, in.ID, "board", own)
			held := in.channels[own]
			if held == nil {
				if fault.CodeOf(err) != fault.NotFound {
					w.rt.Fatalf("nobody has the name %s: %s, %v", own, id, err)
				}
				continue
			}
			if err != nil || id != held.id || w.state(id) != fmt.Sprint(held.notes) || len(w.log(id)) != held.notes {
				w.rt.Fatalf("%s names %s with %s of %d notes, %v", own, id, w.state(id), held.notes, err)
			}
			all = append(all, id)
		}
		if n := w.logsOf("home/"+in.ID, "meta"); n != len(in.channels) {
			w.rt.Fatalf("home %s has %d channels, and logs of %d", name, len(in.channels), n)
		}
	}
	slices.Sort(all)
	if diff := cmp.Diff(all, slices.Sorted(slices.Values(w.listAll(hub.ListOptions{})))); diff != "" {
		w.rt.Fatalf("listed (-want +got):\n%s", diff)
	}
	homes, _, err := w.Homes(ctx, "hpd", hub.HomePage{})
	w.must(err)
	names := map[string]bool{}
	for _, home := range homes {
		names[home.Name] = true
	}
	if !slices.Equal(slices.Sorted(maps.Keys(names)), slices.Sorted(maps.Keys(w.homes))) || len(homes) != len(w.homes) {
		w.rt.Fatalf("homes %+v", homes)
	}
	for _, home := range w.gone {
		if err := w.bare(home); err != nil {
			w.rt.Fatalf("a deleted home has %v", err)
		}
	}
}
