package hub_test

import (
	"testing"
	"time"

	"github.com/parley-hub/parley/conformance/spec"
)

func TestOverdueWhileNoHubRan(t *testing.T) {
	t.Parallel()
	night := 9 * time.Hour
	// waiting returns a discussion in which bob is expected to speak, in two
	// minutes or as params say, after the hub was down for a while.
	waiting := func(r *rig, params string, down time.Duration) (ch string, a, b *agent) {
		a, b = r.agent("alice"), r.agent("bob")
		ch = r.openWith("discussion", expecting("["+expectation("turn_within", "auto_close", params)+"]"), a, b)
		r.say(a, ch, "?")
		r.stop()
		r.pass(down)
		r.start()
		return ch, a, b
	}
	// firesAfter checks that an expectation fires after d and not before.
	firesAfter := func(t *spec.T, r *rig, d time.Duration) {
		t.Helper()
		if d > 0 {
			r.sweep()
			r.pass(d - 1)
			r.sweep()
			t.Equal(r.fired(), []string{})
			r.pass(1)
		}
		r.sweep()
		t.Equal(len(r.fired()), 1)
	}
	for name, c := range map[string]struct {
		grace  time.Duration
		params string
		down   time.Duration
		fires  time.Duration
	}{
		"has a minute":                       {0, `{}`, night, time.Minute},
		"or what was set":                    {90 * time.Second, `{}`, night, 90 * time.Second},
		"or what it ever had, if less":       {0, `{"seconds":10}`, night, 10 * time.Second},
		"or nothing, if that was set":        {-1, `{}`, night, 0},
		"also if it was due at the opening":  {0, `{}`, 2 * time.Minute, time.Minute},
		"but not if it is due just after it": {0, `{}`, 2*time.Minute - time.Second, time.Second},
	} {
		o := byHand
		o.RestartGrace = c.grace
		runs(t, "whoever is overdue "+name, o, func(t *testing.T, r *rig) {
			ch, _, _ := waiting(r, c.params, c.down)
			s := &spec.T{T: t}
			firesAfter(s, r, c.fires)
			s.Equal(r.channel(ch).CloseReason, "expectation_violated:turn_within")
		})
	}
	runs(t, "an answer in time is in time", byHand, func(t *testing.T, r *rig) {
		s := &spec.T{T: t}
		ch, a, b := waiting(r, `{}`, night)
		r.sweep()
		r.pass(59 * time.Second)
		r.say(b, ch, "here I am")
		r.pass(time.Minute)
		r.sweep()
		s.Equal(r.fired(), []string{})
		r.say(a, ch, "good")
		r.pass(2*time.Minute - 1)
		r.sweep()
		s.Equal(r.fired(), []string{})
		r.pass(1)
		r.sweep()
		s.Equal(len(r.fired()), 1)
	})
}
