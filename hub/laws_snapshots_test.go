package hub_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/request"
	"github.com/parley-hub/parley/task"
)

// saving returns the options of a hub that saves its folds soon.
func saving() hub.Options {
	return hub.Options{
		Adapters: append(adapter.All(), club{}, topic{}, board{}, ledger{}), SnapshotAfter: 4, EvictAfter: time.Minute,
	}
}

// snapshotDrops is a store that records which snapshots are dropped one by one.
type snapshotDrops struct {
	journal.Engine
	keys []journal.ValueKey
}

func (s *snapshotDrops) DropSnapshot(ctx context.Context, key journal.ValueKey) error {
	s.keys = append(s.keys, key)
	return s.Engine.DropSnapshot(ctx, key)
}

// snapshot returns the snapshot of a channel's fold, or nil if there is none.
func (r *rig) snapshot(ch string) *journal.Snapshot {
	r.t.Helper()
	r.settle()
	version, err := r.SnapshotVersion(ctx, ch)
	if err != nil {
		r.t.Fatal(err)
	}
	s, err := r.stored.Snapshot(ctx, r.SnapshotKey(ch), version)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

func (r *rig) folded(ch string) string {
	r.t.Helper()
	s, err := r.Folded(ctx, ch)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// TestLawSnapshotsChangeNothing checks that the fold from a snapshot and the rest
// of the log equals the fold from the log alone, and the live fold.
func TestLawSnapshotsChangeNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		used := 0
		rapid.Check(timeless{t}, func(rt *rapid.T) {
			r := newRig(quiet{t, rt}, saving())
			defer r.stop()
			w := newWorld(rt, r)
			a, b := w.people[0], w.people[1]
			home := r.home("agh", "w")
			room := r.room(home, a, b)
			w.channels = append(w.channels, room, r.topicOf(room, a), r.open("board", a, b), r.open("ledger", a, b), r.openWith("discussion", expecting(
				`[{"name":"max_silence","on_violation":"audit","params":{"seconds":60}},{"name":"reply_within","on_violation":"notify","params":{"seconds":90}}]`,
			), a, b))
			for range rapid.IntRange(5, 40).Draw(rt, "steps") {
				w.act()
			}
			for range 2 {
				live := map[string]string{}
				for _, ch := range w.channels {
					live[ch] = w.folded(ch)
					if r.snapshot(ch) != nil {
						used++
					}
				}
				for _, how := range []string{"from snapshots", "from the logs"} {
					w.restart()
					if how == "from the logs" {
						for _, ch := range w.channels {
							if err := r.stored.DropSnapshot(ctx, r.SnapshotKey(ch)); err != nil {
								rt.Fatal(err)
							}
						}
						w.restart()
					}
					for _, ch := range w.channels {
						if diff := cmp.Diff(live[ch], w.folded(ch)); diff != "" {
							rt.Fatalf("%s of %s (-live +folded):\n%s", how, w.channel(ch).Manifest.Type, diff)
						}
					}
				}
				w.act()
			}
		})
		if used == 0 {
			t.Error("no snapshot was ever written")
		}
	})
}

// act does something random, which may be refused.
func (w *world) act() {
	switch rapid.IntRange(0, 9).Draw(w.rt, "act") {
	case 0:
		w.turmoil()
	case 1:
		w.pass(time.Duration(rapid.IntRange(1, 120).Draw(w.rt, "seconds")) * time.Second)
	case 2:
		w.Evict()
	case 3:
		owner := w.anyone("owner").id
		_ = w.ObserveTask(ctx, task.Task{ID: fmt.Sprint("t", rapid.IntRange(0, 9).Draw(w.rt, "task")), Owner: owner, Channel: w.anywhere()}, nil, hub.MirrorOff)
	case 4:
		_, _ = w.Ask(ctx, hub.Asking{Request: hub.Request{
			Kind: "approval", Channel: w.anywhere(), AskedBy: w.anyone("asker").id, Title: "may I?", DueAt: time.Now().Add(time.Minute),
			Choices: []request.Choice{{ID: "approve"}, {ID: "deny"}},
		}}, nil)
	case 5:
		_, _ = w.speak()
	default:
		e := &envelope.Envelope{Channel: w.anywhere(), Sender: w.anyone("sender").id, Data: []byte(`{"n":1}`)}
		e.Type = rapid.SampledFrom([]string{"club.join", "club.leave", "board.note", "board.remind", "board.echo", "topic.note", "ledger.note"}).Draw(w.rt, "type")
		_, _ = w.Post(ctx, e, nil)
		side := e.Clone()
		side.ID, side.Seq, side.Type = "", 0, "ledger.side"
		_, _ = w.AdmitSide(ctx, side, nil).Wait(ctx)
	}
}

func TestSnapshotsOfFolds(t *testing.T) {
	t.Parallel()
	fill := func(r *rig, a *agent, ch string, n int) {
		r.t.Helper()
		for i := range n {
			r.post(a, ch, "board.note", fmt.Sprintf(`{"n":%d}`, i))
		}
	}
	runs(t, "a long log is not read again", saving(), func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("board", a, b)
		if r.snapshot(ch) != nil {
			t.Error("a short log has a snapshot")
		}
		fill(r, a, ch, 200)
		folded := r.folded(ch)
		r.settle()
		r.restart()
		if got := r.folded(ch); got != folded {
			t.Errorf("folded %s, not %s", got, folded)
		}
		if n := r.Stats().BytesFolded; n > 3000 {
			t.Errorf("loading it read %d bytes", n)
		}
	})
	runs(t, "one of another version is not used", saving(), func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("board", a, b)
		fill(r, a, ch, 20)
		r.restart(func(o *hub.Options) { o.Adapters = append(adapter.All(), doubled{}) })
		if got := r.state(ch); got != "40" {
			t.Errorf("state %s, not 40", got)
		}
		r.restart()
		if got := r.state(ch); got != "40" || r.snapshot(ch) == nil {
			t.Errorf("state %s, not 40", got)
		}
	})
	runs(t, "one that cannot be read is not used", saving(), func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("board", a, b)
		fill(r, a, ch, 20)
		s := r.snapshot(ch)
		for _, data := range [][]byte{nil, {0xff}, []byte("\x02{}"), []byte("\x02{}nonsense"), s.Data[:len(s.Data)/2]} {
			s.Data = data
			if err := r.stored.PutSnapshot(ctx, r.SnapshotKey(ch), *s); err != nil {
				t.Fatal(err)
			}
			r.restart()
			if got := r.state(ch); got != "20" {
				t.Errorf("from %q: state %s", data, got)
			}
		}
	})
	runs(t, "that of a channel of a home goes with the channel", saving(), func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		home := r.home("hpd", "s")
		ch := r.openWith("board", func(o *hub.Opening) { o.Home = home.ID }, a, b)
		fill(r, a, ch, 20)
		if r.snapshot(ch) == nil {
			t.Fatal("there is no snapshot")
		}
		r.Close()
		store := &snapshotDrops{Engine: r.stored}
		h, err := hub.Open(ctx, store, r.opts)
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		if err := h.Delete(ctx, ch, theOperator); err != nil {
			t.Fatal(err)
		}
		if want := r.SnapshotKey(ch); !slices.Equal(store.keys, []journal.ValueKey{want}) {
			t.Errorf("dropped %v, not %v", store.keys, want)
		}
	})
	runs(t, "none is written of what was never stored", saving(), func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("board", a, b)
		r.hold()
		for range 20 {
			r.Admit(ctx, &envelope.Envelope{Channel: ch, Sender: a.id, Type: "board.note", Data: []byte(`{}`)}, nil)
		}
		r.crash()
		if s := r.snapshot(ch); s != nil {
			t.Errorf("a snapshot at %v", s.Logs)
		}
		if got := r.state(ch); got != "0" {
			t.Errorf("state %s", got)
		}
	})
	runs(t, "deadlines, expectations and removed participants go on from one", saving(), func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.openWith("board", expecting(`[{"name":"max_silence","on_violation":"audit","params":{"seconds":600}}]`), a, b)
		fill(r, a, ch, 20)
		r.post(a, ch, "board.remind", `{}`)
		fill(r, a, ch, 20)
		if r.snapshot(ch) == nil {
			t.Fatal("no snapshot")
		}
		r.restart()
		r.pass(2 * time.Minute)
		if got := r.types(ch); got[len(got)-1] != "board.reminder" || slices.Index(got, "board.reminder") != len(got)-1 {
			t.Errorf("ends with %v", got[len(got)-2:])
		}
		r.restart()
		r.pass(30 * time.Minute)
		if n := len(r.audit("expectation_violated")); n != 1 {
			t.Errorf("%d expectations were violated", n)
		}
		r.restart()
		r.pass(30 * time.Minute)
		if n := len(r.audit("expectation_violated")); n != 1 {
			t.Errorf("%d after a restart", n)
		}
	})
	stored(t, "channels of one home have one each, which goes with the channel", saving(), func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		home := r.home("hpd", "s")
		one, two := r.openWith("board", in(home), a, b), r.openWith("board", in(home), a, b)
		fill(r, a, one, 30)
		fill(r, a, two, 10)
		r.restart()
		if r.state(one) != "30" || r.state(two) != "10" {
			t.Errorf("states %s and %s", r.state(one), r.state(two))
		}
		lone := r.open("board", a, b)
		fill(r, a, lone, 30)
		if err := r.Delete(ctx, lone, theOperator); err != nil {
			t.Fatal(err)
		}
		if _, err := r.State(ctx, lone); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("deleted: %v", err)
		}
	})
}

// doubled folds the same log to another state.
type doubled struct{ board }

func (doubled) Fold(s channel.State, e *envelope.Envelope) channel.State {
	if b, ok := s.(board); ok && e.Type == "board.note" {
		return board{b.notes + 2}
	}
	return s
}

func (doubled) Codec() channel.Codec {
	c := board{}.Codec()
	c.Version = 2
	return c
}

// Codec encodes the members of a club, then since when each belongs.
func (club) Codec() channel.Codec {
	return channel.Codec{
		Version: 1,
		Encode: func(s channel.State) ([]byte, error) {
			c := s.(clubState)
			var since []string
			for id, seq := range c.since {
				since = append(since, fmt.Sprintf("%s=%d", id, seq))
			}
			slices.Sort(since)
			return fmt.Appendf(nil, "%q %q", c.members, strings.Join(since, " ")), nil
		},
		Decode: func(data []byte) (channel.State, error) {
			var c clubState
			var since string
			if _, err := fmt.Sscanf(string(data), "%q %q", &c.members, &since); err != nil {
				return nil, err
			}
			c.since = map[string]uint64{}
			for _, one := range strings.Fields(since) {
				id, seq, _ := strings.Cut(one, "=")
				var n uint64
				if _, err := fmt.Sscan(seq, &n); err != nil {
					return nil, err
				}
				c.since[id] = n
			}
			return c, nil
		},
	}
}
