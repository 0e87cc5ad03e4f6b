package terminal

import (
	"os/exec"
	"testing"
)

// TestWhatEndsSomethingNamesItsContext: a destructive command at a terminal
// names the hub if a context chose it; commands that only read do not.
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
