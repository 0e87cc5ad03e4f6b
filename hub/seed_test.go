package hub_test

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/journal"
)

// notes yields n notes; step, if given, is called before each with its number.
func notes(n int, step func(i int) error) iter.Seq2[*envelope.Envelope, error] {
	return func(yield func(*envelope.Envelope, error) bool) {
		for i := range n {
			if step != nil {
				if err := step(i); err != nil {
					yield(nil, err)
					return
				}
			}
			if !yield(&envelope.Envelope{Type: "board.note", Data: fmt.Appendf(nil, `{"n":%d}`, i)}, nil) {
				return
			}
		}
	}
}

// bare returns an error if anything of a seed is in a home.
func (r *rig) bare(home hub.Home) error {
	for _, family := range []string{"history", "side", "meta"} {
		if n := r.logsOf("home/"+home.ID, family); n != 0 {
			return fmt.Errorf("%d %s logs", n, family)
		}
	}
	for entry, err := range journal.IndexAll(ctx, r.stored, journal.ScanOptions{Prefix: []byte("due/seed/")}) {
		if err != nil {
			return err
		}
		return fmt.Errorf("entry %s", entry.Key)
	}
	return nil
}

func TestSeeds(t *testing.T) {
	t.Parallel()
	stored(t, "a channel begins with a history of any length", withBoard, func(t *testing.T, r *rig) {
		a := r.agent("alice")
		home := r.home("hpd", "s")
		for _, n := range []int{0, 1, 2, 511, 512, 513, 1100} {
			name := fmt.Sprint(n)
			opened, err := r.Seed(ctx, hub.Opening{Creator: a.id, Type: "board", Home: home.ID, Name: name, Parent: "p"}, notes(n, nil))
			if err != nil {
				t.Fatal(err)
			}
			if opened.State != channel.Active || opened.Parent != "p" || !strings.HasPrefix(opened.ID, home.ID+".") {
				t.Errorf("opened %+v", opened.Metadata)
			}
			want := fmt.Sprint(n)
			for range 2 {
				log := r.log(opened.ID)
				if len(log) != n || r.state(opened.ID) != want {
					t.Fatalf("%d envelopes and state %s, want %d", len(log), r.state(opened.ID), n)
				}
				last := ""
				for i, e := range log {
					if e.Seq != uint64(i+1) || e.ID <= last || e.Channel != opened.ID || e.Sender != a.id || string(e.Data) != fmt.Sprintf(`{"n":%d}`, i) {
						t.Fatalf("envelope %d is %+v", i+1, e)
					}
					last = e.ID
				}
				if id, err := r.Named(ctx, home.ID, "board", name); err != nil || id != opened.ID {
					t.Errorf("found %s, %v", id, err)
				}
				if n != 2 && n != 513 {
					break
				}
				r.restart()
			}
			if id := r.post(a, opened.ID, "board.note", `{}`); r.log(opened.ID)[n].ID != id || r.state(opened.ID) != fmt.Sprint(n+1) {
				t.Errorf("a post does not follow the seed of %d", n)
			}
		}
		if err := r.stored.RebuildIndex(ctx); err != nil {
			t.Fatal(err)
		}
		if n := len(r.listAll(hub.ListOptions{})); n != 7 {
			t.Errorf("%d channels are listed", n)
		}
	})
	stored(t, "a fork keeps ids, times and causes", withBoard, func(t *testing.T, r *rig) {
		a := r.agent("alice")
		home := r.home("hpd", "s")
		from := r.openWith("board", in(home), a)
		first := r.post(a, from, "board.note", `{}`)
		r.post(a, from, "board.note", `{"again":1}`, func(e *envelope.Envelope) { e.Causation = first })
		fork, err := r.Seed(ctx, hub.Opening{Creator: a.id, Type: "board", Home: home.ID, Parent: from}, r.Log(ctx, from, 1, 2))
		if err != nil {
			t.Fatal(err)
		}
		old, forked := r.log(from), r.log(fork.ID)
		for i := range old {
			if old[i].ID != forked[i].ID || !old[i].CreatedAt.Equal(forked[i].CreatedAt) || old[i].Causation != forked[i].Causation {
				t.Errorf("%+v became %+v", old[i], forked[i])
			}
		}
		if next := r.post(a, fork.ID, "board.note", `{}`); next <= forked[1].ID {
			t.Errorf("%s follows %s", next, forked[1].ID)
		}
	})
	stored(t, "a channel without a home is seeded too", withBoard, func(t *testing.T, r *rig) {
		a := r.agent("alice")
		opened, err := r.Seed(ctx, hub.Opening{Creator: a.id, Type: "board"}, notes(600, nil))
		if err != nil {
			t.Fatal(err)
		}
		r.restart()
		if n := len(r.log(opened.ID)); n != 600 || r.state(opened.ID) != "600" {
			t.Errorf("%d envelopes, state %s", n, r.state(opened.ID))
		}
	})
	stored(t, "a batch has at most 512 records and 1 MiB", withBoard, func(t *testing.T, r *rig) {
		a := r.agent("alice")
		home := r.home("hpd", "s")
		large := fmt.Appendf(nil, `{"x":%q}`, strings.Repeat("x", 400<<10))
		opened, err := r.Seed(ctx, hub.Opening{Creator: a.id, Type: "board", Home: home.ID}, func(yield func(*envelope.Envelope, error) bool) {
			for e := range notes(1200, nil) {
				if bytes.HasSuffix(e.Data, []byte("07}")) {
					e.Data = large
				}
				if !yield(e, nil) {
					return
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		shard := r.stored.Shard(journal.PartitionName{Tenant: "main", Partition: "home/" + home.ID})
		f, err := r.stored.FollowShard(ctx, shard, journal.ShardPosition{})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		place, err := r.stored.Place(ctx, shard)
		if err != nil {
			t.Fatal(err)
		}
		total := 0
		for done := false; !done; {
			commits, err := f.Next(ctx)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range commits {
				records, size, history := 0, 0, 0
				for _, w := range c.Writes {
					for _, entry := range w.Entries {
						records, size = records+1, size+len(entry.Data)
					}
					if w.Log.Family == "history" {
						history += len(w.Entries)
					}
				}
				if history > 0 && (records > 512 || size > 1<<20+100) {
					t.Errorf("a batch has %d records, %d bytes", records, size)
				}
				total += history
				done = c.Position.Offset == place.Durable
			}
		}
		if n := len(r.log(opened.ID)); n != 1200 || total != n {
			t.Errorf("%d envelopes, %d in batches", n, total)
		}
	})
	stored(t, "nobody sees it before its last batch, nor is told of its history", withBoard, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		home := r.home("hpd", "s")
		now, err := r.Now(ctx)
		if err != nil {
			t.Fatal(err)
		}
		unseen := func() error {
			if ids := r.listAll(hub.ListOptions{}); len(ids) != 0 {
				return fmt.Errorf("listed %v", ids)
			}
			if id, err := r.Named(ctx, home.ID, "board", "n"); fault.CodeOf(err) != fault.NotFound {
				return fmt.Errorf("found %s, %w", id, err)
			}
			if n := r.logsOf("home/"+home.ID, "meta"); n != 0 {
				return fmt.Errorf("%d meta logs", n)
			}
			return nil
		}
		steps := 0
		opened, err := r.Seed(ctx, hub.Opening{Creator: a.id, Type: "board", Participants: []string{b.id}, Home: home.ID, Name: "n"}, notes(1200, func(i int) error {
			if i%300 != 0 {
				return nil
			}
			steps++
			return unseen()
		}))
		if err != nil || steps != 4 {
			t.Fatalf("%d steps: %v", steps, err)
		}
		if got := len(b.got); got != 0 {
			t.Errorf("bob was told of %d envelopes", got)
		}
		r.post(a, opened.ID, "board.note", `{}`)
		for range 2 { // now and after a restart
			f, err := r.FollowAll(ctx, hub.WideOptions{After: now})
			if err != nil {
				t.Fatal(err)
			}
			var seqs []uint64
			for len(seqs) == 0 || seqs[len(seqs)-1] != 1201 {
				ev, err := f.Next(ctx)
				if err != nil {
					t.Fatal(err)
				}
				seqs = append(seqs, ev.Envelope.Seq)
			}
			f.Close()
			if !slices.Equal(seqs, []uint64{1200, 1201}) {
				t.Errorf("followers of everything saw %v", seqs)
			}
			r.restart()
		}
	})
}

func TestRefusedSeeds(t *testing.T) {
	t.Parallel()
	stored(t, "nothing of a refused seed stays", withBoard, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		home, other := r.home("hpd", "s"), r.home("hpd", "other")
		taken, err := r.Seed(ctx, hub.Opening{Creator: a.id, Type: "board", Home: other.ID, Name: "n"}, notes(3, nil))
		if err != nil {
			t.Fatal(err)
		}
		broken := errors.New("broken")
		with := func(edit func(*envelope.Envelope)) iter.Seq2[*envelope.Envelope, error] {
			return func(yield func(*envelope.Envelope, error) bool) {
				i := 0
				for e := range notes(700, nil) {
					if i++; i == 700 {
						edit(e)
					}
					if !yield(e, nil) {
						return
					}
				}
			}
		}
		for name, tc := range map[string]struct {
			o    hub.Opening
			from iter.Seq2[*envelope.Envelope, error]
			want func(error) bool
		}{
			"the source fails": {hub.Opening{}, notes(800, func(i int) error {
				if i == 700 {
					return broken
				}
				return nil
			}), func(err error) bool { return errors.Is(err, broken) }},
			"no event type":      {hub.Opening{}, with(func(e *envelope.Envelope) { e.Type = "" }), func(err error) bool { return fault.CodeOf(err) == fault.Invalid }},
			"no object":          {hub.Opening{}, with(func(e *envelope.Envelope) { e.Data = []byte(`1`) }), func(err error) bool { return fault.CodeOf(err) == fault.Invalid }},
			"an id that is none": {hub.Opening{}, with(func(e *envelope.Envelope) { e.ID = "7" }), func(err error) bool { return fault.CodeOf(err) == fault.Invalid }},
			"an id of before":    {hub.Opening{}, with(func(e *envelope.Envelope) { e.ID = strings.Repeat("0", 32) }), func(err error) bool { return fault.CodeOf(err) == fault.Invalid }},
			"an id of later":     {hub.Opening{}, with(func(e *envelope.Envelope) { e.ID = strings.Repeat("f", 32) }), func(err error) bool { return fault.CodeOf(err) == fault.Invalid }},
			"it invites":         {hub.Opening{Type: "conversation", Participants: []string{b.id}}, notes(3, nil), func(err error) bool { return fault.CodeOf(err) == fault.Protocol }},
			"no such creator":    {hub.Opening{Creator: "nobody"}, notes(3, nil), func(err error) bool { return fault.CodeOf(err) == fault.NotFound }},
			"a taken name": {hub.Opening{Home: other.ID, Name: "n"}, notes(700, nil), func(err error) bool {
				return fault.CodeOf(err) == fault.Conflict && strings.Contains(err.Error(), taken.ID)
			}},
		} {
			o := tc.o
			if o.Creator == "" {
				o.Creator = a.id
			}
			if o.Type == "" {
				o.Type = "board"
			}
			if o.Home == "" {
				o.Home = home.ID
			}
			if _, err := r.Seed(ctx, o, tc.from); !tc.want(err) {
				t.Errorf("%s: %v", name, err)
			}
			if err := r.bare(home); err != nil {
				t.Errorf("%s left %v", name, err)
			}
		}
		if ids := r.listAll(hub.ListOptions{}); !slices.Equal(ids, []string{taken.ID}) {
			t.Errorf("listed %v", ids)
		}
	})
	stored(t, "of those who race for a name one wins, and nothing of the others stays", withBoard, func(t *testing.T, r *rig) {
		a := r.agent("alice")
		home := r.home("hpd", "s")
		const racers = 4
		var won atomic.Int32
		var group, begun sync.WaitGroup
		begun.Add(racers)
		for range racers {
			group.Go(func() {
				_, err := r.Seed(ctx, hub.Opening{Creator: a.id, Type: "board", Home: home.ID, Name: "n"}, notes(600, func(i int) error {
					if i == 1 {
						begun.Done()
						begun.Wait()
					}
					return nil
				}))
				if err == nil {
					won.Add(1)
				} else if fault.CodeOf(err) != fault.Conflict {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if n := r.logsOf("home/"+home.ID, "history"); won.Load() != 1 || n != 1 {
			t.Errorf("%d won, %d histories", won.Load(), n)
		}
	})
}

// hookedBoard calls a function before the batch of a creation or a post.
type hookedBoard struct {
	board
	hook func()
}

func (b hookedBoard) OnAccepted(m *channel.Metadata, s channel.State, e *envelope.Envelope) channel.Effects {
	b.hook()
	return b.board.OnAccepted(m, s, e)
}

// A power loss at any batch leaves the whole channel or nothing of it.
func TestSeedsInACrash(t *testing.T) {
	t.Parallel()
	const count = 1200                   // two full batches, the rest, and that of the creation
	before := []int{0, 600, 1100, count} // number of the note before which each batch is yet to be written
	for batch := range before {
		for _, how := range []string{"lost", "failed", "unknown"} {
			inject := func() {}
			o := hub.Options{Adapters: append(adapter.All(), hookedBoard{hook: func() {
				if batch == 3 {
					inject()
				}
			}})}
			runs(t, fmt.Sprintf("batch %d is %s", batch+1, how), o, func(t *testing.T, r *rig) {
				a := r.agent("alice")
				home := r.home("hpd", "s")
				o := hub.Opening{Creator: a.id, Type: "board", Home: home.ID, Name: "n"}
				inject = func() {
					switch how {
					case "lost":
						r.hold() // until the crash
					case "failed":
						r.engine.Faults().FailWrite()
					case "unknown":
						r.engine.Faults().FailSync()
					}
				}
				answer := make(chan error, 1)
				go func() {
					_, err := r.Seed(ctx, o, notes(count, func(i int) error {
						if i == before[batch] {
							inject()
						}
						return nil
					}))
					answer <- err
				}()
				r.settle()
				if how == "lost" {
					r.engine.Faults().Crash()
				}
				if err := <-answer; !fault.Retryable(err) {
					t.Errorf("answered %v", err)
				}
				inject = func() {}
				r.restart()
				if batch == 3 && how == "unknown" { // it was durable after all
					id, err := r.Named(ctx, home.ID, "board", "n")
					if err != nil || len(r.log(id)) != count || r.state(id) != fmt.Sprint(count) {
						t.Errorf("the channel that may be there: %v", err)
					}
					r.post(a, id, "board.note", `{}`)
					r.pass(2 * time.Hour)
					if n := len(r.log(id)); n != count+1 {
						t.Errorf("%d envelopes after the sweep", n)
					}
					return
				}
				if err := r.bare(home); err != nil {
					t.Errorf("left %v", err)
				}
				opened, err := r.Seed(ctx, o, notes(count, nil))
				if err != nil || len(r.log(opened.ID)) != count {
					t.Errorf("again: %v", err)
				}
			})
		}
	}
}

func TestSeedsGivenUp(t *testing.T) {
	t.Parallel()
	runs(t, "what is not complete after an hour is removed, and cannot be completed", withBoard, func(t *testing.T, r *rig) {
		a := r.agent("alice")
		home := r.home("hpd", "s")
		answer := make(chan error, 1)
		go func() {
			_, err := r.Seed(ctx, hub.Opening{Creator: a.id, Type: "board", Home: home.ID}, notes(1200, func(i int) error {
				if i == 1000 {
					<-time.After(66 * time.Minute)
				}
				return nil
			}))
			answer <- err
		}()
		r.pass(59 * time.Minute)
		if n := r.logsOf("home/"+home.ID, "history"); n != 1 {
			t.Errorf("%d histories before the hour", n)
		}
		r.pass(6*time.Minute + time.Second)
		if err := r.bare(home); err != nil {
			t.Errorf("after the hour there are %v", err)
		}
		if err := <-answer; fault.CodeOf(err) != fault.TooLarge {
			t.Errorf("completed too late: %v", err)
		}
		if err := r.bare(home); err != nil {
			t.Errorf("left %v", err)
		}
	})
}
