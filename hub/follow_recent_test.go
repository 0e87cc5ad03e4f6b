package hub_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

// A follower of all channels sees each event once and in the order of its channel,
// whether it keeps up or reads the journal because the newest events in memory do
// not reach back far enough.
func TestWideFollowersShareTheNewestEvents(t *testing.T) {
	t.Parallel()
	for name, bytes := range map[string]int{"all are in memory": 0, "one is in memory": 2048, "none is in memory": 1} {
		o := byHand
		o.Limits.RecentEvents = bytes
		stored(t, name, o, func(t *testing.T, r *rig) {
			a, b := r.agent("alice"), r.agent("bob")
			one, two := r.open("conversation", a, b), r.open("conversation", a, b)
			start, err := r.Now(ctx)
			if err != nil {
				t.Fatal(err)
			}
			const posts = 60
			var read sync.WaitGroup
			for _, as := range []string{"", a.id, b.id} {
				f, err := r.FollowAll(ctx, hub.WideOptions{As: as, After: start})
				if err != nil {
					t.Fatal(err)
				}
				read.Go(func() {
					defer f.Close()
					next := map[string]int{one: 1, two: 1}
					for range 2 * posts {
						ev, err := f.Next(ctx)
						if err != nil {
							t.Error(err)
							return
						}
						n := next[ev.Envelope.Channel]
						if want := fmt.Sprintf(`{"text":"%d"}`, n); string(ev.Envelope.Data) != want {
							t.Errorf("as %q: %s, want %s", as, ev.Envelope.Data, want)
							return
						}
						next[ev.Envelope.Channel]++
					}
				})
			}
			var last *hub.Pending
			for i := range posts {
				for _, ch := range []string{one, two} {
					last = r.Admit(ctx, &envelope.Envelope{
						Channel: ch, Sender: a.id, Type: envelope.TypeText, Data: fmt.Appendf(nil, `{"text":"%d"}`, i+1),
					}, nil)
				}
				if i%7 == 0 {
					if _, err := last.Wait(ctx); err != nil {
						t.Fatal(err)
					}
				}
			}
			read.Wait()
		})
	}
	runs(t, "an event is encoded once for all, if it is the same for all", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		start, err := r.Now(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var shared []*hub.Shared
		var followers []*hub.WideFollower
		for _, as := range []string{"", b.id} {
			f, err := r.FollowAll(ctx, hub.WideOptions{As: as, After: start})
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			followers = append(followers, f)
			if _, wake, err := f.TryNext(ctx); wake == nil || err != nil {
				t.Fatalf("nothing has happened: %v %v", wake, err)
			}
		}
		r.say(a, ch, "hello")
		for _, f := range followers {
			ev, err := f.Next(ctx)
			if err != nil {
				t.Fatal(err)
			}
			shared = append(shared, ev.Shared)
		}
		if r.shards == 1 && (shared[0] == nil || shared[0] != shared[1]) || r.shards > 1 && shared[0] != nil {
			t.Errorf("with %d shards: %p and %p", r.shards, shared[0], shared[1])
		}
	})
	runs(t, "a follower that is closed ends, and another begins anew", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		for range 3 {
			start, err := r.Now(ctx)
			if err != nil {
				t.Fatal(err)
			}
			f, err := r.FollowAll(ctx, hub.WideOptions{After: start})
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() {
				var err error
				for err == nil {
					_, err = f.Next(ctx)
				}
				ended <- err
			}()
			r.say(a, ch, "hello")
			f.Close()
			f.Close()
			if err := <-ended; fault.CodeOf(err) != fault.Unavailable {
				t.Errorf("after Close: %v", err)
			}
		}
	})
	runs(t, "of a channel that was deleted nothing is shown", withFile, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		one, two := r.furnish(r.home("hpd", "s"), a, b)
		start, err := r.Now(ctx)
		if err != nil {
			t.Fatal(err)
		}
		f, err := r.FollowAll(ctx, hub.WideOptions{As: b.id, After: start})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		r.post(a, one, "file.note", `{}`)
		r.settle()
		if err := r.Delete(ctx, one, theOperator); err != nil {
			t.Fatal(err)
		}
		r.post(a, two, "file.note", `{}`)
		ev, err := f.Next(ctx)
		if err != nil || ev.Envelope.Channel != two {
			t.Errorf("%+v, %v", ev, err)
		}
	})
}
