package disk_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-hub/parley/internal/scale"
)

// TestInjectedErrors fails one operation of the disk after another, each in a
// child. What was acknowledged is there; nothing is acknowledged on top of what
// failed; the process ends by itself, soon, and says why.
func TestInjectedErrors(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 4))
	t.Logf("seed %d", seed)
	const operations = 400 // about what the children do
	n := min(operations, scale.N(100))
	for i := range n {
		at := 1 + i*operations/n + rng.IntN(max(1, operations/n))
		kind := []string{"io", "full"}[rng.IntN(2)]
		how := []string{"once", "stays"}[rng.IntN(2)]
		injectError(t, fmt.Sprintf("%d:%s:%s", at, kind, how))
	}
}

// TestInjectedErrorsByName fails what is rare, or what Pebble would answer by
// ending the process without a word: the change to a new log, the folder, the
// MANIFEST, tables.
func TestInjectedErrorsByName(t *testing.T) {
	t.Parallel()
	for i, what := range []string{
		"create 0", "sync store", "sync MANIFEST", "write MANIFEST", "create MANIFEST", "rename", "sync 0", "write 0", "sync MARK",
	} {
		if code := injectError(t, fmt.Sprintf("%s:io:%s", what, []string{"once", "stays"}[i%2])); code != 3 && i < 4 {
			t.Errorf("fault %q: the process ended with %d", what, code)
		}
	}
}

// injectError returns the child's exit code.
func injectError(t *testing.T, fault string) int {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	cmd := child(t, "faulty", "DISK_TEST_DIR="+dir, "DISK_TEST_FAULT="+fault, "DISK_TEST_APPENDS=100")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w, ended := watch(stdout)
	select {
	case <-ended:
	case <-time.After(2 * time.Minute):
		_ = cmd.Process.Kill()
		<-ended
		_ = cmd.Wait()
		t.Errorf("fault %s: the process does not end; its last line is %q", fault, w.last)
		return -1
	}
	took := time.Since(w.fault)
	err = cmd.Wait()
	code := cmd.ProcessState.ExitCode()
	switch {
	case code == 0 && w.last == "closed":
		// The operation did not matter, or was never reached.
	case w.fault.IsZero():
		t.Errorf("fault %s: ended with %v and %q before the fault\n%s", fault, err, w.last, stderr.String())
	case code == 3 && strings.HasPrefix(w.last, "journal: failed: ") && strings.Contains(w.last, "injected"):
		if took > 5*time.Second {
			t.Errorf("fault %s: the process took %v to end", fault, took)
		}
	default:
		t.Errorf("fault %s: ended with %v and %q\n%s", fault, err, w.last, stderr.String())
	}
	verifyChild(t, dir, w, "fault "+fault)
	return code
}
