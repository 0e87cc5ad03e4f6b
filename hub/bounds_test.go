package hub_test

import (
	"strings"
	"testing"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

func TestWhatListsShowIsBounded(t *testing.T) {
	t.Parallel()
	runs(t, "passports, labels and reasons", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		big := strings.Repeat("x", 17<<10)
		owned := passport("big")
		owned.Owner = big
		if _, err := r.tryRegister(owned); fault.CodeOf(err) != fault.TooLarge || !strings.Contains(err.Error(), "limits.record") {
			t.Errorf("passport: %v", err)
		}
		for name, edit := range map[string]func(*hub.Opening){
			"labels": func(o *hub.Opening) { o.Labels = map[string]string{"k": big} },
			"intent": func(o *hub.Opening) { o.Intent = big },
		} {
			if _, err := r.tryOpen("conversation", edit, a, b); fault.CodeOf(err) != fault.TooLarge {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n := len(r.listed()); n != 0 {
			t.Errorf("%d channels were left", n)
		}
		ch := r.open("conversation", a, b)
		if _, err := r.CloseChannel(ctx, ch, big); fault.CodeOf(err) != fault.TooLarge {
			t.Errorf("reason: %v", err)
		}
		r.say(a, ch, "still open")
	})
}
