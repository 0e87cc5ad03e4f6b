package hub_test

import (
	"testing"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
)

func pending(n int64) func(*hub.Registration) {
	return func(reg *hub.Registration) { reg.Rule = pendingRule(n) }
}

func TestPlacesInAnInboxAreFreed(t *testing.T) {
	t.Parallel()
	runs(t, "by receipts, also of who never speaks", hub.Options{Limits: hub.Limits{Inbox: 3}}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		for range 10 {
			id := r.say(a, ch, "read this")
			r.settle()
			if err := r.Ack(ctx, b.id, ch, id); err != nil {
				t.Fatal(err)
			}
		}
		if got := r.Pending(b.id); got != 0 {
			t.Errorf("bob, who acked everything, has %d unanswered envelopes", got)
		}
		one := r.say(a, ch, "1")
		r.say(a, ch, "2")
		r.settle()
		if err := r.Ack(ctx, b.id, ch, one); err != nil {
			t.Fatal(err)
		}
		if got := r.Pending(b.id); got != 1 {
			t.Errorf("after a receipt for one of two, %d wait", got)
		}
	})
	holds(t, "ag2-hub#64: under a rule that lowers the default, receipts free no place and an answer frees one", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob", pending(3))
		ch := r.open("conversation", a, b)
		for range 3 {
			id := r.say(a, ch, "read this")
			r.settle()
			t.NoError(r.Ack(ctx, b.id, ch, id))
		}
		before := len(r.log(ch))
		_, err := r.trySay(a, ch, "and this")
		t.ErrorContains(err, "inbox at capacity")
		t.Equal(len(r.log(ch)), before)
		r.say(b, ch, "I did")
		r.settle()
		_, err = r.trySay(a, ch, "and this")
		t.NoError(err)
	})
	runs(t, "when a channel ends", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob", pending(3))
		one, two := r.open("conversation", a, b), r.open("conversation", a, b)
		if got := fill(t, r, a, one, 10); got != 3 {
			t.Fatalf("alice reached bob %d times, want 3", got)
		}
		if _, err := r.CloseChannel(ctx, one, "over"); err != nil {
			t.Fatal(err)
		}
		r.settle()
		if got := fill(t, r, a, two, 10); got != 3 {
			t.Errorf("after the channel ended alice reached bob %d times, want 3", got)
		}
	})
}

// One sender cannot make an identity unreachable for all others.
func TestEachSenderHasAShareOfAnInbox(t *testing.T) {
	t.Parallel()
	runs(t, "a full inbox has room for those who did not fill it", hub.Options{}, func(t *testing.T, r *rig) {
		a, c := r.agent("alice"), r.agent("carol")
		b := r.agent("bob", pending(16))
		hostile, honest := r.open("conversation", a, b), r.open("conversation", c, b)
		if got := fill(t, r, a, hostile, 100); got != 16 {
			t.Errorf("alice reached bob %d times, want 16", got)
		}
		if got := fill(t, r, c, honest, 100); got != 2 {
			t.Errorf("carol reached bob %d times, want her share of 2", got)
		}
		if _, err := r.trySay(a, hostile, "more"); err == nil {
			t.Error("alice has the share of those who did not fill the inbox")
		}
		if got := r.Pending(b.id); got != 18 {
			t.Errorf("%d envelopes wait, want 18", got)
		}
		r.post(b, honest, envelope.TypeText, text("thanks"))
		r.settle()
		if _, err := r.trySay(c, honest, "welcome"); err != nil {
			t.Errorf("after an answer: %v", err)
		}
	})
}

// A person who acknowledges everything and never speaks blocks nobody, also after
// the channels that she watched have ended.
func TestWhoOnlyWatchesStopsNobody(t *testing.T) {
	t.Parallel()
	const most = 3
	runs(t, "in channels that go on and that end", hub.Options{Limits: hub.Limits{Inbox: most}}, func(t *testing.T, r *rig) {
		a, w := r.agent("alice"), r.human("wanda")
		for range 3 {
			ch := r.open("conversation", a, w)
			for range 4 * most {
				id, err := r.trySay(a, ch, "news")
				if err != nil {
					t.Fatal(err)
				}
				r.settle()
				if err := r.Ack(ctx, w.id, ch, id); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := r.CloseChannel(ctx, ch, "over"); err != nil {
				t.Fatal(err)
			}
			r.settle()
		}
		if got := r.Pending(w.id); got != 0 {
			t.Errorf("%d places of ended channels are taken", got)
		}
	})
}
