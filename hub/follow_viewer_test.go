package hub_test

import (
	"slices"
	"testing"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
)

// Whether a viewer may see an event is decided from what is durable: the viewer
// does not wait for the channel's newest batch, which is not durable yet.
func TestViewersDoNotWaitForLaterBatches(t *testing.T) {
	t.Parallel()
	runs(t, "a follower with a viewer", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		f := r.follow(ch, hub.FollowOptions{As: b.id})
		defer f.Close()
		r.read(f)
		r.say(a, ch, "durable")
		release := r.hold()
		defer release()
		later := r.Admit(ctx, &envelope.Envelope{Channel: ch, Sender: a.id, Type: envelope.TypeText, Data: []byte(`{"text":"on its way"}`)}, nil)
		if got := r.read(f); !slices.Equal(got, []string{`4 {"text":"durable"}`}) {
			t.Errorf("while the next batch waits for the disk: %v", got)
		}
		release()
		if _, err := later.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		if got := r.read(f); !slices.Equal(got, []string{`5 {"text":"on its way"}`}) {
			t.Errorf("afterwards: %v", got)
		}
	})
	runs(t, "the feed of all channels", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		after, err := r.Now(ctx)
		if err != nil {
			t.Fatal(err)
		}
		f, err := r.FollowAll(ctx, hub.WideOptions{As: b.id, After: after})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		r.say(a, ch, "durable")
		release := r.hold()
		defer release()
		later := r.Admit(ctx, &envelope.Envelope{Channel: ch, Sender: a.id, Type: envelope.TypeText, Data: []byte(`{"text":"on its way"}`)}, nil)
		now, err := r.Now(ctx)
		if err != nil {
			t.Fatal(err)
		}
		ev, ok, err := f.NextUntil(ctx, now)
		if err != nil || !ok || string(ev.Envelope.Data) != `{"text":"durable"}` {
			t.Errorf("while the next batch waits for the disk: %+v, %v, %v", ev, ok, err)
		}
		release()
		if _, err := later.Wait(ctx); err != nil {
			t.Fatal(err)
		}
	})
}
