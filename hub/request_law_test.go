package hub_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/request"
)

// A request has at most one answer; it is open exactly while it is neither
// answered, expired nor cancelled; the index equals the fold.
func TestLawRequests(t *testing.T) {
	t.Parallel()
	law(t, func(rt *rapid.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		channels := []string{r.open("conversation", a, b), r.open("conversation", a, b)}
		want := map[string]request.State{}
		answers := map[string]string{}
		dues := map[string]time.Time{}
		of := map[string]string{}
		var ids []string
		now := func() time.Time { return time.Now() }
		anyID := func() string {
			if len(ids) == 0 {
				return "none"
			}
			return rapid.SampledFrom(ids).Draw(rt, "request")
		}
		expire := func() {
			for id, at := range dues {
				if want[id] == request.Open && !at.IsZero() && !now().Before(at) {
					want[id] = request.Expired
				}
			}
		}
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			expire()
			switch rapid.IntRange(0, 7).Draw(rt, "step") {
			case 0, 1:
				ch := rapid.SampledFrom(channels).Draw(rt, "channel")
				q := askingFor(a, ch)
				if rapid.Bool().Draw(rt, "due") {
					q.DueAt = now().Add(time.Duration(rapid.IntRange(1, 300).Draw(rt, "seconds")) * time.Second)
				}
				asked, err := r.Ask(ctx, q, nil)
				if ended := r.channel(ch).State.Terminal(); ended != (err != nil) {
					rt.Fatalf("asked in an ended channel (%v): %v", ended, err)
				}
				if err == nil {
					ids, want[asked.ID], dues[asked.ID], of[asked.ID] = append(ids, asked.ID), request.Open, asked.DueAt, ch
				}
			case 2, 3:
				id, choice := anyID(), rapid.SampledFrom([]string{"approve", "deny"}).Draw(rt, "choice")
				_, err := r.Answer(ctx, id, hub.Answer{Choice: choice}, nil)
				switch {
				case want[id] == request.Open:
					if err != nil {
						rt.Fatalf("an open request was not answered: %v", err)
					}
					want[id], answers[id] = request.Answered, choice
				case (err == nil) != (want[id] == request.Answered && answers[id] == choice):
					rt.Fatalf("%s is %s (%s), and %s was answered with %v", id, want[id], answers[id], choice, err)
				}
			case 4:
				id := anyID()
				if _, err := r.CancelRequest(ctx, id, "", nil); err == nil && want[id] == request.Open {
					want[id] = request.Cancelled
				}
			case 5:
				r.pass(time.Duration(rapid.IntRange(1, 120).Draw(rt, "pass")) * time.Second)
			case 6:
				if rapid.Bool().Draw(rt, "crash") {
					r.crash()
				} else {
					r.restart()
				}
			case 7:
				if rapid.IntRange(0, 3).Draw(rt, "end") == 0 {
					ch := rapid.SampledFrom(channels).Draw(rt, "ended")
					r.end(ch, "over")
					for id, state := range want {
						if of[id] == ch && state == request.Open {
							want[id] = request.Cancelled
						}
					}
				}
			}
			r.pass(2 * time.Second) // so that the sweep has run
			expire()
			byState := map[request.State][]string{}
			for _, id := range ids {
				got := r.request(id)
				if got.State != want[id] || (got.Answer != nil) != (want[id] == request.Answered) || got.Answer != nil && got.Answer.Choice != answers[id] {
					rt.Fatalf("%s is %s %+v, want %s %s", id, got.State, got.Answer, want[id], answers[id])
				}
				byState[got.State] = append(byState[got.State], id)
			}
			for _, state := range request.States() {
				if got := r.requestIDs(hub.RequestQuery{State: state, Limit: 3}); !slices.Equal(got, byState[state]) {
					rt.Fatalf("listed as %s: %v, want %v", state, got, byState[state])
				}
			}
			if got := r.requestIDs(hub.RequestQuery{ByDue: true, Limit: 2}); len(got) != len(ids) {
				rt.Fatalf("%d by due time, want %d", len(got), len(ids))
			}
		}
	})
}
