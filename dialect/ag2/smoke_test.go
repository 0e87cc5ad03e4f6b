package ag2_test

import "testing"

func TestSmoke(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{})
	a, b := r.dial(), r.dial()
	alice, bob := a.register("alice"), b.register("bob")
	ch := a.open("conversation", alice, map[string]*peer{bob: b})
	id := a.say(ch, alice, "hi")
	n := b.notified()
	if n.Envelope["envelope_id"] != id || n.Recipient != bob {
		t.Fatalf("got %v", n)
	}
	b.receipt(n, "ack")
	until(t, "the cursor moves", func() bool {
		cur, err := r.hub.Cursor(t.Context(), bob, ch)
		return err == nil && cur == id
	})
	a.quiet()
	b.quiet()
}
