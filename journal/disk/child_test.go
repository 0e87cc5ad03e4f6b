package disk_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"github.com/parley-hub/parley/internal/scale"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk"
	"github.com/parley-hub/parley/journal/disk/repair"
)

// Some failures end the process, or leave Pebble in a state in which it must not be
// called. They are tested in a child process: this test binary, with its role in an
// environment variable.
const childRole = "DISK_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childRole) != "" {
		go endWithParent()
	}
	switch os.Getenv(childRole) {
	case "":
		_ = flag.Set("rapid.checks", strconv.Itoa(scale.N(40)))
		goleak.VerifyTestMain(m)
	case "test": // a test that leaks goroutines
		os.Exit(m.Run())
	case "writer":
		os.Exit(childWriter(vfs.Default))
	case "faulty":
		os.Exit(childWriter(newLossyFS(os.Getenv("DISK_TEST_FAULT"))))
	}
}

// endWithParent ends a child whose parent was killed: some children would wait
// forever.
func endWithParent() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(5)
}

// child returns a command that runs this binary in a role.
func child(t testing.TB, role string, env ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self) //nolint:gosec // ourselves
	cmd.Env = append(append(os.Environ(), childRole+"="+role, "GORACE=atexit_sleep_ms=0"), env...)
	if _, err := cmd.StdinPipe(); err != nil { // open until it has ended
		t.Fatal(err)
	}
	return cmd
}

// inChild reports whether the test runs in a child; if not, it runs the test in one.
// It is for tests that leave something that cannot be closed or undone in this process.
func inChild(t *testing.T) bool {
	t.Helper()
	if os.Getenv(childRole) != "" {
		return true
	}
	cmd := child(t, "test")
	cmd.Args = append(cmd.Args, "-test.run=^"+t.Name()+"$")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

const (
	childWriters = 8
	// A child's batch writes the same text to a log and to its twin.
	childFamily, twinFamily = "child", "twin"
)

func childLogs(w int) (journal.LogName, journal.LogName) {
	return room.In(childFamily, fmt.Sprint(w)), room.In(twinFamily, fmt.Sprint(w))
}

// childWriter writes with many writers and prints a line for every durable
// batch. When the journal fails, it returns 3 and prints the error as its last line.
func childWriter(fs vfs.FS) int {
	out := &lines{w: os.Stdout}
	most, _ := strconv.Atoi(os.Getenv("DISK_TEST_APPENDS"))
	opts := disk.Options{FS: fs, MinFree: -1, MemTableSize: 256 << 10, CacheBytes: 256 << 10}
	dir := os.Getenv("DISK_TEST_DIR")
	lossy, _ := fs.(*lossyFS)
	if lossy != nil {
		lossy.out = out
		if os.Getenv("DISK_TEST_ARMED") != "" {
			lossy.arm()
		}
	}
	if err := childTask(dir, opts); err != nil {
		out.print("journal: cannot open: %v", strings.ReplaceAll(err.Error(), "\n", " "))
		return 4
	}
	e, err := disk.Open(dir, opts)
	if err != nil {
		out.print("journal: cannot open: %v", strings.ReplaceAll(err.Error(), "\n", " "))
		return 4
	}
	if lossy != nil {
		out.print("open after %d", lossy.ops.Load())
		lossy.arm()
	}
	var wg sync.WaitGroup
	for w := range childWriters {
		wg.Go(func() { childWrites(e, out, w, most) })
	}
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-e.Failed():
	}
	if err := e.Health().Err; err != nil {
		<-done // every waiter has returned
		out.print("journal: failed: %v", strings.ReplaceAll(err.Error(), "\n", " "))
		return 3
	}
	if err := e.Close(); err != nil {
		out.print("journal: failed: closing: %v", strings.ReplaceAll(err.Error(), "\n", " "))
		return 3
	}
	out.print("closed")
	return 0
}

// childTask makes the folder from another one, if the environment names a task.
func childTask(dir string, opts disk.Options) error {
	from := os.Getenv("DISK_TEST_FROM")
	switch os.Getenv("DISK_TEST_TASK") {
	case "restore":
		return repair.Restore(from, dir, opts, nil)
	case "salvage":
		_, err := repair.Salvage(from, dir, opts, nil)
		return err
	}
	return nil
}

func childWrites(e *disk.Engine, out *lines, w, most int) {
	ctx := context.Background()
	log, twin := childLogs(w)
	heads, err := e.Head(ctx, log)
	if err != nil {
		return
	}
	for i := int(heads.Ordered.Seq) + 1; most == 0 || i <= most; i++ {
		text := fmt.Appendf(nil, "%d %0*d", i, 1500, w)
		ticket, err := e.Append(ctx, journal.Batch{Appends: []journal.Append{
			{Log: log, Expect: journal.Exactly(uint64(i - 1)), Records: []journal.Record{{Data: text}}},
			{Log: twin, Records: []journal.Record{{Data: text}}},
		}})
		if err != nil || ticket.Wait(ctx) != nil {
			return
		}
		out.print("ack %d %d", w, i)
	}
}

// lines writes whole lines.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lines) print(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.w, format+"\n", args...)
}

// watched is what a child has printed.
type watched struct {
	mu    sync.Mutex
	acked [childWriters]int
	last  string
	fault time.Time
	ops   int           // of opening
	lines chan struct{} // one for every ack
}

// watch reads a child's lines until it ends.
func watch(r io.Reader) (*watched, <-chan struct{}) {
	w := &watched{lines: make(chan struct{}, 1<<16)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		scanner := bufio.NewScanner(r)
		scanner.Buffer(nil, 1<<20)
		for scanner.Scan() {
			line := scanner.Text()
			w.mu.Lock()
			w.last = line
			var who, i int
			if n, _ := fmt.Sscanf(line, "ack %d %d", &who, &i); n == 2 {
				w.acked[who] = max(w.acked[who], i)
				select {
				case w.lines <- struct{}{}:
				default:
				}
			}
			_, _ = fmt.Sscanf(line, "open after %d", &w.ops)
			if strings.HasPrefix(line, "fault") {
				w.fault = time.Now()
			}
			w.mu.Unlock()
		}
	}()
	return w, ended
}

// verifyChild opens the folder that a child left, and compares it with what the child
// printed.
func verifyChild(t testing.TB, dir string, w *watched, what string) {
	t.Helper()
	e, err := disk.Open(dir, disk.Options{MinFree: -1})
	if err != nil {
		t.Errorf("%s: opening what is left: %v", what, err)
		return
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Errorf("%s: closing what is left: %v", what, err)
		}
	}()
	w.mu.Lock()
	defer w.mu.Unlock()
	for who := range childWriters {
		log, twin := childLogs(who)
		n := 0
		for entry, err := range journal.Records(ctx, e, log, journal.ReadOptions{}) {
			if err != nil {
				t.Errorf("%s: %v", what, err)
				return
			}
			n++
			if want := fmt.Sprintf("%d %0*d", n, 1500, who); string(entry.Data) != want {
				t.Errorf("%s: record %d of writer %d is another", what, n, who)
			}
		}
		if n < w.acked[who] {
			t.Errorf("%s: writer %d was told that %d are durable, %d are there", what, who, w.acked[who], n)
		}
		heads, err := e.Head(ctx, twin)
		if err != nil || heads.Durable.Seq != uint64(n) {
			t.Errorf("%s: log %d has %d records, its twin %d (%v)", what, who, n, heads.Durable.Seq, err)
		}
	}
}
