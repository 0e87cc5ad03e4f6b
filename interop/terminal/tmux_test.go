package terminal

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// window is a window of a tmux server of its own.
type window struct {
	t      *testing.T
	socket string
}

// openWindow runs a command of parley in a window. When it ends, the window
// shows with which code.
func openWindow(t *testing.T, h *hub, width, height int, command string, env ...string) *window {
	t.Helper()
	w := &window{t, filepath.Join(t.TempDir(), "tmux")}
	line := fmt.Sprintf("%s %s; echo \"ended with $?\"; exec cat", parley(t), command)
	args := []string{"new-session", "-d", "-x", fmt.Sprint(width), "-y", fmt.Sprint(height), "env", "PARLEY_HUB=" + h.url()}
	args = append(args, env...)
	w.tmux(append(args, "sh", "-c", line)...)
	t.Cleanup(func() { _ = exec.Command("tmux", "-S", w.socket, "kill-server").Run() })
	return w
}

func (w *window) tmux(args ...string) string {
	w.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-S", w.socket, "-f", os.DevNull}, args...)...)
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "LC_ALL=C.UTF-8")
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("tmux %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// text is what the window shows; escapes are its colours too.
func (w *window) text() string    { return w.tmux("capture-pane", "-p") }
func (w *window) escapes() string { return w.tmux("capture-pane", "-p", "-e") }

// keys presses keys by tmux's names of them.
func (w *window) keys(names ...string) { w.tmux(append([]string{"send-keys"}, names...)...) }

// types types a text as it is.
func (w *window) types(text string) { w.tmux("send-keys", "-l", text) }

// shows waits until the window shows all the texts at once.
func (w *window) shows(texts ...string) {
	w.t.Helper()
	w.until(fmt.Sprintf("does not show %q", texts), func(text string) bool {
		for _, want := range texts {
			if !strings.Contains(text, want) {
				return false
			}
		}
		return true
	})
}

// hides waits until the window does not show a text.
func (w *window) hides(text string) {
	w.t.Helper()
	w.until(fmt.Sprintf("shows %q", text), func(shown string) bool { return !strings.Contains(shown, text) })
}

func (w *window) until(complaint string, as func(text string) bool) {
	w.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	last := ""
	for late := time.Now().Add(patience); time.Now().Before(late); <-tick.C {
		if last = w.text(); as(last) {
			return
		}
	}
	w.t.Fatalf("the window %s:\n%s", complaint, last)
}
