package hub_test

import (
	"testing"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

func TestOnlyMembersTakePlacesInAnInbox(t *testing.T) {
	t.Parallel()
	runs(t, "an audience that names someone outside", hub.Options{}, func(t *testing.T, r *rig) {
		a, c := r.agent("alice"), r.agent("carol")
		b := r.agent("bob", func(reg *hub.Registration) { reg.Rule = pendingRule(3) })
		elsewhere, ours := r.open("conversation", a, c), r.open("conversation", c, b)
		for range 10 {
			r.post(a, elsewhere, envelope.TypeText, text("bob!"), audience(b))
			r.settle()
		}
		if got := r.Pending(b.id); got != 0 {
			t.Errorf("bob has %d unanswered envelopes of a channel that he has no part in", got)
		}
		if got := fill(t, r, c, ours, 10); got != 3 {
			t.Errorf("carol reached bob %d times, want 3", got)
		}
	})
	runs(t, "only whom the adapter tells", withBoard, func(t *testing.T, r *rig) {
		a, c := r.agent("alice"), r.agent("carol")
		b := r.agent("bob", func(reg *hub.Registration) { reg.Rule = pendingRule(3) })
		ch := r.open("board", a, b, c)
		for range 10 {
			r.post(a, ch, "board.note", `{}`, directed(c)) // bob may read it
			r.settle()
		}
		if got := r.Pending(b.id); got != 0 {
			t.Errorf("bob has %d unanswered envelopes that were not for him", got)
		}
		for range 3 {
			r.post(a, ch, "board.note", `{}`, directed(b))
			r.settle()
		}
		_, err := r.tryPost(a, ch, "board.note", `{}`)
		if err != nil {
			t.Errorf("a note to nobody: %v", err)
		}
		_, err = r.Post(ctx, &envelope.Envelope{Channel: ch, Sender: a.id, Type: "board.note", To: b.id, Data: []byte(`{}`)}, nil)
		if fault.CodeOf(err) != fault.InboxFull {
			t.Errorf("the fourth for bob: %v", err)
		}
	})
}
