package hub_test

import (
	"strings"
	"testing"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

func TestNestingIsBounded(t *testing.T) {
	t.Parallel()
	nested := func(n int) string {
		return strings.Repeat(`{"a":[`, n/2) + strings.Repeat(`{"a":`, n%2) + `"\"[{["` + strings.Repeat(`}`, n%2) + strings.Repeat(`]}`, n/2)
	}
	wide := `{"a":[` + strings.Repeat(`[],{},`, 500) + `"` + strings.Repeat(`\"{[\\`, 300) + `"]}`
	runs(t, "of a payload", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		for _, data := range []string{nested(249), nested(250), wide} {
			r.post(a, ch, "custom.deep", data)
		}
		before := len(r.log(ch))
		for _, n := range []int{251, 300, 3000} {
			_, err := r.tryPost(a, ch, "custom.deep", nested(n))
			if fault.CodeOf(err) != fault.TooLarge || !strings.Contains(err.Error(), "event_data nests deeper than 250") {
				t.Errorf("%d deep: %v", n, err)
			}
		}
		if after := len(r.log(ch)); after != before {
			t.Errorf("%d were logged", after-before)
		}
	})
	runs(t, "of knobs", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		r.openWith("conversation", func(o *hub.Opening) { o.Knobs = []byte(nested(250)) }, a, b)
		_, err := r.tryOpen("conversation", func(o *hub.Opening) { o.Knobs = []byte(nested(251)) }, a, b)
		if fault.CodeOf(err) != fault.TooLarge || !strings.Contains(err.Error(), "knobs nests deeper than 250") {
			t.Errorf("got %v", err)
		}
		_, err = r.tryOpen("conversation", func(o *hub.Opening) { o.Knobs = []byte(`{"a":"` + strings.Repeat("x", 1<<20) + `"}`) }, a, b)
		if fault.CodeOf(err) != fault.TooLarge || !strings.Contains(err.Error(), "at most 1048576 (limits.event)") {
			t.Errorf("large ones: %v", err)
		}
		if got := len(r.listed()); got != 1 {
			t.Errorf("%d channels are listed", got)
		}
	})
}
