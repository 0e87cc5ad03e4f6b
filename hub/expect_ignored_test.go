package hub_test

import (
	"testing"
	"time"

	"github.com/parley-hub/parley/hub"
)

func TestExpectationsMayBeIgnored(t *testing.T) {
	t.Parallel()
	ignoring := byHand
	ignoring.IgnoreExpectations = true
	// waiting opens a channel in which bob is expected to speak.
	waiting := func(r *rig, with func(*hub.Opening)) string {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.openWith("discussion", with, a, b)
		r.say(a, ch, "?")
		return ch
	}
	short := expecting("[" + expectation("turn_within", "auto_close", `{"seconds":10}`) + "]")
	for name, c := range map[string]struct {
		opts  hub.Options
		with  func(*hub.Opening)
		fires bool
	}{
		"the knob's are enforced by default":     {byHand, short, true},
		"the knob's are ignored":                 {ignoring, short, false},
		"the manifest's are enforced by default": {byHand, knobs(`{}`), true},
		"the manifest's are ignored":             {ignoring, knobs(`{}`), false},
	} {
		runs(t, name, c.opts, func(t *testing.T, r *rig) {
			ch := waiting(r, c.with)
			r.pass(24 * time.Hour)
			r.sweep()
			if got := r.fired(); (len(got) > 0) != c.fires {
				t.Errorf("fired %v, want %t", got, c.fires)
			}
			if !c.fires && r.channel(ch).State.Terminal() {
				t.Error("the channel ended")
			}
		})
	}
	runs(t, "what was due before they were ignored does not fire", byHand, func(t *testing.T, r *rig) {
		ch := waiting(r, short)
		r.stop()
		r.opts.IgnoreExpectations = true
		r.start()
		r.pass(time.Hour)
		r.sweep()
		if got := r.fired(); len(got) != 0 || r.channel(ch).State.Terminal() {
			t.Errorf("fired %v in %v", got, r.channel(ch).State)
		}
	})
}
