package hub_test

import (
	"testing"

	"github.com/parley-hub/parley/envelope"
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
}
