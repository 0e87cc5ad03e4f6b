package hub_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

// A reader that does not keep up with its replay is cut off with a reason. The
// posts succeed, and all other readers receive them.
func TestReplayFallsBehind(t *testing.T) {
	t.Parallel()
	runs(t, "limits.replay", hub.Options{Limits: hub.Limits{Replay: 2}}, func(t *testing.T, r *rig) {
		a, b, c := r.agent("a"), r.agent("b"), r.agent("c")
		ch := r.open("discussion", a, b, c)
		note := func(i int) { r.post(a, ch, fmt.Sprint("app.note", i), `{}`) }
		r.away(b)
		note(0)
		stuck := make(chan struct{})
		b.replaying(func() { <-stuck })
		ended := make(chan error, 1)
		go func() { ended <- r.BindReplaying(ctx, b.id, b, "") }()
		r.settle()
		c.clear()
		for i := range 4 {
			note(i + 1)
		}
		r.settle()
		want := []string{"app.note1", "app.note2", "app.note3", "app.note4"}
		if got := c.received(); !slices.Equal(got, want) {
			t.Errorf("the other reader got %q", got)
		}
		b.mu.Lock()
		cut := b.cut
		b.mu.Unlock()
		if fault.CodeOf(cut) != fault.SlowReader {
			t.Errorf("the reader was told %v", cut)
		}
		if _, bound := r.Bound(b.id); bound {
			t.Error("it is still bound")
		}
		b.replaying(nil)
		close(stuck)
		<-ended
		r.back(b, "")
		if got := b.received(); !slices.Equal(got[len(got)-5:], append([]string{"app.note0"}, want...)) {
			t.Errorf("back again it got %q", got)
		}
	})
}
