package disk_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-hub/parley/internal/scale"
	"github.com/parley-hub/parley/journal/disk"
)

// TestInjectedErrors fails one disk operation after another, each in a child. What
// was acknowledged is there; nothing is acknowledged after the failure; the process
// soon ends by itself and prints why.
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

// TestInjectedErrorsByName fails operations that are rare, or after which Pebble
// would end the process without a message: the change to a new log, the folder, the
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

// TestInjectedErrorsWhileOpening fails one operation after another, beginning with
// the first: of opening a new folder, a closed one, one that a crash left, and of
// making a folder from a backup or from a damaged one.
func TestInjectedErrorsWhileOpening(t *testing.T) {
	t.Parallel()
	closed, crashed, backup := folders(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for i, c := range []struct {
		name, folder, task, from string
		few                      int // children; at a scale of 4, as many as there are operations
	}{
		{name: "new", few: 38},
		{name: "closed", folder: closed, few: 16},
		{name: "crashed", folder: crashed, few: 16},
		{name: "restored", task: "restore", from: backup, few: 30},
		{name: "salvaged", task: "salvage", from: closed, few: 85},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			in := injection{armed: true, folder: c.folder, task: c.task, from: c.from, appends: folderEntries + 1}
			if c.folder != "" || c.task != "" {
				in.before = folderEntries
			}
			_, ops := in.run(t, "0:io:once")
			if ops == 0 {
				t.Fatal("the child does not say what opening takes")
			}
			n := min(ops, scale.N(c.few))
			t.Logf("%d of %d operations", n, ops)
			for i := range n {
				at := 1 + i*ops/n + rng.IntN(max(1, ops/n))
				kind := []string{"io", "full"}[rng.IntN(2)]
				how := []string{"once", "stays"}[rng.IntN(2)]
				in.run(t, fmt.Sprintf("%d:%s:%s", at, kind, how))
			}
		})
	}
}

// folderEntries is the number of entries of each writer's log in the folders.
const folderEntries = 5

// folders makes a folder that was closed, one that a crash left, and a backup.
func folders(t *testing.T) (closed, crashed, backup string) {
	t.Helper()
	root := t.TempDir()
	closed, crashed, backup = filepath.Join(root, "closed"), filepath.Join(root, "crashed"), filepath.Join(root, "backup")
	e, err := disk.Open(closed, disk.Options{MinFree: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, e)
	for w := range childWriters {
		childWrites(e, &lines{w: io.Discard}, w, folderEntries)
	}
	if _, err := e.Checkpoint(ctx, backup); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(crashed, os.DirFS(closed)); err != nil {
		t.Fatal(err)
	}
	return closed, crashed, backup
}

// injection is a child that fails an operation.
type injection struct {
	armed      bool   // from the first operation on
	folder     string // the child's folder is a copy of this one; "": none
	task, from string // how the folder is made
	before     int    // entries that each log has
	appends    int    // entries that each log has at the end
}

// injectError runs a child with a fault and returns its exit code.
func injectError(t *testing.T, fault string) int {
	t.Helper()
	code, _ := injection{appends: 100}.run(t, fault)
	return code
}

// run runs the child, and returns its exit code and how many operations opening took.
func (in injection) run(t *testing.T, fault string) (code, ops int) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	if in.folder != "" {
		if err := os.CopyFS(dir, os.DirFS(in.folder)); err != nil {
			t.Fatal(err)
		}
	}
	env := []string{
		"DISK_TEST_DIR=" + dir, "DISK_TEST_FAULT=" + fault, fmt.Sprint("DISK_TEST_APPENDS=", in.appends),
		"DISK_TEST_TASK=" + in.task, "DISK_TEST_FROM=" + in.from,
	}
	if in.armed {
		env = append(env, "DISK_TEST_ARMED=yes")
	}
	cmd := child(t, "faulty", env...)
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
	case <-time.After(30 * time.Second):
		_ = cmd.Process.Kill()
		<-ended
		_ = cmd.Wait()
		t.Errorf("fault %s: the process does not end; its last line is %q\n%s", fault, w.last, stderr.String())
		return -1, 0
	}
	took := time.Since(w.fault)
	err = cmd.Wait()
	code = cmd.ProcessState.ExitCode()
	switch {
	case code == 0 && w.last == "closed":
		// The operation did not matter, or was never reached.
	case w.fault.IsZero():
		t.Errorf("fault %s: ended with %v and %q before the fault\n%s", fault, err, w.last, stderr.String())
	case code == 3 && strings.HasPrefix(w.last, "journal: failed: ") && strings.Contains(w.last, "injected"),
		in.armed && code == 4 && strings.HasPrefix(w.last, "journal: cannot open: ") && strings.Contains(w.last, "injected"):
		if took > 5*time.Second {
			t.Errorf("fault %s: the process took %v to end", fault, took)
		}
	default:
		t.Errorf("fault %s: ended with %v and %q\n%s", fault, err, w.last, stderr.String())
	}
	if in.task != "" && code == 4 {
		return code, w.ops // an unfinished folder need not open
	}
	for who := range w.acked {
		w.acked[who] = max(w.acked[who], in.before)
	}
	verifyChild(t, dir, w, "fault "+fault)
	return code, w.ops
}
