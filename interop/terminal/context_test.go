package terminal

import (
	"os/exec"
	"testing"
)

// TestWhatEndsSomethingNamesItsContext: a person at a terminal is told which hub is
// about to lose something, if a context chose it; what only looks says nothing.
func TestWhatEndsSomethingNamesItsContext(t *testing.T) {
	t.Parallel()
	h, channel := room(t)
	home := t.TempDir()
	add := exec.Command(parley(t), "context", "add", "harbour", "--hub", h.url())
	add.Env = []string{"XDG_CONFIG_HOME=" + home}
	if out, err := add.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	env := []string{"XDG_CONFIG_HOME=" + home, "PARLEY_HUB="}
	w := openWindow(t, h, 120, 24, "channels show "+channel, env...)
	w.shows("conversation", "ended with 0")
	w.hides("asking")
	w = openWindow(t, h, 120, 24, "channels close "+channel, env...)
	w.shows("asking "+h.url(), "harbour", "ended with 0")
}
