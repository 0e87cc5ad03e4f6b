package disk_test

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk"
	"github.com/parley-hub/parley/journal/disk/repair"
	"github.com/parley-hub/parley/journal/journaltest"
)

func TestExercise(t *testing.T) { journaltest.Exercise(t, open) }

// open opens an engine on a crashable file system in memory.
func open(t testing.TB, opts journaltest.Options) (journal.Engine, journaltest.Faults) {
	t.Helper()
	return openOn(t, vfs.NewCrashableMem(), "/data", opts)
}

func openOn(t testing.TB, mem *vfs.MemFS, dir string, opts journaltest.Options) (journal.Engine, journaltest.Faults) {
	t.Helper()
	fs := &faultFS{FS: mem}
	e, err := disk.Open(dir, disk.Options{
		FS: fs, Now: opts.Now, MaxUnsynced: opts.MaxUnsynced, MemTableSize: 1 << 20, CacheBytes: 1 << 20,
	}.FewClaims())
	if err != nil {
		t.Fatal(err)
	}
	return e, &faults{faultFS: fs, mem: mem, dir: dir, opts: opts}
}

type faults struct {
	*faultFS
	mem  *vfs.MemFS
	dir  string
	opts journaltest.Options
	lost *vfs.MemFS // what a crash left
}

// Crash keeps what is synced now. The engine continues on a file system that is not
// read again.
func (f *faults) Crash() {
	f.lost = f.mem.CrashClone(vfs.CrashCloneCfg{})
	f.mu.Lock()
	h := f.held
	f.mu.Unlock()
	if h != nil {
		h.release()
	}
}

func (f *faults) FailSync() bool {
	f.faultFS.FailSync()
	return true
}

func (f *faults) LoseIndex(t testing.TB) {
	t.Helper()
	db, err := pebble.Open(f.dir+"/store", &pebble.Options{
		FS: f.mem, FormatMajorVersion: pebble.FormatNewest, Logger: quiet{},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, span := range []string{"ij", "kl"} {
		if err := db.DeleteRange([]byte(span[:1]), []byte(span[1:]), pebble.Sync); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Delete([]byte("mi"), pebble.Sync); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.mem.Remove(f.dir + "/SEAL"); err != nil {
		t.Fatal(err)
	}
}

// quiet is a logger for Pebble that logs nothing.
type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf(format, args...))
}

func (f *faults) Reopen(t testing.TB) (journal.Engine, journaltest.Faults) {
	t.Helper()
	mem := f.mem
	if f.lost != nil {
		mem = f.lost
	}
	return openOn(t, mem, f.dir, f.opts)
}

func (f *faults) Restore(t testing.TB, dir string) (journal.Engine, journaltest.Faults) {
	t.Helper()
	if err := repair.Restore(dir, "/restored", disk.Options{FS: f.mem}, nil); err != nil {
		t.Fatal(err)
	}
	return openOn(t, f.mem, "/restored", f.opts)
}

// TestRandom compares the engine with a simple model. A failure prints how to
// run it again.
func TestRandom(t *testing.T) {
	t.Parallel()
	journaltest.Random(t, open)
}
